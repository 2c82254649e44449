"""Two projects as analysts write them, against the same statements as a plain PySpark script over Delta
(bench/_plain.py), by turns over the same source. Usage: python bench/project.py [database|files] [--rounds 6] [--small]

`database`: PostgreSQL with 5,000 customers and 30,000 orders; two staging tables, a join with sums, a merge sync, of
which three rows change. `files`: Parquet with 300,000 customers and 3 million orders; a join with sums, the latest
order by a window, a merge sync, of which 1 % changes.

Cases: the first build and one after a change, each in a new process with its JVM's start; then changes and no change in
processes that live on, as clicks meet them. Of those the median of the last three rounds counts. Ours delivers and
records the rows besides; the script reads them from its feed. The worst of all cases decides: the script's time over
ours, first builds as they are, others divided by 1.5. `--small` has a tenth of the rows.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from _product import NOTHING, ROOT, in_folder, install, workspace

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "runtime"))

#: How much quicker than the script everything after the first build has to be.
AFTERWARDS = 1.5
#: Of rounds in processes that live on; those before them are the JVM's warming up.
COUNTED = 3

DATABASE = {
    "models/staging/customers.sql": "SELECT id, lower(email) AS email, trim(name) AS name, city, "
    "prefs->>'lang' AS lang FROM shop.public.customers",
    "models/staging/orders.sql": "SELECT id, customer_id, total, placed_on FROM shop.public.orders "
    "WHERE status <> 'cancelled'",
    "models/mart/customers.sql": "SELECT c.id, c.email, c.name, c.city, c.lang, count(o.id) AS orders, "
    "coalesce(sum(o.total), 0) AS spent, max(o.placed_on) AS last_order FROM staging.customers c "
    "LEFT JOIN staging.orders o ON o.customer_id = c.id GROUP BY c.id, c.email, c.name, c.city, c.lang",
    "models/sync/customers.sql": "-- @kind: merge\n-- @unique_key: id\n-- @sink: nothing\nSELECT * FROM mart.customers",
}
FILES = {
    "models/mart/sums.sql": "SELECT c.id, c.name, c.city, count(o.id) AS orders, coalesce(sum(o.total), 0) AS spent "
    "FROM read_parquet('customers.parquet') c LEFT JOIN read_parquet('orders.parquet') o ON o.customer_id = c.id "
    "GROUP BY c.id, c.name, c.city",
    "models/mart/latest.sql": "SELECT customer_id, id AS order_id, status, placed_on FROM (SELECT *, row_number() OVER "
    "(PARTITION BY customer_id ORDER BY placed_on DESC, id DESC) AS place FROM read_parquet('orders.parquet')) ranked "
    "WHERE place = 1",
    "models/sync/customers.sql": "-- @kind: merge\n-- @unique_key: id\n-- @sink: nothing\n"
    "SELECT s.id, s.name, s.city, s.orders, s.spent, l.order_id, l.status, l.placed_on FROM mart.sums s "
    "LEFT JOIN mart.latest l ON l.customer_id = s.id",
}


@dataclass
class Source:
    """What both sides read. `change(round)` changes so many rows of it; `rows` are all that are sent at first."""

    name: str
    rows: int
    changed: int
    change: Callable[[int], None]


@dataclass
class Case:
    """One line of the table: seconds of each round."""

    name: str
    wanted: float
    script: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> tuple[float, float]:
        return median(self.script[-COUNTED:]), median(self.ours[-COUNTED:])

    @property
    def ratio(self) -> float:
        script, ours = self.seconds
        return script / ours / self.wanted

    def __str__(self) -> str:
        script, ours = self.seconds
        rounds = f"script {[round(t, 1) for t in self.script]}, ours {[round(t, 1) for t in self.ours]}"
        return f"{self.name}: script {script:.1f} s, ours {ours:.1f} s, ratio {self.ratio:.2f} ({rounds})"


def main(names: list[str], rounds: int, share: float) -> None:
    cases = []
    home = install("project")
    os.environ.setdefault("ONDATRA_JARS_DIR", str(ROOT / ".venv" / "jars"))
    for name in names:
        folder = home / name
        with {"database": database, "files": files}[name](folder, share) as source:
            workspace(folder / "project", name)
            cases += measured(source, folder, rounds)
    shutil.rmtree(home)

    print("\n".join(map(str, cases)))
    worst = min(cases, key=lambda case: case.ratio)
    script, ours = worst.seconds
    print(f"project: ratio {worst.ratio:.2f} ({worst.name}: ours {ours:.1f} s, script {script:.1f} s)")


def measured(source: Source, folder: Path, rounds: int) -> list[Case]:
    first = Case(f"{source.name}, first build, new process", 1)
    told(first, _script_anew(source, folder, source.rows), _ours_anew(source, folder, source.rows))

    cold = Case(f"{source.name}, {source.changed} rows changed, new process", AFTERWARDS)
    for round_ in range(2):
        source.change(round_)
        told(cold, _script_anew(source, folder, source.changed), _ours_anew(source, folder, source.changed))

    warm = Case(f"{source.name}, {source.changed} rows changed, living process", AFTERWARDS)
    same = Case(f"{source.name}, nothing changed, living process", AFTERWARDS)
    with _script(source, folder) as script, _serving(source, folder) as ours:
        script(0)
        time.sleep(2.1)  # a file modified under 2 s ago counts as changed
        for round_ in range(rounds):
            source.change(2 + round_)
            told(warm, script(source.changed), ours(source.changed))
        for _ in range(COUNTED):
            time.sleep(2.1)
            told(same, script(0), ours(0))
    return [first, cold, warm, same]


def told(case: Case, script: float, ours: float) -> None:
    case.script.append(script)
    case.ours.append(ours)
    print(f"{case.name}: script {script:.1f} s, ours {ours:.1f} s", file=sys.stderr)


# the script


def _script_anew(source: Source, folder: Path, rows: int) -> float:
    began = time.perf_counter()
    with _script(source, folder) as ask:
        ask.first(rows)  # type: ignore[attr-defined]
        return time.perf_counter() - began


@contextmanager
def _script(source: Source, folder: Path) -> Iterator[Callable[[int], float]]:
    """The script in a process of its own; each call is a round, which has to find so many rows."""
    tables = folder / "project" / "script"
    tables.mkdir(exist_ok=True)
    command = [sys.executable, str(ROOT / "bench" / "_plain.py"), source.name, str(tables)]
    with _talking(command) as (ask, heard):

        def first(rows: int) -> None:
            _same_rows("script", rows, heard()[1])

        def round_(rows: int) -> float:
            if not begun:
                begun.append(True)
                first(rows)
            seconds, found = ask()
            _same_rows("script", 0 if rows == 0 else rows, found)
            return seconds

        begun: list[bool] = []
        round_.first = first  # type: ignore[attr-defined]
        yield round_


# ours


def _ours_anew(source: Source, folder: Path, rows: int) -> float:
    command = [sys.executable, "manage.py", "run", "--workspace", source.name, "--json"]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"run ended with {done.returncode}: {done.stderr[-3000:] or done.stdout[-3000:]}")
    _same_rows("ours", rows, sum(sync["counts"]["succeeded"] for sync in json.loads(done.stdout)["syncs"]))
    return seconds


@contextmanager
def _serving(source: Source, folder: Path) -> Iterator[Callable[[int], float]]:
    """Runs of a process that lives on, as a pipeline worker does."""
    with _talking([sys.executable, __file__, "--serve", source.name, str(folder.parent)]) as (ask, heard):
        heard()

        def round_(rows: int) -> float:
            seconds, found = ask()
            _same_rows("ours", rows, found)
            return seconds

        yield round_


def serve(name: str, folder: Path) -> None:
    """A run now, and one for each line: its seconds and the rows that it sent."""
    in_folder(folder)
    from ondatra_web import projects
    from ondatra_web.runs import execution

    def run() -> None:
        began = time.perf_counter()
        walk = execution.run_here(projects.workspace_of(name), [], {})
        seconds = time.perf_counter() - began
        print(f"{seconds} {sum(run.counts['succeeded'] for run in walk.runs.values())}", flush=True)

    run()
    for _ in sys.stdin:
        run()


# both


@contextmanager
def _talking(command: list[str]) -> Iterator[tuple[Callable[[], tuple[float, int]], Callable[[], tuple[float, int]]]]:
    """A process that answers each line with seconds and rows."""
    process = subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin and process.stdout

    def heard() -> tuple[float, int]:
        assert process.stdout
        for line in process.stdout:
            parts = line.split()
            if len(parts) == 2 and parts[1].isdigit():
                return float(parts[0]), int(parts[1])
        raise SystemExit(f"{' '.join(command)} ended with {process.wait()}")

    def ask() -> tuple[float, int]:
        assert process.stdin
        process.stdin.write("again\n")
        process.stdin.flush()
        return heard()

    try:
        yield ask, heard
    finally:
        process.stdin.close()
        process.wait()


def _same_rows(side: str, wanted: int, found: int) -> None:
    if found != wanted:
        raise SystemExit(f"{side} found {found} changed rows where {wanted} are: nothing can be compared")


# sources


@contextmanager
def database(folder: Path, share: float) -> Iterator[Source]:
    import psycopg
    from services import postgres

    customers, orders = int(5_000 * share), int(30_000 * share)
    with postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE customers AS SELECT i AS id, 'Person' || i || '@Example.com' AS email, ' Person ' || i || "
            "' ' AS name, 'city ' || i % 97 AS city, jsonb_build_object('lang', (ARRAY['de','en','sv'])[i % 3 + 1], "
            f"'n', i) AS prefs FROM generate_series(1, {customers}) AS i"
        )
        connection.execute(
            f"CREATE TABLE orders AS SELECT i AS id, i * 7 % {customers} + 1 AS customer_id, (i % 500 + "
            "0.25)::numeric(12,2) AS total, (ARRAY['paid','sent','cancelled'])[i % 3 + 1] AS status, DATE '2026-01-01' "
            f"+ i % 300 AS placed_on FROM generate_series(1, {orders}) AS i"
        )
        connection.execute("ALTER TABLE customers ADD PRIMARY KEY (id)")
        address = url.rsplit("@", 1)[1]
        os.environ |= {"SHOP_PASSWORD": "secret", "SHOP_JDBC": f"jdbc:postgresql://{address}"}
        project(folder / "project", DATABASE)
        (folder / "project" / "ondatra.toml").write_text(
            f'[connections.shop]\ntype = "jdbc"\nurl = "jdbc:postgresql://{address}"\nuser = "app"\n'
            'password = { env = "SHOP_PASSWORD" }\n'
        )

        def change(round_: int) -> None:
            connection.execute("UPDATE customers SET city = %s WHERE id BETWEEN 10 AND 12", [f"moved {round_}"])

        yield Source("database", customers, 3, change)


@contextmanager
def files(folder: Path, share: float) -> Iterator[Source]:
    import duckdb

    customers, orders = int(300_000 * share), int(3_000_000 * share)
    place = folder / "project"
    project(place, FILES)

    def change(round_: int) -> None:
        duckdb.execute(
            f"COPY (SELECT i AS id, 'person ' || i AS name, CASE WHEN i % 100 = 7 THEN 'moved {round_}' ELSE "
            f"'city ' || i % 997 END AS city FROM range({customers}) AS t(i)) TO '{place}/customers.parquet'"
        )

    change(-1)
    duckdb.execute(
        f"COPY (SELECT i AS id, i * 7919 % {customers} AS customer_id, (i % 5000 + 0.25)::DECIMAL(12,2) AS total, "
        f"['paid','sent','open'][i % 3 + 1] AS status, DATE '2026-01-01' + (i % 300)::INTEGER AS placed_on "
        f"FROM range({orders}) AS t(i)) TO '{place}/orders.parquet'"
    )
    yield Source("files", customers, customers // 100, change)


def project(folder: Path, models: dict[str, str]) -> None:
    for name, text in {**models, "lib/nothing.star": NOTHING}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--serve" in arguments:
        serve(arguments[-2], Path(arguments[-1]))
    else:
        wanted = [name for name in ("database", "files") if name in arguments] or ["database", "files"]
        count = int(arguments[arguments.index("--rounds") + 1]) if "--rounds" in arguments else 6
        main(wanted, count, 0.1 if "--small" in arguments else 1.0)
