"""What all record files of one run share, and the rules by which they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from runtime.custody.masks import Masker
from runtime.model import Column, Kind, Mask, Model, Sink


@dataclass(frozen=True)
class Places:
    """Where the records come from and go to: what metadata.json and the fact tables are joined by."""

    workspace_id: int = 0
    sync_name: str = ""
    source_type: str = "DeltaLake"
    source_id: int = 0
    source_object_id: int = 0
    destination_type: str = ""
    destination_id: int = 0
    destination_object_id: int = 0
    started_at: datetime | None = None


@dataclass(frozen=True)
class RunInfo:
    """What all files of one run share."""

    organization_id: int
    sync_id: int
    run_id: int
    kind: Kind
    model: Model
    masks: Masker
    columns: tuple[Column, ...] = ()
    places: Places = Places()

    @property
    def folder(self) -> str:
        return f"sync_tracking_datasets/{self.organization_id}/{self.sync_id}/{self.run_id}"


def rules_of(info: RunInfo) -> dict[str, Any]:
    """What a delivery and its record files follow, as JSON: kept with the run when it is staged, so that neither needs
    the project any more."""
    m, p = info.model, info.places
    return {
        "kind": info.kind,
        "name": m.name,
        "key": list(m.key),
        "identifier": m.identifier,
        "masks": [[mask.column, mask.how] for mask in m.masks],
        "sink": [m.sink.function, list(m.sink.args)] if m.sink else None,
        "places": {**vars(p), "started_at": p.started_at.isoformat() if p.started_at else None},
    }


def by_rules(
    rules: Mapping[str, Any],
    *,
    organization_id: int,
    sync_id: int,
    run_id: int,
    columns: Sequence[Column],
    mask_key: str,
) -> RunInfo:
    """The other way round."""
    masks = tuple(Mask(column, how) for column, how in rules["masks"])
    function, args = rules.get("sink") or ("", [])
    model = Model(
        rules["name"],
        "",
        Path(),
        "",
        1,
        kind=rules["kind"],
        key=tuple(rules["key"]),
        sink=Sink(function, tuple(args)) if function else None,
        identifier=rules["identifier"],
        masks=masks,
    )
    moment = rules["places"]["started_at"]
    places = Places(**{**rules["places"], "started_at": datetime.fromisoformat(moment) if moment else None})
    return RunInfo(organization_id, sync_id, run_id, model.kind, model, Masker(masks, mask_key), tuple(columns), places)


def with_columns(info: RunInfo, columns: Sequence[Column]) -> RunInfo:
    """The same run, once its columns are known."""
    return replace(info, columns=tuple(columns))
