"""What a text of Spark's dialect may not hold, told without Spark: a text that can be read in two ways is refused.

Spark's own parser has the last word before anything runs (see sources/plans.py). This is the check that needs no JVM,
so it is strict where lexers differ.
"""

from __future__ import annotations

import re
from typing import Any

import sqlglot
from sqlglot.tokens import TokenType

from .model import problem

#: Functions that run code, tell of files, or read a file that an option or an argument names.
FORBIDDEN = {
    "from_protobuf",
    "from_xml",
    "input_file_block_length",
    "input_file_block_start",
    "input_file_name",
    "java_method",
    "python_worker_logs",
    "reflect",
    "schema_of_xml",
    "to_protobuf",
    "try_reflect",
}
PATHS = {
    "parquet",
    "csv",
    "json",
    "orc",
    "text",
    "delta",
    "avro",
    "binaryfile",
    "jdbc",
    "xml",
    "iceberg",
    "image",
    "libsvm",
    "hudi",
    "kafka",
}
TABLE_FUNCTIONS = {
    "range",
    "explode",
    "explode_outer",
    "posexplode",
    "posexplode_outer",
    "inline",
    "inline_outer",
    "stack",
    "json_tuple",
    "sequence",
    "variant_explode",
    "variant_explode_outer",
}
#: A piece of text as Spark's lexer cuts it: comments, texts, names in backticks; the rest is code.
_PIECES = re.compile(
    r"""--(?:\\\n|[^\r\n])*|/\*.*?\*/|[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`""",
    re.S,
)


_ODD = re.compile(r"\0|\r(?!\n)|[\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
_OPEN = re.compile(r"['\"`]|/\*|\*/|\$\$|\$\w+\$")
_TEXTS = {TokenType.STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING}


def clear(sql: str) -> None:
    """SqlProblems where a comment or a text ends at one place for Spark and at another for someone else."""
    sql = sql.replace("/*+", "/* ")  # hints, which change no answer
    pieces = list(_PIECES.finditer(sql))
    code = _PIECES.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), sql)

    for piece in pieces:
        text, line = piece[0], _line(sql, piece.start())
        if text.startswith("--") and ("\\\n" in text or text.rstrip("\r").endswith("\\")):
            raise problem(line, "for Spark a comment that ends in a backslash goes on in the next line: remove it")
        if text.startswith("/*") and "/*" in text[2:]:
            raise problem(line, "a comment within a comment is read in two ways: close the first one")

    for text, pattern, what in (
        (sql, _ODD, "a character that not everyone reads alike"),
        (code, _OPEN, "a text or comment"),
    ):
        found = re.search(pattern, text)
        if found:
            why = "that is not closed" if pattern is _OPEN else f"({found[0]!r})"
            raise problem(_line(sql, found.start()), f"{what} {why} is not allowed in a model")

    here = _PIECES.sub(lambda m: "" if m[0][0] in "-/" else "\0", sql)
    tokens = sqlglot.tokenize(sql, read="spark")
    there = "".join("\0" if _is_text(t, sql) else sql[t.start : t.end + 1] for t in tokens)
    if _shape(here) != _shape(there):
        raise problem(1, "where its texts and comments end can be read in two ways: write them with plain quotes")


def _is_text(token: Any, sql: str) -> bool:
    return token.token_type in _TEXTS or sql[token.start] in "`\"'"


def _shape(text: str) -> str:
    """The code without blanks, each text in it one mark."""
    return re.sub(r"\0+", "\0", re.sub(r"\s+", "", text))


def _line(sql: str, at: int) -> int:
    return sql[:at].count("\n") + 1


def forbid(sql: str) -> None:
    """Functions that run code, and TRANSFORM … USING, which runs programs."""
    if "${" in sql:
        told = "${…} would put a setting or a variable of the environment into the SQL and is not allowed"
        raise problem(_line(sql, sql.index("${")), told)
    tokens = sqlglot.tokenize(sql, read="spark")
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if wrong := _told(before, token, after, sql):
            raise problem(token.line, wrong)


def _told(before: Any, token: Any, after: Any, sql: str) -> str | None:
    """What is wrong with a token between two others."""
    word = token.text.lower()
    if token.token_type in _TEXTS or after is None:
        return None
    if word.split(".")[-1] in FORBIDDEN and after.text == "(":
        return f"{word}() runs code or reads files outside SQL and is not allowed"
    if word == "identifier" and after.text == "(":
        return "IDENTIFIER(…), a name that is put together, is not allowed"
    if word == "using" and _is_text(after, sql):
        return "TRANSFORM … USING runs a program and is not allowed"
    if word in ("map", "reduce") and after.text != "(" and before and before.text.lower() in ("select", "from", ")"):
        return f"{word.upper()} … USING is not allowed"
    return None
