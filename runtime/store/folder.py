"""The store in a folder of this machine, or one that all machines share."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from runtime.errors import StoreError
from runtime.store.base import AlreadyThere, Store


class FolderStore(Store):
    """A folder of this machine, or one that all machines share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.url = self.folder.as_uri()

    def _place(self, path: str) -> Path:
        place = os.path.normpath(f"{self.folder}/{path}")
        if place != str(self.folder) and not place.startswith(f"{str(self.folder).rstrip('/')}/"):
            raise StoreError(f"{path!r} leads out of the store {self.folder}")
        return Path(place)

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

    def put_file(self, path: str, file: Path) -> None:
        place = self._place(path)
        temporary = place.with_name(f".{place.name}.{uuid.uuid4().hex}.part")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, temporary)
            os.replace(temporary, place)
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

    def get_ready(self) -> None:
        """It always is."""

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
