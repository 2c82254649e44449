"""A project whose every file is made to hold the check up: each is told, soon, and nothing of it comes about."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from runtime.custody.secrets import Secrets
from runtime.errors import Problem
from runtime.project.check import check_project

BIG = "1500000000"
MODELS = [
    *(f"SELECT length(repeat('ab', {BIG})) + {n} AS a" for n in range(5)),
    f"SELECT list_resize([1], {BIG}) AS a",
    f"SELECT len(range({BIG})) AS a",
    f"SELECT lpad('a', {BIG}, 'b') AS a",
    f"SELECT printf('%{BIG}d', 1) AS a",
    f"SELECT format('{{:>{BIG}}}', 1) AS a",
    "SELECT repeat(repeat(repeat('a', 90000), 90000), 90000) AS a",
    "SELECT list_transform(range(90000), lambda x: range(90000)) AS a",
    "SELECT list_reduce([" + ", ".join(f"'{n}'" for n in range(60)) + "], lambda a, b: a || a) AS a",
    "SELECT levenshtein(repeat('ab', 5000000), repeat('ba', 5000000)) AS a",
    "SELECT 1 AS a0" + "".join(f", a{i} + a{i} AS a{i + 1}" for i in range(40)),
    "WITH c0 AS (SELECT 1 AS x)"
    + "".join(f", c{i + 1} AS (SELECT * FROM c{i} AS p, c{i} AS q)" for i in range(30))
    + " SELECT * FROM c30",
    "SELECT " + "(" * 100_000 + "1" + ")" * 100_000 + " AS a",
    "SELECT " + "- " * 50_000 + "1 AS a",
    "SELECT " + "[" * 50_000 + "1" + "]" * 50_000 + " AS a",
    "SELECT list_transform(range(90000), lambda x: repeat('a', 90000)) AS a",
    "SELECT " + "CASE WHEN true THEN 1 ELSE " * 900 + "0" + " END" * 900 + " AS a",
    "SELECT '" + "x" * 1_100_000 + "' AS a",
    "SELECT * FROM " + "(SELECT * FROM " * 3_000 + "(SELECT 1 AS a)" + ")" * 3_000,
    "SELECT 1::" + "INT" + "[]" * 5_000 + " AS a",
    "SELECT \x00 AS a",
    "SELECT 'a",
    "SELECT /* a",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r) SELECT * FROM r",
    "FROM read_csv((SELECT string_agg(column0, '|') FROM read_csv('/etc/passwd', header = false)))",
    "FROM read_csv('/etc/passwd')",
    "FROM read_csv('../**')",
    "FROM read_csv('/proc/self/environ')",
    "FROM delta_scan('/etc')",
    "FROM glob('/**')",
    "FROM read_text('/etc/passwd')",
    "SELECT getenv('HOME') AS a",
    "ATTACH '/tmp/x.db'",
    "COPY (SELECT 1) TO '/tmp/x'",
    "PRAGMA database_list",
    "-- @dialect: spark\nSELECT reflect('java.lang.System', 'exit', 1) AS a",
    "-- @dialect: spark\nSELECT TRANSFORM(1) USING 'id' AS (a STRING)",
    "-- @dialect: spark\nSELECT * FROM csv.`/etc/passwd`",
    "-- @dialect: spark\nSELECT 'x' -- \\\n || '\n || reflect('a', 'b') -- '\n AS a",
    "-- @dialect: spark\nSELECT " + "(" * 20_000 + "1" + ")" * 20_000 + " AS a",
    "-- @dialect: spark\nSELECT '" + "\\" * 20_001 + "' AS a",
    "-- @dialect: spark\nADD JAR '/tmp/x.jar'",
]

API = 'API = {"base_url": "https://crm.example", "destination": {"type": "CRM", "object": "Contact"}}\n'
PUSH = "def push(rows):\n    return {}\n"
DEEP = "    for _ in range(300000):\n        s = struct(a=s)\n"
TWICE = "    for _ in range(60):\n        x, y = [x, x], [y, y]\n"
LIBRARIES = [
    "X = list(range(1 << 30))\n",
    "X = 'a' * (1 << 40)\n",
    "X = ['a' * 2000000000, 'b' * 2000000000]\n",
    "def f():\n    for _ in range(1 << 30):\n        pass\nX = f()\n",
    f"def f():\n    x, y = [1], [1]\n{TWICE}    return x == y\nX = f()\n",
    f"def f():\n    s = 1\n{DEEP}    return str(s)\nX = f()\n",
    "def f():\n    return f()\nX = f()\n",
    "X = ','.join(['ab' * 20000000] * 200)\n",
    "X = ('{0}' * 100000).format('y' * 300000)\n",
    "X = ('a' * 100000).replace('a', 'b' * 3000000)\n",
    "X = json.decode('[' * 100000)\n",
    "X = " + "(" * 5_000 + "\n",
    "X = " + "-" * 5_000_000 + "1\nfail('x')\n",
    "X = " + "[" * 9_000 + "]" * 9_000 + "\nfail('x')\n",
    "load('../../../etc/passwd', 'x')\n",
    "load('lib/l015.star', 'x')\n",
    "fail('x' * 1000000)\n",
    "X = http.get('http://localhost/')\n",
    "while True:\n    pass\n",
    "import os\n",
]


@pytest.mark.slow
def test_a_hundred_hostile_files_are_each_told_within_half_a_minute(tmp_path: Path) -> None:
    texts = (MODELS * 2)[: 100 - len(LIBRARIES)]
    files = [_model(tmp_path, n, text) for n, text in enumerate(texts)]
    files += [_library(tmp_path, n, text) for n, text in enumerate(LIBRARIES)]

    started = _spent()
    _, problems = check_project(tmp_path, secrets=Secrets({}, "a test"))
    took = _spent() - started

    said: dict[str, list[Problem]] = {}
    for problem in problems:
        said.setdefault(problem.file, []).append(problem)
    assert len(files) == 100 and [file for file in files if file not in said] == []
    assert [p for p in problems if p.line < 1 or "\n" in p.message or len(p.message) >= 2_000] == []
    assert "root:" not in str(problems)
    assert took < 30


def _spent() -> float:
    """Seconds that this process and those that it ended have computed: what is measured on a machine that does much
    else is what it would take on one that does not."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _model(project: Path, number: int, text: str) -> str:
    """Writes it, each text once; where it lies."""
    head, _, body = text.partition("\n") if text.startswith("-- @") else ("-- a model", "", text)
    return _written(project, f"models/m{number:03}.sql", f"{head}\n{body}\n-- {number}\n")


def _library(project: Path, number: int, text: str) -> str:
    """Writes it with a sync that sends by it."""
    sync = f"-- @kind: merge\n-- @unique_key: id\n-- @sink: l{number:03}\nSELECT {number} AS id\n"
    _written(project, f"models/s{number:03}.sql", sync)
    return _written(project, f"lib/l{number:03}.star", f"{API}{text}{PUSH}")


def _written(project: Path, file: str, text: str) -> str:
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text(text)
    return file
