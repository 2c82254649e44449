"""CAST, TRY_CAST and implicit casts as DuckDB makes them."""

from __future__ import annotations

from dataclasses import dataclass

from . import texts
from .model import Refused
from .types import Type, as_decimal, name_quoted, spark_type


@dataclass(frozen=True)
class E:
    """An expression as Spark text with its DuckDB type. `interval` are an INTERVAL's parts; `printed` JSON stands as
    DuckDB prints it."""

    text: str
    type: Type
    interval: tuple[tuple[str, str], ...] = ()
    printed: bool = False


_NUMBER = "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_ODD_NUMBER = "^[+-]?(0[xXbB][0-9a-fA-F]+|[0-9]+(_[0-9]+)+.*)$"
_DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
#: What DuckDB leaves out around numbers and days.
_SPACE = "' \\t\\n\\u000b\\u000c\\r'"
_TRIMMED = f"trim(BOTH {_SPACE} FROM sv)"
_CLOCK = "[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"


def cast(e: E, to: Type, try_: bool = False, where: int | None = None) -> E:
    """The value as `to`; refused where Spark could not give DuckDB's value."""
    if e.type == to or (e.type.name, to.name) in (("JSON", "VARCHAR"), ("UUID", "VARCHAR")):
        return E(e.text, to, printed=e.printed)
    spark = spark_type(to)
    word = "try_cast" if try_ else "CAST"
    text = _cast(e, to, spark, word, try_)
    if text is None:
        raise Refused(f"a cast from {e.type} to {to}", where)
    return E(text, to)


def _cast(e: E, to: Type, spark: str, word: str, try_: bool) -> str | None:
    a, b, x = e.type.letter, to.letter, e.text
    if a == "0":
        return f"CAST(NULL AS {spark})"
    if to.name in ("FLOAT", "UUID", "ENUM", "BLOB", "TIMESTAMP_S", "TIMESTAMP_MS") or e.type.name in (
        "FLOAT",
        "ENUM",
        "BLOB",
    ):
        return None
    if b == "i":
        return _to_integer(e, to, spark, word, try_)
    if to.name == "DOUBLE":
        return _to_double(e, word)
    if to.name == "DECIMAL":
        return _to_decimal(e, to, spark, word)
    if to.name == "BOOLEAN":
        return f"CAST({x} AS BOOLEAN)" if a in "i" else _to_boolean(x, word) if e.type.name == "VARCHAR" else None
    if to.name == "VARCHAR":
        return text_of(x, e.type)
    if to.name == "JSON":
        return valid_json(x, try_) if e.type.name == "VARCHAR" else texts.json_piece(x, e.type) if a != "s" else None
    if b in "DTZt":
        return _to_moment(e, to, spark, word, try_)
    return _to_nested(e, to, try_)


def _to_integer(e: E, to: Type, spark: str, word: str, try_: bool) -> str | None:
    if to.name.startswith("U") and not (e.type.name.startswith("U") and e.type.letter == "i"):
        return None
    if e.type.letter in "ib":
        return f"{word}({e.text} AS {spark})"
    if e.type.name == "DOUBLE":
        return f"{word}(rint({e.text}) AS {spark})"
    if e.type.name == "DECIMAL":
        return f"{word}(round({e.text}, 0) AS {spark})"
    if e.type.name != "VARCHAR":
        return None
    number = f"{word}(round({word}({_TRIMMED} AS DECIMAL(38,18)), 0) AS {spark})"
    return texts.bound(e.text, "sv", _guarded(number, try_))


def _guarded(number: str, try_: bool) -> str:
    """Text to number: plain decimal spellings only; other spellings that DuckDB reads as numbers stop the run."""
    other = "CAST(NULL AS STRING)" if try_ else "raise_error(concat('Could not convert string to number: ', sv))"
    return (
        f"CASE WHEN sv IS NULL THEN NULL WHEN {_TRIMMED} RLIKE '{_NUMBER}' THEN {number}"
        f" WHEN {_TRIMMED} RLIKE '{_ODD_NUMBER}' THEN CAST(raise_error(concat('a number spelt ', sv, ' is not "
        f"supported')) AS INT)"
        f" ELSE CAST({other} AS INT) END"
    )


def _to_double(e: E, word: str) -> str | None:
    if e.type.name == "DECIMAL":
        return texts.decimal_double(e.text, e.type)
    if e.type.letter in "ib":
        return f"CAST({e.text} AS DOUBLE)"
    if e.type.name == "VARCHAR":  # Java would read 1.5d and 1.5f as numbers
        return f"{word}(regexp_replace({e.text}, '([0-9.])\\\\s*[dDfF]\\\\s*$', '$1x') AS DOUBLE)"
    return None


def _to_decimal(e: E, to: Type, spark: str, word: str) -> str | None:
    if e.type.letter in "idb":
        return f"{word}({e.text} AS {spark})"
    if e.type.name == "VARCHAR":
        return texts.bound(e.text, "sv", f"CASE WHEN sv IS NULL THEN NULL ELSE {word}({_TRIMMED} AS {spark}) END")
    if e.type.name == "DOUBLE" and to.scale <= 6:  # DuckDB scales the double, then rounds
        scaled = (
            f"({word}(round({e.text} * 1e{to.scale}D, 0) AS DECIMAL(38,0)) / CAST('1{'0' * to.scale}' AS "
            f"DECIMAL({to.scale + 1},0)))"
        )
        return f"{word}({scaled} AS {spark})"
    return None


def _to_boolean(x: str, word: str) -> str:
    other = (
        "CAST(NULL AS BOOLEAN)"
        if word == "try_cast"
        else "CAST(raise_error(concat('Could not convert string to BOOL: ', sv)) AS BOOLEAN)"
    )
    return texts.bound(
        x,
        "sv",
        "CASE WHEN sv IS NULL THEN NULL WHEN lower(sv) IN ('true', 't', '1', 'yes', 'y') THEN true"
        f" WHEN lower(sv) IN ('false', 'f', '0', 'no', 'n') THEN false ELSE {other} END",
    )


def text_of(x: str, kind: Type) -> str | None:
    """DuckDB's CAST(… AS VARCHAR)."""
    if kind.letter in "idbDTt" or kind.name in ("UUID", "VARCHAR", "JSON"):
        return f"CAST({x} AS STRING)" if kind.letter != "s" else x
    if kind.name == "DOUBLE":
        return texts.double_text(x)
    if kind.name == "TIMESTAMPTZ":
        return f"concat(CAST({x} AS STRING), '+00')"
    if kind.name == "LIST" and kind.element.letter in "idbDT":
        inner = text_of("tv", kind.element)
        return f"concat('[', array_join(transform({x}, tv -> coalesce({inner}, 'NULL')), ', '), ']')"
    return None


def valid_json(x: str, try_: bool) -> str:
    """Text that is to be JSON: unchanged if it is, else DuckDB's error."""
    other = "NULL" if try_ else "raise_error('Malformed JSON')"
    return texts.bound(
        x, "sv", f"CASE WHEN sv IS NULL THEN NULL WHEN try_parse_json(sv) IS NOT NULL THEN sv ELSE {other} END"
    )


def _to_moment(e: E, to: Type, spark: str, word: str, try_: bool) -> str | None:
    a, x = e.type.letter, e.text
    if a == "s" and e.type.name == "VARCHAR":
        pattern = {
            "D": f"^{_DAY}\\z",
            "T": f"^{_DAY}([ T]{_CLOCK} *)?\\z",
            "Z": f"^{_DAY}([ T]{_CLOCK}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)? *)?\\z",
            "t": f"^{_CLOCK}\\z",
        }[to.letter]
        spelt = "sv RLIKE '[0-9]'"
        if to.letter in "TZ":  # blanks behind it, other than spaces behind a time of day, make it none
            spelt += f" AND NOT ltrim(sv) RLIKE {texts.string(f'^{_DAY}([ T]{_CLOCK})?{chr(92)}s+{chr(92)}z')}"
        other = (
            f"CASE WHEN {spelt} THEN raise_error(concat('a {to} spelt ', sv, ' is not supported')) END"
            if try_
            else f"raise_error(concat('invalid or unsupported {to}: ', sv))"
        )
        # only spaces, and only behind a time of day, may follow a timestamp
        bare = f"rtrim(trim(LEADING {_SPACE} FROM sv))" if to.letter in "TZ" else _TRIMMED
        tested = f"trim(LEADING {_SPACE} FROM sv)" if to.letter in "TZ" else _TRIMMED
        shaped = f"regexp_replace({bare}, '(:[0-9.]+[+-][0-9]{{2}})$', '$1:00')" if to.letter == "Z" else bare
        return texts.bound(
            x,
            "sv",
            f"CASE WHEN sv IS NULL THEN NULL WHEN {tested} RLIKE {texts.string(pattern)} THEN {word}({shaped} AS "
            f"{spark}) ELSE CAST({other} AS {spark}) END",
        )
    if to.letter == "t":
        return f"CAST(date_format({x}, 'HH:mm:ss.SSSSSS') AS TIME(6))" if a == "T" else None
    if a in "DTZ":
        return f"CAST({x} AS {spark})"
    return None


def _to_nested(e: E, to: Type, try_: bool) -> str | None:
    if (e.type.name, to.name) == ("LIST", "LIST"):
        inner = cast(E("cv", e.type.element), to.element, try_)
        return f"transform({e.text}, cv -> {inner.text})"
    if (
        (e.type.name, to.name) == ("STRUCT", "STRUCT")
        and [f.lower() for f in e.type.fields] == [f.lower() for f in to.fields]
        and all(to.fields)
    ):
        pairs = ", ".join(
            f"{texts.string(n)}, " + cast(E(f"cs.{name_quoted(m)}", t), w, try_).text
            for m, t, n, w in zip(e.type.fields, e.type.args, to.fields, to.args, strict=True)
        )
        return texts.bound(e.text, "cs", f"CASE WHEN cs IS NOT NULL THEN named_struct({pairs}) END")
    if (e.type.name, to.name) == ("MAP", "MAP"):
        key, value = cast(E("ck", e.type.args[0]), to.args[0], try_), cast(E("cw", e.type.args[1]), to.args[1], try_)
        return f"transform_values(transform_keys({e.text}, (ck, cw) -> {key.text}), (ck, cw) -> {value.text})"
    return None


def common(a: Type, b: Type) -> Type | None:
    """The type in which DuckDB compares two values, where Spark can follow; None else."""
    if a == b:
        return a
    if a.name == "NULL" or b.name == "NULL":
        return b if a.name == "NULL" else a
    if a.letter == "i" and b.letter == "i":
        return Type("HUGEINT") if "UBIGINT" in (a.name, b.name) or "HUGEINT" in (a.name, b.name) else Type("BIGINT")
    if a.is_numeric and b.is_numeric:
        if "FLOAT" in (a.name, b.name):
            return None
        if "DOUBLE" in (a.name, b.name):
            return Type("DOUBLE")
        left, right = as_decimal(a), as_decimal(b)
        whole, scale = max(left.precision - left.scale, right.precision - right.scale), max(left.scale, right.scale)
        return Type("DECIMAL", precision=whole + scale, scale=scale) if whole + scale <= 38 else None
    if {a.letter, b.letter} <= set("DTZ"):
        return a if a.letter == max(a.letter, b.letter, key="DTZ".index) else b
    if {a.name, b.name} == {"VARCHAR", "UUID"}:
        return Type("VARCHAR")
    return None
