"""What calls leave beside their answers: requests, prints, warnings, times."""

from __future__ import annotations

import threading
from typing import Any

from runtime.custody.masks import Masker
from runtime.delivery.chunk import Chunk, Index
from runtime.push.api_dict import ApiCalls
from runtime.push.call import CallResult, PollResult, telling

#: Calls without a failure that are kept of each chunk under `api_calls: all`.
KEPT_CALLS = 1_000


class Heard:
    """Collected from any number of threads, until `close`."""

    def __init__(self, chunk: Chunk, masker: Masker, kept: ApiCalls) -> None:
        self._chunk, self._masker, self._kept = chunk, masker, kept
        self._lock = threading.Lock()
        self._closed = False
        self._good = 0
        self.calls: list[Any] = []
        self.log: list[tuple[str, str]] = []
        self.push_seconds = self.http_seconds = 0.0

    def add(self, result: CallResult | PollResult, index: Index) -> None:
        """Masked values leave the log here, requests when they are written."""
        scrub = self._masker.scrubber(self._chunk.dicts(index) if result.prints or result.warnings else ())
        with self._lock:
            self.push_seconds += (result.ended_at - result.started_at).total_seconds()
            self.http_seconds += result.http_seconds
            self.log += [("print", scrub(line)) for line in result.prints]
            self.log += [("warning", scrub(line)) for line in result.warnings]
            if self._kept != "off" and not self._closed:
                self._add_calls(result)

    def close(self) -> None:
        """No request that comes later is kept."""
        with self._lock:
            self._closed = True

    def _add_calls(self, result: CallResult | PollResult) -> None:
        """All that failed, or were about a row that did; of the others the first KEPT_CALLS of a chunk."""
        calls, bad = result.calls, set(telling(result))
        room = KEPT_CALLS - self._good if self._kept == "all" else 0
        good = [i for i in range(len(calls)) if i not in bad][:room] if room > 0 else []
        self._good += len(good)
        self.calls += [calls[i] for i in sorted([*bad, *good])]
