"""Spark's jars, fetched beside the pages, which are there meanwhile; runs wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from runtime.errors import ConfigError


class Fetching:
    """`fetch` in a thread, from now on; it prints itself what it does."""

    def __init__(self, fetch: Callable[[], object]) -> None:
        self._error: ConfigError | None = None
        self._thread = threading.Thread(target=self._run, args=(fetch,), name="jars", daemon=True)
        self._thread.start()

    @property
    def goes_on(self) -> bool:
        return self._thread.is_alive()

    def wait(self) -> None:
        """Returns when the jars are there. Raises the ConfigError of a fetch that failed."""
        self._thread.join()
        if self._error:
            raise self._error

    def _run(self, fetch: Callable[[], object]) -> None:
        try:
            fetch()
        except ConfigError as error:
            self._error = error
