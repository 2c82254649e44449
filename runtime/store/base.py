"""Where record files lie: a folder or an S3 bucket. A file is written once, whole or not at all, and never
rewritten."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import StoreError


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
    #: Whether its files lie on this machine's disks already, so that one more to open costs nothing.
    near = True

    @abstractmethod
    def put_new(self, path: str, data: bytes) -> None:
        """Writes a file that does not exist yet. Raises AlreadyThere."""

    @abstractmethod
    def replace(self, path: str, data: bytes) -> None:
        """Writes a file, whole, whatever was there: readers see the old or the new one."""

    @abstractmethod
    def put_file(self, path: str, file: Path) -> None:
        """The same with a file of any size, which is not read into memory at once."""

    def upload_url(self, path: str, seconds: int) -> str:
        """A secret address at which a process without credentials may put this one file (HTTP PUT) for so long; empty
        where whoever sees the same disk writes it."""
        return ""

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

    @abstractmethod
    def get_ready(self) -> None:
        """Makes what the first question would wait for. Contacts nobody. Raises StoreError."""

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
