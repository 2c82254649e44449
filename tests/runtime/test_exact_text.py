"""Numbers that a push function writes as text read back as the same numbers, whichever way it writes them."""

from __future__ import annotations

import json
import math
import random
import struct
from typing import Any

import pytest
from push_bench import ROWS, Bench, outcomes, row

from runtime.push.exact_text import exact

FLOATS = [0.0, -0.0, 1.5, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e23, 1234567.5, 1e6]
FLOATS += [999999999999999.9, 9007199254740993.0, 9.604308447003244e-06, 1e-05, 1 / 3, 1e16, -67464129244720.24]


def doubles(n: int) -> list[float]:
    chance = random.Random(16)
    bits = (struct.unpack("d", struct.pack("Q", chance.getrandbits(64)))[0] for _ in range(n))
    return [x for x in bits if math.isfinite(x)]


WAYS = ["str(x)", '"%s" % x', '"%s %r" % ("", x)', '"{}".format(x)', '"{a}".format(a=x)', 'f"{x}"', "json.encode(x)"]
WAYS += ["repr(x)", '"{}".format(*[x])', '"{a}".format(**{"a": x})', "[str][0](x)", '"".join([str(v) for v in [x]])']


@pytest.mark.parametrize("way", WAYS)
def test_every_double_reads_back_as_itself(bench: Bench, way: str) -> None:
    values = [*FLOATS, *doubles(500)]
    found = bench.see("for x in rows[0]['v']:", f"    show({way})", rows=[row(1, v=values)])
    assert [(float(text), "-" in text.strip()[:1]) for text in found] == [(x, repr(x)[0] == "-") for x in values]


@pytest.mark.parametrize("way", WAYS)
def test_every_whole_number_and_decimal_keeps_its_digits(bench: Bench, way: str) -> None:
    whole = [12345678901234567890123456789012345678, -(10**37), 2**63, 0]
    found = bench.see("for x in rows[0]['v']:", f"    show({way})", rows=[row(1, v=whole)])
    assert [int(text) for text in found] == whole
    decimal = "12345678901234567890123456789.123456789"  # as text, because no double holds it
    assert bench.see(f'x = rows[0]["v"]\nshow({way})', rows=[row(1, v=decimal)])[0].strip().strip('"') == decimal


def test_text_is_written_as_people_do(bench: Bench) -> None:
    assert bench.see("for x in rows[0]['v']:", "    show(str(x))", rows=[row(1, v=FLOATS)])[6:12] == [
        "1.7976931348623157e+308",
        "1e+23",
        "1234567.5",
        "1000000.0",
        "999999999999999.9",
        "9007199254740992.0",
    ]


@pytest.mark.parametrize("way", ["str(v)", '"%s" % v', '"%s" % (v,)', '"{}".format(v)', 'f"{v}"', "repr(v)"])
@pytest.mark.parametrize(
    "value, text",
    [
        ('[1234567.5, "a"]', '[1234567.5, "a"]'),
        ('{"a": (1e23, {1234567.5: None})}', '{"a": (1e+23, {1234567.5: None})}'),
        ("(1e23,)", "(1e+23,)"),
        ('struct(a=1e23, b=["x"])', 'struct(a=1e+23, b=["x"])'),
        ("[1.5, True]", "[1.5, True]"),
    ],
)
def test_numbers_within_other_values_are_written_whole(bench: Bench, way: str, value: str, text: str) -> None:
    assert bench.see(f"v = {value}", f"show({way})") == [text if way != '"%s" % v' or value[0] != "(" else text[1:-2]]


def test_what_rounds_still_rounds_and_is_refused_where_it_would_be_wrong(bench: Bench) -> None:
    assert bench.see('show("%e %g %f %d" % (1234567.5, 67464129244720.24, 1234567.5, 1234567.5))') == [
        "1.234568e+06 6.746413e+13 1234567.500000 1234567"
    ]
    for letter, number in (("g", "999999999999999.9"), ("e", "5e-324")):
        message = bench.push(f'def push(rows):\n    return "%{letter}" % {number}\n', [ROWS[0]]).outcomes[0].message
        assert message == (
            f"%{letter} cannot write {number}: write it whole, with str() or %s (lib/crm.star line 3, in push)"
        )


def test_an_error_of_a_call_shows_its_numbers_whole(bench: Bench) -> None:
    result = bench.push('def push(rows):\n    fail("over", 1234567.5, {"a": 1e23})\n', [ROWS[0]])
    assert outcomes(result)[0][1] == 'over 1234567.5 {"a": 1e+23}'


@pytest.mark.parametrize(
    "text, value",
    [
        ("7 % 3 % 2", 1),
        ("2 * 7 % (3 + 1)", 2),
        ("x%y%z", 1),
        ('"%s%%" % (x % y)', "3%"),
        ('("%s" # 100 %\n    % x)', "7"),
        ('"a%s" \\\n    % x', "a7"),
        ('"%s-%s" % ("{}".format(x), f"{y}b{z}{{}}")', "7-4b2{}"),
        ('f"""a\n{x}\n"""', "a\n    7\n    "),  # within an indented function
        ('f""', ""),
        ('"é%s" % x + "é" + "%s" % y', "é7é4"),
        ("[str(v) for v in [x, y] if v % 2]", ["7"]),
        ('(lambda a: "%s" % a)(x)', "7"),
        ('"%s" % (x if x % 2 else y)', "7"),
        ("{str(x): str}[str(7)](y)", "4"),
        ('"{}".format((x))', "7"),
        ('"%s" % (x, )', "7"),
    ],
)
def test_any_other_text_means_what_it_did(bench: Bench, text: str, value: Any) -> None:
    assert bench.see(f"x, y, z = 7, 4, 2\nshow({text})") == [value]
    assert exact(text).count("\n") == text.count("\n")


def test_a_remainder_of_a_name_is_kept_in_it(bench: Bench) -> None:
    lines = ["x = 7\nx %= 4\ns = '%s-%s'\ns %= x, 'a'\nt = {'a': 7}\nt['a'] %= 4", "show([x, s, t])"]
    assert bench.see(*lines) == [[3, "3-a", {"a": 3}]]


def test_types_and_own_functions_of_these_names_stay(bench: Bench) -> None:
    text = "def repr(x: str) -> str:\n    return 'own ' + x\n\ndef push(rows):\n    return repr('a')\n"
    assert exact(text) == text
    assert "own a" in str(bench.push(text, [ROWS[0]]).outcomes[0].message)


def test_a_line_with_an_error_is_still_that_line(bench: Bench) -> None:
    message = (
        bench.push('def push(rows):\n    a = f"""\n    """\n    return "%d" % "x"\n', [ROWS[0]]).outcomes[0].message
    )
    assert "(lib/crm.star line 5, in push" in str(message)


def test_json_of_a_number_is_that_number(bench: Bench) -> None:
    values = [*FLOATS, *doubles(300)]
    (text,) = bench.see("show(json.encode(rows[0]['v']))", rows=[row(1, v=values)])
    assert json.loads(text) == values
