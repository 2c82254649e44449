"""Where record files lie: a folder or an S3 bucket. A file is written once, whole or not at all, and never
rewritten."""

from __future__ import annotations

import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from runtime.errors import ConfigError, StoreError


class AlreadyThere(StoreError):
    """Raised by `put_new` when the file exists; what is there is left as it is."""


@dataclass(frozen=True)
class Credentials:
    """Of one organization's own bucket: a key pair, or a role to assume. Never shown."""

    access_key: str = ""
    secret_key: str = ""
    session_token: str = ""
    role_arn: str = ""
    external_id: str = ""
    region: str = ""
    endpoint: str = ""

    def __repr__(self) -> str:
        return f"Credentials({'role' if self.role_arn else 'key pair'})"


class Store(ABC):
    """Paths are relative to `url`, with `/` between their parts."""

    url: str

    @abstractmethod
    def put_new(self, path: str, data: bytes) -> None:
        """Writes a file that does not exist yet. Raises AlreadyThere."""

    @abstractmethod
    def replace(self, path: str, data: bytes) -> None:
        """Writes a file, whole, whatever was there: readers see the old or the new one."""

    @abstractmethod
    def get(self, path: str) -> bytes:
        """Raises StoreError where there is no such file."""

    @abstractmethod
    def local(self, path: str) -> Path:
        """The file on this machine's disk."""

    @abstractmethod
    def exists(self, path: str) -> bool: ...

    @abstractmethod
    def list(self, prefix: str) -> Iterator[str]:
        """The paths below a folder, in order."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """A file that is gone already is no error."""

    @abstractmethod
    def local_root(self) -> Path:
        """The folder below which everything lies that `local` answers."""

    def locals(self, paths: Sequence[str]) -> Sequence[Path]:
        return [self.local(path) for path in paths]

    def delete_prefix(self, prefix: str) -> int:
        """Removes all files below a folder; may be broken off and started again. How many it removed."""
        gone = 0
        for path in self.list(prefix):
            self.delete(path)
            gone += 1
        return gone

    def url_of(self, path: str) -> str:
        return f"{self.url}/{path}"

    def path_of(self, url: str) -> str:
        """The path of a file of this store."""
        if not url.startswith(f"{self.url}/"):
            raise StoreError(f"{url} does not lie in the store {self.url}")
        return url[len(self.url) + 1 :]

    def check(self) -> None:
        """Writes, lists, reads and deletes a small file. Raises StoreError that says which of them failed and why."""
        folder = "ondatra-check"
        path, data = f"{folder}/{uuid.uuid4().hex}.txt", uuid.uuid4().hex.encode()
        self.put_new(path, data)
        try:
            if path not in self.list(folder):
                raise StoreError(f"the store {self.url} does not list {path}, which was just written")
            if self.get(path) != data:
                raise StoreError(f"the store {self.url} gave other bytes back than were written")
        except StoreError:
            with suppress(StoreError):
                self.delete(path)
            raise
        self.delete(path)
        if self.exists(path):
            raise StoreError(f"the store {self.url} says that it deleted {path}, but it is still there")


class FolderStore(Store):
    """A folder of this machine, or one that all machines share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.url = self.folder.as_uri()

    def _place(self, path: str) -> Path:
        place = Path(os.path.normpath(self.folder / path))
        if self.folder not in (place, *place.parents):
            raise StoreError(f"{path!r} leads out of the store {self.folder}")
        return place

    def _written(self, place: Path, data: bytes) -> Path:
        """The data in a durable file of another name beside the place."""
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{place.name}.{uuid.uuid4().hex}.part")
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return temporary

    def put_new(self, path: str, data: bytes) -> None:
        place = self._place(path)
        try:
            temporary = self._written(place, data)
            try:
                os.link(temporary, place)  # fails if it exists, unlike rename
            except FileExistsError:
                raise AlreadyThere(f"{place} exists already") from None
            finally:
                temporary.unlink()
            _sync_folder(place.parent)
        except OSError as error:
            raise self._error("written", place, error) from error

    def replace(self, path: str, data: bytes) -> None:
        place = self._place(path)
        try:
            os.replace(self._written(place, data), place)
        except OSError as error:
            raise self._error("written", place, error) from error

    def get(self, path: str) -> bytes:
        place = self._place(path)
        try:
            return place.read_bytes()
        except OSError as error:
            raise self._error("read", place, error) from error

    def local(self, path: str) -> Path:
        return self._place(path)

    def local_root(self) -> Path:
        return self.folder

    def exists(self, path: str) -> bool:
        return self._place(path).exists()

    def list(self, prefix: str) -> Iterator[str]:
        for place in sorted(self._place(prefix).rglob("*")):
            if place.is_file() and not place.name.endswith(".part"):
                yield place.relative_to(self.folder).as_posix()

    def delete(self, path: str) -> None:
        try:
            self._place(path).unlink(missing_ok=True)
        except OSError as error:
            raise self._error("deleted", self._place(path), error) from error

    def delete_prefix(self, prefix: str) -> int:
        place = self._place(prefix)
        if place == self.folder:
            raise StoreError(f"the whole store {self.folder} is not deleted at once; name a folder in it")
        gone = sum(1 for _ in self.list(prefix))
        shutil.rmtree(place, ignore_errors=True)
        if place.exists():
            raise StoreError(f"{place} cannot be deleted whole: check the rights of that folder")
        return gone

    def _error(self, what: str, place: Path, error: OSError) -> StoreError:
        return StoreError(
            f"{place} cannot be {what}: {error.strerror or error}; check that the folder {self.folder} exists, has "
            f"room and may be written"
        )


def _sync_folder(folder: Path) -> None:
    """Makes a new name in a folder survive a power cut: answers are dropped once their file is durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
