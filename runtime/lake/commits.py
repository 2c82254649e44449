"""Which commit a version of a table is. A lake that was restored from a copy counts its versions anew; no two commits
ever share an id."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Asked for only where a table does not lie on this machine.
Session = Callable[[], "SparkSession"]


@dataclass(frozen=True)
class Commit:
    """One commit of a table, as Delta's log tells it."""

    id: str
    at: dt.datetime


def commit_of(table: LakeTable, version: int, session: Session) -> Commit | None:
    """None where the log does not hold that version, or does not hold it any more."""
    first = _first_line(f"{table.path}/_delta_log/{version:020}.json", table.is_local, session)
    told = json.loads(first).get("commitInfo", {}) if first else {}
    if "txnId" not in told:
        return None
    return Commit(str(told["txnId"]), dt.datetime.fromtimestamp(told["timestamp"] / 1000, dt.UTC))


def _first_line(path: str, is_local: bool, session: Session) -> str:
    """Of a file of the log: what the commit is. Empty where there is no such file."""
    if is_local:
        try:
            with Path(path).open(encoding="utf-8") as log:
                return log.readline()
        except FileNotFoundError:
            return ""
    try:
        row = session().read.text(path).head()
    except Exception as error:
        if "PATH_NOT_FOUND" in str(error):
            return ""
        raise
    return str(row[0]) if row else ""


def disagrees(table: LakeTable, version: int, commit_id: str, session: Session) -> str:
    """How the table contradicts that its `version` is that commit: for a sentence that begins with its name. Empty
    where it agrees, or where the log no longer tells. Without an id only the version's number is compared."""
    spark = session() if not table.is_local else None
    if not table.exists(spark):  # type: ignore[arg-type]  # a local one does not ask it
        return "is gone, and with it"
    newest = table.version(spark)  # type: ignore[arg-type]
    if newest < version:
        return f"stands at version {newest}{_told(table, newest, session)} and so is older than"
    found = commit_of(table, version, session)
    if found is None or not commit_id or found.id == commit_id:
        return ""
    return (
        f"was written anew since it was restored (its version {version} is of {found.at:%Y-%m-%d %H:%M} UTC) and lacks"
    )


def _told(table: LakeTable, version: int, session: Session) -> str:
    found = commit_of(table, version, session)
    return f" of {found.at:%Y-%m-%d %H:%M} UTC" if found else ""
