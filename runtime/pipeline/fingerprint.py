"""Decides without Spark whether a model's result can have changed: a fingerprint of everything that it depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

import orjson

from runtime.model import Model
from runtime.sources import files as sources
from runtime.sql import Translated

#: Asked once: finding a package's version means reading its files.
_version = cache(version)
#: Grows when the engine computes something otherwise than before, so that every model is built once more.
ENGINE = 1


def fingerprint(model: Model, translated: Translated, inputs: Mapping[str, str | int | None]) -> str:
    """SHA-256 of text, engine, settings, commits (or versions) of the input tables and state of the source files.

    Empty when something has no fingerprint (a file written a moment ago, a connection's table, now(), random()): the
    model is then always built.
    """
    files = [sources.fingerprint(f) for f in translated.files]
    outside = set(translated.tables) - set(inputs)  # of connections: nobody says whether they changed
    if translated.volatile or outside or None in files or None in inputs.values():
        return ""
    said = [
        ENGINE,
        _version("pyspark"),
        _version("delta-spark"),
        _version("duckdb"),
        _version("sqlglot"),
        model.sql,
        model.kind,
        model.key,
        model.dialect,
        model.on_missing,
        sorted(inputs.items()),
        files,
    ]
    return hashlib.sha256(orjson.dumps(said)).hexdigest()
