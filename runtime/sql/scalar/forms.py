"""Functions whose answer is the same in DuckDB and in Spark for every value of these types: names (with `::` a cast to
that type), what each argument has to be (see arguments.py), and Spark's text.

In it {0}, {1}… stand for the arguments, {name} and {to} for the function's own name and type. Where the text is a
function it is given the constants among the arguments, and has none where the answer may differ.
"""

from __future__ import annotations

from . import letters, regexps, spellings, strftime
from .arguments import DATE, MOMENT

_PARTS = "year month day quarter dayofyear"
_DAYS = "CAST(unix_date(CAST({2} AS DATE)) AS BIGINT) - CAST(unix_date(CAST({1} AS DATE)) AS BIGINT)"
_FAR = "WHEN {0} IS NOT NULL THEN date_from_unix_date(IF({0} > TIMESTAMP_NTZ'1970-01-01', 2147483647, -2147483647))"
#: The largest finite double, behind which Spark's order has infinity and NaN.
_LARGEST = "1.7976931348623157E308D"


def _rounded(places: object = 0) -> str | None:
    """Halves away from 0. Where the product is a half only since it was rounded itself, DuckDB goes by what that left
    out, which comes out of the number in two parts of half its digits. A product that is too large is left."""
    if type(places) is not int or not 0 <= places <= 8:
        return None
    raised = f"({{0}} * 1E{places}D)" if places else "{0}"
    high = "(134217729D * {0} - (134217729D * {0} - {0}))"
    rest = f"(({high} * 1E{places}D - {raised}) + ({{0}} - {high}) * 1E{places}D) * signum({{0}})"
    away = f"CASE WHEN {rest} >= 0D THEN 0.5D ELSE -0.5D END" if places else "0.5D"
    whole = f"CASE WHEN abs({raised} - rint({raised})) = 0.5D THEN signum({{0}}) * (abs({raised}) + {away})"
    return f"CASE WHEN abs({raised}) <= {_LARGEST} THEN ({whole} ELSE rint({raised}) END) / 1E{places}D ELSE {{0}} END"


def _begun(unit: object) -> str | None:
    """The first moment of a unit of days: Spark's own function for moments goes through a time zone."""
    if unit not in ("year", "quarter", "month", "week", "day"):
        return None
    day = "CAST({1} AS DATE)" if unit == "day" else f"trunc(CAST({{1}} AS DATE), '{unit}')"
    return f"CASE WHEN {_of(MOMENT, 1)} THEN CAST({day} AS TIMESTAMP_NTZ) ELSE {{1}} END"


def _of(condition: str, at: int) -> str:
    return condition.replace("{0}", f"{{{at}}}")


def _sorted(least: str) -> str:
    """Without NULLs, which only then is nowhere found, by the quicker of Spark's two functions."""
    return f"CASE WHEN NOT array_contains({{0}}, {least}) THEN sort_array({{0}}) ELSE array_sort({{0}}) END"


FORMS = (
    ("||", "text text", "({0} || {1})"),
    ("~~", "text pattern", "({0} LIKE {1})"),
    ("!~~", "text pattern", "({0} NOT LIKE {1})"),
    ("~~*", "text given", letters.like_as_it_is),
    ("~~*", "word given", letters.like),
    ("!~~*", "text given", letters.unlike_as_it_is),
    ("!~~*", "word given", letters.unlike),
    ("^@ starts_with prefix", "text text", "startswith({0}, {1})"),
    ("ends_with suffix", "text text", "endswith({0}, {1})"),
    ("contains", "text text", "contains({0}, {1})"),
    ("length len char_length character_length", "text", "CAST(char_length({0}) AS BIGINT)"),
    ("strlen", "text", "CAST(octet_length({0}) AS BIGINT)"),
    ("upper ucase", "word", letters.upper),
    ("lower lcase", "word", letters.lower),
    ("replace", "text text text", "replace({0}, {1}, {2})"),
    ("substring substr", "text place", "substring({0}, {1})"),
    ("substring substr", "text place length", "substring({0}, {1}, {2})"),
    ("left", "text length", "substring({0}, 1, {1})"),
    ("md5", "text", "md5({0})"),
    ("sha1", "text", "sha1({0})"),
    ("sha256", "text", "sha2({0}, 256)"),
    ("regexp_matches", "text given", regexps.matches),
    ("regexp_full_match", "text given", regexps.matches_whole),
    ("regexp_extract", "text given", regexps.extracted),
    ("regexp_extract", "text given given", regexps.extracted),
    ("regexp_replace", "text given given", regexps.replaced),
    ("regexp_replace", "text given given given", regexps.replaced),
    ("nullif greatest least", "same same", "{name}({0}, {1})"),
    ("+", "number number", "({0} + {1})"),
    ("-", "number number", "({0} - {1})"),
    ("*", "number number", "({0} * {1})"),
    ("%", "same divisor", "({0} % {1})"),
    ("//", "same divisor", "CAST({0} div {1} AS {to})"),
    ("round", "double", _rounded),
    ("round", "double given", _rounded),
    ("list_sort array_sort", "numbers", _sorted("-77Y")),
    ("list_sort array_sort", "texts", _sorted("'-77'")),
    ("VARCHAR::", "spelt", "CAST({0} AS STRING)"),
    ("TINYINT:: SMALLINT:: INTEGER:: BIGINT::", "usual", spellings.cast()),
    ("DATE::", "usual", spellings.cast("coalesce(octet_length({0}), 10) = 10")),  # of four digits a year
    ("DATE::", "moment", f"CASE WHEN {MOMENT} THEN CAST({{0}} AS DATE) {_FAR} END"),
    (_PARTS, "date", f"CASE WHEN {DATE} THEN CAST({{name}}({{0}}) AS BIGINT) END"),
    (f"{_PARTS} hour minute", "moment", f"CASE WHEN {MOMENT} THEN CAST({{name}}({{0}}) AS BIGINT) END"),
    ("date_trunc datetrunc", "given moment", _begun),
    (
        "date_trunc datetrunc",
        "unit moment",
        f"CASE WHEN {_of(MOMENT, 1)} THEN CAST(date_trunc({{0}}, {{1}}) AS TIMESTAMP_NTZ) ELSE {{1}} END",
    ),
    (
        "date_diff datediff",
        "today moment moment",
        f"CASE WHEN {_of(MOMENT, 1)} AND {_of(MOMENT, 2)} THEN {_DAYS} END",
    ),
    ("date_diff datediff", "today date date", f"CASE WHEN {_of(DATE, 1)} AND {_of(DATE, 2)} THEN {_DAYS} END"),
    ("strftime", "date given", strftime.of_day),
    ("strftime", "moment given", strftime.of_moment),
)
