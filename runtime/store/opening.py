"""The store that a URL names."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from runtime.errors import ConfigError, StoreError
from runtime.store.base import Credentials, Store
from runtime.store.folder import FolderStore


def open_store(url: str, *, credentials: Credentials | None = None, cache_dir: Path | None = None) -> Store:
    """The store at a `file:///…` or `s3://bucket/prefix` URL; nothing is contacted yet. Raises ConfigError."""
    return _open(url.rstrip("/"), credentials, cache_dir)


@lru_cache(maxsize=64)
def _open(url: str, credentials: Credentials | None, cache_dir: Path | None) -> Store:
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.path and not parts.netloc:
        return FolderStore(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:  # boto3 is loaded only where there is a bucket
        from runtime.store.s3 import S3Store

        return S3Store(parts.netloc, parts.path.strip("/"), credentials=credentials, cache_dir=cache_dir)
    raise ConfigError(
        f"the store {url!r} is neither file:///an/absolute/folder nor s3://bucket/prefix; see ONDATRA_TRACKING_URL"
    )


def get_ready(url: str) -> None:
    """What a server does beside its start: the libraries of a bucket take longer to come than a page of records."""

    def ready() -> None:
        with suppress(ConfigError, StoreError):  # whoever needs the store is told
            open_store(url).get_ready()

    threading.Thread(target=ready, name="store", daemon=True).start()
