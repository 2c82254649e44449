"""What all chunks of one run share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.custody.masks import Masker
from runtime.model import Model
from runtime.push.api_dict import Api
from runtime.push.call import CallContext
from runtime.push.function import PushFunction
from runtime.store.base import Store
from runtime.tracking.info import RunInfo


@dataclass(frozen=True)
class DeliveryRun:
    """The model, its push function, and where its records go."""

    info: RunInfo
    model: Model
    push: PushFunction
    context: CallContext
    masker: Masker
    store: Store

    @property
    def api(self) -> Api:
        return self.push.api

    @property
    def sink_args(self) -> Sequence[str]:
        return self.model.sink.args if self.model.sink else ()


@dataclass(frozen=True)
class Progress:
    """Why a delivery ended before its last row; both empty when it did not."""

    stopped: str = ""
    cancelled: bool = False
