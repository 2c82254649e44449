"""Chunk files as delivery and the database side see them: read and measured with pyarrow, without Spark."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import fs

from runtime.columns import PART
from runtime.config import from_env
from runtime.staging.states import Mask, States

#: The part of a chunk, which its folder names, is the sum of these.
CHANGES, CARRIED, WAITS = 1, 2, 4


@dataclass(frozen=True)
class WaitingChunk:
    """A chunk with undelivered rows; `states` has one byte a row of the file."""

    id: int
    url: str
    states: States

    @property
    def waits(self) -> bool:
        """Its rows are newer changes of rows whose job is open: they wait to be composed with what the job's outcome
        leaves."""
        return bool(part_of(self.url) & WAITS)


def part_of(url: str) -> int:
    """The part that a chunk file belongs to: CHANGES for phase 1, CARRIED, WAITS, added up."""
    found = re.search(rf"/{PART}=(\d+)/[^/]+$", url)
    return int(found[1]) if found else CHANGES


def open_place(url: str) -> tuple[fs.FileSystem, str]:
    """The file system and the path of a file:// or s3:// URL."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return fs.LocalFileSystem(), unquote(parts.path)
    if parts.scheme == "s3":
        install = from_env()
        system = _s3(os.getpid(), install.s3_endpoint or "", install.s3.region, install.s3.key or "")
        return system, parts.netloc + unquote(parts.path)
    raise ValueError(f"staged chunks lie at file:// or s3:// URLs, not at {url!r}; see ONDATRA_STAGING_URL")


@lru_cache(maxsize=8)
def _s3(pid: int, endpoint: str, region: str, key: str) -> fs.S3FileSystem:
    """One client a process, endpoint and key; a client does not survive a fork. Without an endpoint it is AWS."""
    scheme, _, host = endpoint.rstrip("/").rpartition("://")
    return fs.S3FileSystem(
        endpoint_override=host or None,
        scheme=scheme or "https",
        region=region,
        connect_timeout=5,
        request_timeout=60,  # without an answer; its own three seconds end a request that a slow wire holds up
    )


def remove(url: str) -> None:
    """Everything below a folder; one that is not there is none the worse."""
    place, path = open_place(url)
    with suppress(FileNotFoundError):
        place.delete_dir(path)


def list_folders(url: str) -> list[str]:
    """The names of the folders in a folder; none where it is not there."""
    place, path = open_place(url)
    found = place.get_file_info(fs.FileSelector(path, recursive=False, allow_not_found=True))
    return sorted(f.base_name for f in found if f.type == fs.FileType.Directory)


def list_files(url: str) -> list[str]:
    """The URLs of the parquet files below a folder, in the order of their names."""
    place, path = open_place(url)
    found = place.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    below = sorted(
        str(f.path)[len(path) :].lstrip("/") for f in found if f.is_file and str(f.path).endswith(".parquet")
    )
    return [f"{url.rstrip('/')}/{quote(name, safe='/=')}" for name in below]


def read_chunk(url: str, positions: Mask | None) -> pa.Table:
    """The rows of a chunk file in delivery order; with a mask only the rows that it selects."""
    place, path = open_place(url)
    with place.open_input_file(path) as source:
        table = pq.ParquetFile(source).read(use_threads=True)
    if positions is None or bool(np.all(positions)):
        return table
    return table.filter(pa.array(np.asarray(positions, dtype=np.bool_)))


def read_column(url: str, name: str) -> NDArray[Any]:
    """One column of a chunk file."""
    return np.asarray(read_columns(url, [name]).column(name).to_numpy())


def read_columns(url: str, names: Sequence[str]) -> pa.Table:
    """Some columns of a chunk file, read without the others."""
    place, path = open_place(url)
    with place.open_input_file(path) as source:
        return pq.ParquetFile(source).read(columns=list(names))


def keep_calls(url: str, delivery_id: int, data: bytes) -> None:
    """Keeps the requests of a delivery beside its chunk file while the store is down. Raises OSError."""
    place, path = open_place(f"{url}.calls-{delivery_id}")
    with place.open_output_stream(path) as sink:
        sink.write(data)


def kept_calls(url: str, delivery_id: int) -> bytes:
    """What was kept; empty where nothing was."""
    place, path = open_place(f"{url}.calls-{delivery_id}")
    try:
        with place.open_input_file(path) as source:
            return bytes(source.read())
    except FileNotFoundError:
        return b""


def read_schema(url: str) -> pa.Schema:
    place, path = open_place(url)
    with place.open_input_file(path) as source:
        return pq.ParquetFile(source).schema_arrow


def tally(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each value occurs."""
    return {str(entry["values"]): int(entry["counts"]) for entry in pc.value_counts(column).to_pylist()}
