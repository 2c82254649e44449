"""How the databases answer what the pages ask: run in a process of its own over an empty database. Prints JSON: the
queries of each address, and those that would read a whole history, with the plan.

Usage: python -m tests.web.plans SIZE
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Tables that grow with time: a page that reads one from end to end gets slower every day.
HISTORIES = {
    f"ondatra_web_{name}"
    for name in (
        "alert", "alertdelivery", "alertevent", "answer", "apicallfile", "auditlog", "chunk", "delivery", "export",
        "messagegroup", "recordfile", "run", "runlog",
    )
}  # fmt: skip
ALIAS = re.compile(r'(?:FROM|JOIN) "(\w+)"(?: (?!ON\b|WHERE\b|INNER\b|LEFT\b|ORDER\b|GROUP\b|LIMIT\b)"?(\w+)"?)?')
#: What needs all of its input before it gives its first row.
WHOLE = {"Sort", "Aggregate", "Hash", "Hash Join", "Unique", "WindowAgg", "Merge Join"}


@cache
def few() -> frozenset[str]:
    """Indexes of the few rows of a history that are open."""
    from django.apps import apps

    found = (index for model in apps.get_models() for index in model._meta.indexes)
    return frozenset(index.name for index in found if index.condition is not None)


def sqlite(cursor: Any, sql: str, params: Any) -> list[str]:
    """Histories of which the plan visits every row; one that is read in its order to a LIMIT is not."""
    cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
    plan = [row[3] for row in cursor.fetchall()]
    names = {alias or table: table for table, alias in ALIAS.findall(sql)} | {t: t for t, _ in ALIAS.findall(sql)}
    lines = [line for line in plan if not few().intersection(line.split())]
    scanned = [found[1] for line in lines if (found := re.match(r"SCAN (\w+)", line))]
    if " LIMIT " in sql and plan[0].startswith("SCAN") and not any("TEMP B-TREE" in line for line in plan):
        scanned = scanned[1:]
    return [names.get(alias, alias) for alias in scanned if names.get(alias, alias) in HISTORIES]


def postgresql(cursor: Any, sql: str, params: Any) -> list[str]:
    """The same, of a planner that scans only where it has no other way."""
    cursor.execute("SET enable_seqscan = off")
    cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
    told = cursor.fetchone()[0]
    (plan,) = json.loads(told) if isinstance(told, str) else told
    return list(_whole(plan["Plan"], limited=False))


def _whole(node: dict[str, Any], *, limited: bool) -> Iterator[str]:
    kind = node["Node Type"]
    limited = kind == "Limit" or limited and kind not in WHOLE
    reads_all = kind == "Seq Scan" or kind in ("Index Scan", "Index Only Scan") and "Index Cond" not in node
    if node.get("Index Name") in few():
        reads_all = False
    if reads_all and not limited and node["Relation Name"] in HISTORIES:
        yield node["Relation Name"]
    for below in node.get("Plans", ()):
        yield from _whole(below, limited=limited)


def main(size: int) -> None:
    sys.path.insert(0, str(ROOT / "bench"))
    from _filled import fill, records
    from _product import install
    from pages import addresses

    folder = install("plans")
    ids = fill(syncs=20 * size, models=30 * size, runs=300 * size, longest=60 * size, groups=100 * size)
    records(ids["run_id"], folder / "records", 5)
    print(json.dumps(asked(addresses(ids))))


def asked(paths: list[str]) -> dict[str, Any]:
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    explain = {"sqlite": sqlite, "postgresql": postgresql}[connection.vendor]
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get(username="alice"))
    counts, found = {}, {}
    for path in paths:
        client.get(path)  # what is remembered for some seconds is there
        said: list[tuple[str, Any]] = []

        def heard(execute: Any, sql: str, params: Any, many: bool, context: Any, said: Any = said) -> Any:
            said.append((sql, params))
            return execute(sql, params, many, context)

        with CaptureQueriesContext(connection) as captured, connection.execute_wrapper(heard):
            answer = client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        counts[re.sub(r"\d+", "N", path)] = len(captured)
        with connection.cursor() as cursor:
            for sql, params in said:
                if sql.startswith("SELECT") and (whole := explain(cursor, sql, params)):
                    found[sql] = {"path": path, "whole": whole}
    return {"counts": counts, "whole": found}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory():
        main(int(sys.argv[1]))
