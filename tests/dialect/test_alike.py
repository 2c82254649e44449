"""What Spark computes itself, since its answer is DuckDB's (runtime/sql/scalar/forms.py), over values at the edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import against
import duckdb
import generated
import pytest

from runtime.lake import effort
from runtime.sql.scalar.letters import LAST

pytestmark = pytest.mark.slow
SINGLE = "i NOT BETWEEN 55296 AND 57343"  # characters that are not half of one
#: Rows beside those that the generator makes: `c_varchar`, `c_timestamp`, `c_double`, `c_bigint`.
ROWS = (
    (r"chr(10) || 'line' || chr(13) || chr(10) || 'break1'", "'-infinity'", "0.5", "-9223372036854775807"),
    (r"'a' || chr(0) || 'b' || chr(31) || chr(127) || chr(8232) || '/\"'", "'0044-03-15 (BC) 01:02:03'", "-0.5", "7"),
    ("'İıſKß ŉ ΐ ﬁ ẞ ǅ ა Ა ꭰ Ꭰ'", "'290000-01-01 (BC) 12:00:00'", "1.5", "1"),
    ("'𐐀𐐨𞤀𞤢 Σς ΑΣ'", "'290000-01-01 12:34:56.789'", "2.5", "0"),
    ("'2024-02-29 12:34 x12-34 999'", "'294247-01-10 04:00:54.775806'", "-2.675", "9"),
    ("'٣٤ １２ 12é'", "'0000-01-01'", "4503599627370497.5", "-1"),
    ("'user_1@example.com'", "'0999-12-31 23:59:59.999999'", "1e307", "5"),
    ("'aaa' || repeat('a', 300) || '1.5'", "'2021-01-03 23:59:59.5'", "0.49999999999999994", "12"),
    (r"'\d $1 {0} %_ \'", "'1969-12-31 23:59:59.999999'", "-5e-7", "100"),
    (f"(SELECT string_agg(chr(i::INTEGER), '') FROM range(1, {LAST}) t(i) WHERE {SINGLE})", "NULL", "NULL", "2"),
)
EXPRESSIONS = r"""
upper(c_varchar)
lower(c_varchar)
c_varchar ILIKE '%K%'
c_varchar ILIKE 'i%'
c_varchar ILIKE '%ß%'
c_varchar NOT ILIKE '%A_'
c_varchar ILIKE '%1_5%'
c_varchar ILIKE '%{0}%'
upper(c_varchar) = lower(c_varchar)
strftime(c_timestamp, '%Y-%m-%d %H:%M:%S')
strftime(c_timestamp, '%j %B %b %-d.%-m {0}''Y')
strftime(c_date, '%Y/%m/%d')
strftime(c_date, '%A (%a), %-d %B %Y, day %j of %Y')
round(c_double)
round(c_double, 1)
round(c_double, 2)
round(c_double, 6)
round(c_double, 8)
round(c_double * 3, 2)
round(c_double - c_double, 1)
round(c_integer + 0.5::DOUBLE)
to_json({'b': c_bigint, 't': c_tinyint, 'v': c_varchar, 'o': c_boolean})
to_json({'v': c_varchar || '"{0}"', 'n': NULL::VARCHAR})
list_sort(c_integer_list)
list_sort(c_varchar_list)
list_transform(c_integer_list, lambda x: x * 2)
list_transform(c_integer_list, lambda y: y - 7)
list_transform(c_integer_list, lambda x: x + 1)
date_trunc('year', c_timestamp)
date_trunc('quarter', c_timestamp)
date_trunc('month', c_timestamp)
date_trunc('week', c_timestamp)
date_trunc('day', c_timestamp)
date_trunc('hour', c_timestamp)
c_varchar ~ '\d+'
c_varchar ~ '^\w{2}'
c_varchar ~ '[^a-z]$'
c_varchar ~ '^\D+$'
c_varchar ~ '\{0\}'
regexp_full_match(c_varchar, '[a-z]+')
regexp_full_match(c_varchar, '\W\W')
regexp_extract(c_varchar, '\d+')
regexp_extract(c_varchar, '\W+')
regexp_extract(c_varchar, '[^a]{2,5}')
regexp_extract(c_varchar, '(\d{4})-(\d{2})', 2)
regexp_extract(c_varchar, '^([^@]+)@([a-z]{1,9})', 1)
regexp_extract(c_varchar, 'é')
regexp_replace(c_varchar, '\d+', '#')
regexp_replace(c_varchar, '\d+', '{0}', 'g')
regexp_replace(c_varchar, '\D+', '12')
regexp_replace(c_varchar, '[^0-9]', '', 'g')
regexp_replace(c_varchar, '^a+', '_')
regexp_replace(c_varchar, '(a)(a)', '0')
regexp_replace(c_varchar, '\W', '?', 'g')
regexp_replace(c_varchar, 'a{2,3}', '')
""".strip().splitlines()


def test_sparks_own_answers_are_duckdbs(spark: Any, tmp_path: Path) -> None:
    con = duckdb.connect(config={"threads": 1})
    con.execute("SET TimeZone = 'UTC'")
    generated.table(con, 1)
    for at, (text, moment, double, whole) in enumerate(ROWS):
        row = f"{90 + at}, 'a', {text}, {moment}, CAST(CAST({moment} AS TIMESTAMP) AS DATE), {double}, {whole}"
        con.execute(f"INSERT INTO edges (id, k, c_varchar, c_timestamp, c_date, c_double, c_bigint) VALUES ({row})")
    con.execute("INSERT INTO edges (id, k, c_date) VALUES (88, 'a', '5000000-12-31'), (89, 'b', '5000000-03-01 (BC)')")
    con.execute("UPDATE edges SET c_integer_list = [2, NULL, 1, -77], c_varchar_list = ['é', 'z', '-77'] WHERE id > 95")

    columns = against.view(spark, con, tmp_path)
    assert [e for e in EXPRESSIONS if against.translated(f"SELECT {e} AS x FROM edges", columns).calls] == []
    found = against.Found(asked=len(EXPRESSIONS))
    kinds = {e: ("", con.execute(f"DESCRIBE SELECT {e} AS x FROM edges").fetchall()[0][1]) for e in EXPRESSIONS}
    with effort.fit(spark, 0):
        against.compare(spark, con, EXPRESSIONS, against.SCALAR, kinds, columns, found)
    assert (found.different, found.right) == ({}, len(EXPRESSIONS))
