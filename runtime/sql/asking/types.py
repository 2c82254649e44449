"""DuckDB's types as values, and the Spark type that holds each of them without loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT")
DIGITS = {
    "TINYINT": 3,
    "SMALLINT": 5,
    "INTEGER": 10,
    "BIGINT": 19,
    "UTINYINT": 3,
    "USMALLINT": 5,
    "UINTEGER": 10,
    "UBIGINT": 20,
    "HUGEINT": 38,
}
_SPARK = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "HUGEINT": "DECIMAL(38,0)",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING",
    "JSON": "STRING",
    "UUID": "STRING",
    "ENUM": "STRING",
    "BLOB": "BINARY",
    "DATE": "DATE",
    "TIME": "TIME(6)",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_S": "TIMESTAMP_NTZ",
    "TIMESTAMP_MS": "TIMESTAMP_NTZ",
    "TIMESTAMPTZ": "TIMESTAMP_LTZ",
    "NULL": "STRING",
    "INTERVAL": "STRING",
    "BIT": "STRING",
    "TIMESTAMP_NS": "STRING",
    "TIMETZ": "STRING",
}
# one letter for a family of types, used by the signatures of functions
_LETTER = {
    **dict.fromkeys(INTEGERS, "i"),
    "FLOAT": "f",
    "DOUBLE": "f",
    "DECIMAL": "d",
    "VARCHAR": "s",
    "JSON": "s",
    "DATE": "D",
    "TIMESTAMP": "T",
    "TIMESTAMP_S": "T",
    "TIMESTAMP_MS": "T",
    "TIMESTAMPTZ": "Z",
    "TIME": "t",
    "BOOLEAN": "b",
    "LIST": "l",
    "MAP": "m",
    "STRUCT": "r",
    "BLOB": "B",
    "INTERVAL": "v",
    "NULL": "0",
}
_ALIASES = {
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
    "TIME WITH TIME ZONE": "TIMETZ",
    '"NULL"': "NULL",
    "INT": "INTEGER",
    "TEXT": "VARCHAR",
    "STRING": "VARCHAR",
}


_SPELT = {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE", "TIMETZ": "TIME WITH TIME ZONE", "NULL": '"NULL"'}


class UnknownType(ValueError):
    """Raised for a type that has no lossless place in Spark."""


@dataclass(frozen=True)
class Type:
    """`args` are the types inside a LIST, MAP or STRUCT; `fields` the names of a STRUCT ("" when unnamed), or the
    values of an ENUM as one text; `precision` is also the size of an ARRAY."""

    name: str
    args: tuple[Type, ...] = ()
    fields: tuple[str, ...] = ()
    precision: int = 0
    scale: int = 0

    @property
    def letter(self) -> str:
        return _LETTER.get(self.name, "?")

    @property
    def is_numeric(self) -> bool:
        return self.letter in "ifd"

    @property
    def is_whole(self) -> bool:
        """Whether nothing of DuckDB's type is missing here, as the members of a UNION are."""
        return self.letter not in "?0" and all(a.is_whole for a in self.args)

    @property
    def element(self) -> Type:
        return self.args[0]

    def __str__(self) -> str:
        if self.name == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.name == "LIST":
            return f"{self.element}[]"
        if self.name == "ENUM" and self.fields:
            return f"ENUM({self.fields[0]})"
        if self.name == "ARRAY":
            return f"{self.element}[{self.precision}]"
        if self.name == "MAP":
            return f"MAP({self.args[0]}, {self.args[1]})"
        if self.name == "STRUCT":
            return (
                "STRUCT(" + ", ".join(f"{_name(n)} {t}" for n, t in zip(self.fields, self.args, strict=True)) + ")"
                if any(self.fields)
                else "TUPLE(" + ", ".join(map(str, self.args)) + ")"
            )
        return _SPELT.get(self.name, self.name)


BOOLEAN, INTEGER, BIGINT, HUGEINT, DOUBLE, VARCHAR, JSON, DATE, TIMESTAMP, TIMESTAMPTZ, NULL = map(
    Type,
    (
        "BOOLEAN",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "DOUBLE",
        "VARCHAR",
        "JSON",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMPTZ",
        "NULL",
    ),
)


def rows_of(columns: Iterable[tuple[str, Type]]) -> Type:
    """The type of a list of rows with these columns."""
    fields, kinds = zip(*columns, strict=True)
    return Type("LIST", (Type("STRUCT", kinds, fields),))


def decimal(precision: int, scale: int) -> Type:
    return Type("DECIMAL", precision=precision, scale=scale)


def as_decimal(t: Type) -> Type:
    """The decimal that holds every value of an integer type."""
    return decimal(DIGITS[t.name], 0) if t.name in DIGITS else t


@lru_cache(4096)
def parse(text: str) -> Type:
    """The type that DESCRIBE printed as `text`."""
    text = text.strip()
    if text.endswith("[]"):
        return Type("LIST", (parse(text[:-2]),))
    if text.endswith("]"):
        at = text.rindex("[")
        return Type("ARRAY", (parse(text[:at]),), precision=int(text[at + 1 : -1]))
    head, _, rest = text.partition("(")
    head = head.strip().upper()
    if rest and head == "DECIMAL":
        precision, scale = rest[:-1].split(",")
        return decimal(int(precision), int(scale))
    if rest and head == "MAP":
        return Type("MAP", tuple(parse(p) for p in split(rest[:-1])))
    if rest and head == "TUPLE":
        inner = tuple(parse(p) for p in split(rest[:-1]))
        return Type("STRUCT", inner, ("",) * len(inner))
    if rest and head == "STRUCT":
        pairs = [_field(p) for p in split(rest[:-1])]
        return Type("STRUCT", tuple(t for _, t in pairs), tuple(n for n, _ in pairs))
    if rest and head == "ENUM":
        return Type(head, fields=(rest[:-1],))
    if rest and head == "UNION":
        return Type(head)
    return Type(_ALIASES.get(text.upper(), text.upper()))


def _name(name: str) -> str:
    return (
        name
        if name.isidentifier() and name.islower() and name.isascii() and name not in _RESERVED
        else '"' + name.replace('"', '""') + '"'
    )


_RESERVED = {
    "all", "analyse", "analyze", "and", "anti", "any", "array", "as", "asc", "asof", "asymmetric", "at",
    "authorization", "between", "bigint", "binary", "bit", "boolean", "both", "by", "case", "cast", "char",
    "character", "check", "coalesce", "collate", "collation", "column", "columns", "concurrently", "constraint",
    "create", "cross", "dec", "decimal", "default", "deferrable", "desc", "describe", "distinct", "do", "else",
    "end", "except", "exists", "extract", "false", "fetch", "float", "for", "foreign", "freeze", "from", "full",
    "generated", "glob", "group", "grouping", "grouping_id", "having", "ilike", "in", "initially", "inner", "inout",
    "int", "integer", "intersect", "interval", "into", "is", "isnull", "join", "lambda", "lateral", "leading",
    "left", "like", "limit", "map", "national", "natural", "nchar", "none", "not", "notnull", "null", "nullif",
    "numeric", "offset", "on", "only", "or", "order", "out", "outer", "overlaps", "overlay", "pivot",
    "pivot_longer", "pivot_wider", "placing", "position", "positional", "precision", "primary", "qualify", "real",
    "references", "returning", "right", "row", "select", "semi", "setof", "show", "similar", "smallint", "some",
    "struct", "substring", "summarize", "symmetric", "table", "tablesample", "then", "time", "timestamp", "to",
    "trailing", "treat", "trim", "true", "try_cast", "tuple", "union", "unique", "unpack", "unpivot", "using",
    "values", "varchar", "variadic", "verbose", "when", "where", "window", "with", "xmlroot",
}  # fmt: skip


def _field(text: str) -> tuple[str, Type]:
    text = text.strip()
    if text.startswith('"'):
        end = 1
        while text[end] != '"' or text[end : end + 2] == '""':
            end += 2 if text[end] == '"' else 1
        if not text[end + 1 :].strip():
            return "", parse(text)
        return text[1:end].replace('""', '"'), parse(text[end + 1 :])
    name, _, kind = text.partition(" ")
    if not kind or "(" in name or text.upper() in _ALIASES:
        return "", parse(text)
    return name, parse(kind)


def split(text: str) -> list[str]:
    """Cuts at the commas outside parentheses and quotes."""
    out, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and not depth:
            out.append(text[start:i])
            start = i + 1
    return [*out, text[start:]] if text.strip() else []


def name_quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def spark_type(t: Type) -> str:
    """Spark's spelling; raises UnknownType for what would lose something. What Spark has no type for is DuckDB's text
    of it, where that says all."""
    if t.name == "DECIMAL":
        return f"DECIMAL({t.precision},{t.scale})"
    if t.name in ("LIST", "ARRAY"):
        return f"ARRAY<{spark_type(t.element)}>"
    if t.name == "MAP":
        return f"MAP<{spark_type(t.args[0])},{spark_type(t.args[1])}>"
    if t.name == "STRUCT":
        fields = (
            f"{name_quoted(n or f'col{i}')}:{spark_type(a)}"
            for i, (n, a) in enumerate(zip(t.fields, t.args, strict=True), 1)
        )
        return "STRUCT<" + ",".join(fields) + ">"
    if t.name not in _SPARK:
        raise UnknownType(str(t))
    return _SPARK[t.name]


def declared(t: Type) -> str:
    """The type under which a value of Spark's comes back to DuckDB; raises UnknownType where it cannot."""
    for inner in t.args:
        declared(inner)
    spark_type(t)
    return "VARCHAR" if t.name == "NULL" else str(t)


_CARRIED = {
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "HUGEINT": "DECIMAL(38,0)",
    **dict.fromkeys(("UUID", "JSON", "ENUM", "NULL", "INTERVAL", "BIT", "TIMESTAMP_NS", "TIMETZ"), "VARCHAR"),
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS"), "TIMESTAMP"),
}


def carried(t: Type) -> str:
    """The DuckDB type in which a value travels to Spark: the one that Spark's type is, spelt as DuckDB does."""
    if t.name in ("LIST", "ARRAY"):
        return f"{carried(t.element)}[]"
    if t.name == "MAP":
        return f"MAP({carried(t.args[0])}, {carried(t.args[1])})"
    if t.name == "STRUCT":
        names = (_name(n or f"col{i}") for i, n in enumerate(t.fields, 1))
        return "STRUCT(" + ", ".join(f"{n} {carried(a)}" for n, a in zip(names, t.args, strict=True)) + ")"
    return _CARRIED.get(t.name, str(t))
