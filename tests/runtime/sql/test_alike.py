"""Which everyday functions Spark computes, since it gives DuckDB's answer for every value (tests/dialect compares the
answers), and which forms of them stay DuckDB's."""

from __future__ import annotations

import pytest

from runtime.model import Column
from runtime.sql import translate
from runtime.sql.asking.gate import gate
from runtime.sql.asking.types import parse, spark_type
from runtime.sql.scalar import letters

KINDS = {
    "id": "BIGINT",
    "i": "INTEGER",
    "s": "VARCHAR",
    "t": "TIMESTAMP",
    "z": "TIMESTAMPTZ",
    "d": "DATE",
    "l": "INTEGER[]",
    "x": "DOUBLE",
    "b": "BOOLEAN",
}
COLUMNS = tuple(Column(name, kind, spark_type(parse(kind))) for name, kind in KINDS.items())
SPARK = r"""
s || '-' || s
s LIKE 'a%'
s NOT LIKE '%_x'
starts_with(s, 'a') AND ends_with(s, 'z') OR contains(s, 'm')
length(s) + strlen(s)
replace(s, 'a', '')
substring(s, 2)
substr(s, 1, 3)
left(s, 2)
md5(s) || sha1(s) || sha256(s)
nullif(s, '')
nullif(id, 0)
greatest(id, i)
id % 2
i // 10
list_sort(l)
i::VARCHAR || b::VARCHAR
t::DATE
year(t) * 100 + month(d)
extract(quarter FROM d)
date_part('hour', t)
date_trunc('month', t)
date_diff('day', t, TIMESTAMP '2026-01-01')
CASE WHEN s LIKE 'a%' THEN left(s, 1) ELSE id::VARCHAR END
upper(s) = lcase(s)
s ILIKE 'a%' OR s NOT ILIKE '%9%'
strftime(t, '%Y-%m-%d %H:%M:%S') || strftime(d, '%B %-d')
round(x, 2) + round(x * 2 - id)
to_json({'i': id, 'n': s || 'x'})
list_transform(l, lambda x: x * 2)
list_transform(l, lambda x: x - 1)
s ~ '^\d{3}[a-z]+$' AND regexp_full_match(s, 'a\.b')
regexp_extract(s, '\d+') || regexp_extract(s, '^(\w+)-(\d{2})', 2)
regexp_replace(s, '[^a-z_]+', '#') || regexp_replace(s, ',', '.', 'g')
""".strip().splitlines()
DUCKDB = r"""
s LIKE s
s LIKE 'a\_b'
s ILIKE s
s ILIKE 'a\_b'
length(l)
substring(s, 0)
substring(s, -2, 1)
substring(s, i)
left(s, -1)
nullif(x, 0)
greatest(x, x)
id % i
id % 0
id // -2
x // 2
x::VARCHAR
t::VARCHAR
TRY_CAST(t AS DATE)
year(z)
z::DATE
extract(century FROM d)
date_trunc('decade', t)
date_trunc('month', d)
date_diff('month', t, t)
date_diff('day', z, z)
upper(s || s)
(s COLLATE NOCASE) LIKE 'a%'
list_sort([x])
strftime(t, '%Y %c')
strftime(t, '%m%-m')
round(random(), 1)
round(x, -1)
round(x, 9)
round(x, i)
round(x * x * x * x, 1)
to_json({'i': x})
to_json({'a "b"': id})
list_transform(l, lambda x: x / 2)
list_transform(l, lambda x: x + id)
list_transform(l, lambda x: x + 5000000000)
s ~ 'a|b'
s ~ '\s+'
s ~ '.*x'
s ~ '(a+)+b'
s ~ '\d+x'
s ~ '\d+$'
s ~ 'a*'
regexp_matches(s, 'a', 'i')
regexp_extract(s, '\d+', 1)
regexp_replace(s, '(a)', '\1')
regexp_replace(s, 'a', '$')
regexp_replace(s, 'a', 'b', 'i')
""".strip().splitlines()


def calls(expression: str) -> int:
    sql = f"SELECT {expression} AS v FROM t"
    return len(translate(sql, dialect="duckdb", tables={"main.t": COLUMNS}, project_dir="/nowhere").calls)


@pytest.mark.parametrize("expression", SPARK)
def test_what_is_alike_needs_no_worker(expression: str) -> None:
    assert calls(expression) == 0


@pytest.mark.parametrize("expression", DUCKDB)
def test_what_may_differ_is_duckdbs(expression: str) -> None:
    assert calls(expression) == 1


def test_what_is_dear_goes_along_with_what_duckdb_is_asked_anyway() -> None:
    sql = "SELECT id, upper(s) AS u, reverse(s) AS r, round(x, 1) AS x, s || '!' AS e FROM t WHERE lower(s) <> 'x'"
    found = translate(sql, dialect="duckdb", tables={"main.t": COLUMNS}, project_dir="/nowhere")
    asked = [text for call in found.calls for text, _, _ in call.expressions]
    assert (len(found.calls), sorted(asked)) == (1, ["reverse(i0)", "round(i1, 1)", "upper(i0)"])


def test_no_character_behind_those_that_are_asked_for_has_a_case() -> None:
    rows = f"range({letters.LAST}, 1114112) t(i)"
    assert gate().run(f"SELECT chr(i::INTEGER) AS a FROM {rows} WHERE upper(a) <> a OR lower(a) <> a") == []
