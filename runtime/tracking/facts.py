"""The fact tables beside the record files: source objects, destinations and destination objects, each one parquet
file."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from runtime.store.base import Store

SOURCE_OBJECTS = pa.schema(
    [
        ("id", pa.int64()),
        ("type", pa.string()),
        ("name", pa.string()),
        ("model_id", pa.int64()),
        ("business_object_id", pa.int64()),
        ("filter_segment_id", pa.int64()),
        ("cohort_id", pa.int64()),
    ]
)
DESTINATIONS = pa.schema([("id", pa.int64()), ("type", pa.string()), ("name", pa.string())])
DESTINATION_OBJECTS = DESTINATIONS


@dataclass(frozen=True, order=True)
class SourceObject:
    """A SQL model that is the source of a sync."""

    id: int
    name: str
    model_id: int | None = None


@dataclass(frozen=True, order=True)
class Destination:
    """`type` is `HubSpot::Connection`, `name` what the push function calls it: HubSpot."""

    id: int
    type: str
    name: str


@dataclass(frozen=True, order=True)
class DestinationObject:
    id: int
    type: str
    name: str


def connection_type(destination: str) -> str:
    return f"{destination}::Connection"


def object_type(destination: str, name: str) -> str:
    return f"{destination}::ObjectTypes::{name}"


def write(
    store: Store,
    organization_id: int,
    sources: Iterable[SourceObject],
    destinations: Iterable[Destination],
    objects: Iterable[DestinationObject],
) -> list[str]:
    """Replaces the three tables, whole; their URLs."""
    queries = [(s.id, "DataWarehouse::Query", s.name, s.model_id, None, None, None) for s in sorted(sources)]
    found = [
        ("source_objects", SOURCE_OBJECTS, queries),
        ("destinations", DESTINATIONS, [astuple(d) for d in sorted(destinations)]),
        ("destination_objects", DESTINATION_OBJECTS, [astuple(o) for o in sorted(objects)]),
    ]
    urls = []
    for name, schema, rows in found:
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        sink = io.BytesIO()
        pq.write_table(
            pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema),
            sink,
            compression="zstd",
        )
        path = f"metadata/{organization_id}/{name}.parquet"
        store.replace(path, sink.getvalue())
        urls.append(store.url_of(path))
    return urls
