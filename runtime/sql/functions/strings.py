"""Text: cutting, searching, patterns, formats."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .. import texts
from ..casts import E
from ..model import Refused
from ..said import GateError
from ..scope import where
from ..texts import string
from ..tree import Node
from ..types import BIGINT, BOOLEAN, VARCHAR, parse
from .registry import rules, writer

if TYPE_CHECKING:
    from ..expr import Expressions

# letters whose upper or lower form is several letters, or depends on their neighbours: DuckDB maps letter by letter
_ODD_UPPER = (
    "[\\\\u00DF\\\\u0149\\\\u01F0\\\\u0390\\\\u03B0\\\\u0587\\\\u1E96-\\\\u1E9A\\\\u1F50-\\\\u1FFC\\\\uFB00-\\\\uFB17"
    "\\\\u2C5F\\\\uA7C1\\\\uA7D1\\\\uA7D7\\\\uA7D9\U00010597-\U000105bc]"
)
# letters that Java's lower() makes two of, reads by their neighbours, or does not know yet, and DuckDB's lower case
_LOWER = dict(
    zip("\u0130\u03a3\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8", "i\u03c3\u2c5f\ua7c1\ua7d1\ua7d7\ua7d9", strict=True)
) | {chr(code): chr(code + 0x27) for code in range(0x10570, 0x10596) if code not in (0x1057B, 0x1058B, 0x10593)}
_LOWERED = f"lower(translate({{0}}, '{''.join(_LOWER)}', '{''.join(_LOWER.values())}'))"
_ILIKE = f"({_LOWERED} {{word}} replace({_LOWERED.replace('{0}', '{1}')}, '\\\\', '\\\\\\\\'))"
_CASE = (
    "CASE WHEN {0} RLIKE '%s' THEN raise_error('%s() of a letter whose other case is not one letter is not "
    "supported') ELSE %s({0}) END"
)
_LONE = (
    (
        "CASE WHEN {0} RLIKE "
        "'[\\\\p{{M}}\\\\u200D\\\\x{{1F1E6}}-\\\\x{{1F1FF}}\\\\x{{1F3FB}}-\\\\x{{1F3FF}}\\\\r\\\\u1100-\\\\u11FF]' "
        "THEN "
        "raise_error('reverse() of composed letters is not supported') ELSE reverse({0}) END"
    )
    .replace("{{", "{")
    .replace("}}", "}")
)

rules(
    __name__,
    {
        "length len char_length character_length": "s: length({0})",
        "strlen": "s: octet_length({0})",
        "upper ucase": "s: " + _CASE % (_ODD_UPPER, "upper", "upper"),
        "lower lcase": "s: " + _LOWERED,
        "trim": [("s", "regexp_replace({0}, '^\\\\p{Zs}+|\\\\p{Zs}+$', '')"), ("ss", "trim(BOTH {1} FROM {0})")],
        "ltrim": [("s", "regexp_replace({0}, '^\\\\p{Zs}+', '')"), ("ss", "trim(LEADING {1} FROM {0})")],
        "rtrim": [("s", "regexp_replace({0}, '\\\\p{Zs}+$', '')"), ("ss", "trim(TRAILING {1} FROM {0})")],
        "replace": "sss: replace({0}, {1}, {2})",
        "translate": "sss: translate({0}, {1}, {2})",
        "repeat": "sI: repeat({0}, {1})",
        "reverse": "s: " + _LONE,
        "starts_with prefix ^@": "ss: startswith({0}, {1})",
        "ends_with suffix": "ss: endswith({0}, {1})",
        "instr strpos": "ss: instr({0}, {1})",
        "position": "ss: instr({0}, {1})",
        "left": "sI: CASE WHEN {1} >= 0 THEN left({0}, {1}) ELSE left({0}, greatest(length({0}) + {1}, 0)) END",
        "right": "sI: CASE WHEN {1} >= 0 THEN right({0}, {1}) ELSE right({0}, greatest(length({0}) + {1}, 0)) END",
        "lpad": "sIs: lpad({0}, {1}, {2})",
        "rpad": "sIs: rpad({0}, {1}, {2})",
        "md5": "s: md5({0})",
        "sha1": "s: sha1({0})",
        "sha256": "s: sha2({0}, 256)",
        "chr": "I: char({0})",
        "url_encode": "s: replace(replace(replace(url_encode({0}), '+', '%20'), '*', '%2A'), '%7E', '~')",
        "~~": "ss: ({0} LIKE replace({1}, '\\\\', '\\\\\\\\'))",
        "!~~": "ss: ({0} NOT LIKE replace({1}, '\\\\', '\\\\\\\\'))",
        "~~*": "ss: " + _ILIKE.replace("{word}", "LIKE"),
        "!~~*": "ss: " + _ILIKE.replace("{word}", "NOT LIKE"),
    },
)


@writer("contains")
def contains(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a = w.write(arguments[0])
    if a.type.letter != "s":
        from .lists import has

        return has(w, arguments, node)
    return E(f"contains({a.text}, {w.cast(w.write(arguments[1]), VARCHAR, arguments[1]).text})", BOOLEAN)


@writer("concat", "concat_ws")
def concat(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    """NULLs are skipped, everything else becomes text."""
    found = [w.write(a) for a in arguments]
    if any(e.type.letter in "lB" for e in found):
        raise Refused(
            f"{node['function_name']}() of a {next(e.type for e in found if e.type.letter in 'lB')}", where(node)
        )
    items = [w.cast(e, VARCHAR, a).text for e, a in zip(found, arguments, strict=True)]
    return E("concat_ws(" + ", ".join(items if node["function_name"] == "concat_ws" else ["''", *items]) + ")", VARCHAR)


@writer("||")
def joined(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    kind = w.type(node)
    found = [w.write(a) for a in arguments]
    if kind.name == "LIST":
        return E(
            "concat(" + ", ".join(w.cast(e, kind, a).text for e, a in zip(found, arguments, strict=True)) + ")", kind
        )
    if any(e.type.letter in "lmrB" for e in found):
        raise Refused(" || ".join(str(e.type) for e in found), where(node))
    return E(
        "concat(" + ", ".join(w.cast(e, VARCHAR, a).text for e, a in zip(found, arguments, strict=True)) + ")", VARCHAR
    )


@writer("substring", "substr")
def substring(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    """Spark agrees from position 1 on, and for negative positions within the text."""
    a = w.write(arguments[0])
    numbers = [w.constant(x, "substring() with a position or length") for x in arguments[1:]]
    if (
        a.type.letter != "s"
        or None in numbers
        or (len(numbers) > 1 and numbers[1] < 0)
        or numbers[0] == 0
        or numbers[0] < 0
        and len(numbers) > 1
    ):
        raise Refused(f"substring({a.type}, {', '.join(map(str, numbers))})", where(node))
    if numbers[0] < 0:
        return E(f"right({a.text}, {-numbers[0]})", VARCHAR)
    return E(f"substring({a.text}, {', '.join(map(str, numbers))})", VARCHAR)


@writer("split_part")
def split_part(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a, part = w.write(arguments[0]), w.constant(arguments[2], "split_part() with a position")
    separator = w.constant(arguments[1], "split_part() with a separator")
    if a.type.letter != "s" or not separator or not part:
        raise Refused("split_part() with an empty separator or position 0", where(node))
    return E(f"split_part({a.text}, {string(separator)}, {part})", VARCHAR)


@writer("string_split", "str_split", "string_to_array", "split")
def split(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a, separator = w.write(arguments[0]), w.constant(arguments[1], "a separator")
    if a.type.letter != "s" or not separator:
        raise Refused("splitting by an empty or missing separator", where(node))
    return E(f"split({a.text}, {string(quote(separator))}, -1)", parse("VARCHAR[]"))


def quote(text: str) -> str:
    return re.sub(r"([\\^$.|?*+()\[\]{}&~#-])", r"\\\1", text)


def pattern(w: Expressions, node: Node, options: str = "") -> str:
    """DuckDB's regular expression for Java; refused where the two read it differently."""
    text = w.constant(node, "a regular expression")
    if not isinstance(text, str):
        raise Refused("a regular expression that is NULL", where(node))
    try:
        w.scope.gate.run("SELECT regexp_matches('', ?)", text)
    except GateError as error:
        raise Refused(f"the regular expression {text!r}: {error.message}", where(node), hint=False) from None
    out, inside, i = "", False, 0
    while i < len(text):
        c = text[i]
        if c == "\\":
            if text[i + 1 : i + 2] in "CQEpPvhRXGkZ" and text[i + 1 : i + 2] not in "pP":
                raise Refused(f"\\{text[i + 1]} in a regular expression", where(node))
            out += text[i : i + 2].replace("\\s", "[\\t\\n\\f\\r ]" if not inside else "\\t\\n\\f\\r ")
            i += 2
            continue
        if inside and (c == "[" or text[i : i + 2] == "&&"):
            raise Refused(f"{text[i : i + 2]} inside a character class of a regular expression", where(node))
        if (
            not inside
            and text[i : i + 3] in ("(?P", "(?<")
            or not inside
            and text[i : i + 2] == "(?"
            and not re.match(r"\(\?[is]{0,2}[:)]", text[i:])
        ):
            raise Refused(f"{text[i : i + 3]} in a regular expression", where(node))
        if not inside and text[i : i + 2] == "(?" and "i" in text[i + 2 : i + 4].split(":")[0].split(")")[0]:
            out, i = out + "(?iu", i + 3
            continue
        if c == "[":
            inside = True
            out += c
            if text[i + 1 : i + 2] == "^":
                out, i = out + "^", i + 1
            if text[i + 1 : i + 2] == "]":
                out, i = out + "\\]", i + 1
        elif c == "]":
            inside = False
            out += c
        else:
            out += "\\z" if c == "$" and not inside else c
        i += 1
    flags = {"i": "iu", "s": "s", "": "", "c": "", "g": ""}
    if any(o not in flags for o in options):
        raise Refused(f"the regular expression options {options!r}", where(node))
    return f"(?d{''.join(flags[o] for o in options)})" + out


def option(w: Expressions, arguments: list[Node], at: int) -> str:
    return str(w.constant(arguments[at], "regular expression options")) if len(arguments) > at else ""


@writer("regexp_matches", "regexp_full_match")
def matches(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a = w.write(arguments[0])
    if a.type.letter != "s":
        return None
    found = pattern(w, arguments[1], option(w, arguments, 2))
    if node["function_name"] == "regexp_full_match":
        found = found[: found.index(")") + 1] + "\\A(?:" + found[found.index(")") + 1 :] + ")\\z"
    return E(f"({a.text} RLIKE {string(found)})", BOOLEAN)


@writer("regexp_replace")
def regexp_replace(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    """The first match only, unless the options say g."""
    a, options = w.write(arguments[0]), option(w, arguments, 3)
    found, by = pattern(w, arguments[1], options), w.constant(arguments[2], "the replacement of regexp_replace()")
    if a.type.letter != "s" or by is None:
        raise Refused(f"regexp_replace({a.type})", where(node))
    shift = 0 if "g" in options else 1
    by = re.sub(
        r"\\(\d)|\\\\|\$", lambda m: f"${int(m[1]) + (shift if int(m[1]) else 0)}" if m[1] else "\\" + m[0][-1], by
    )
    head = found.index(")") + 1
    if "g" in options:
        # nothing is no further match where the last one ended
        every = f"{found[:head]}(?>{found[head:]})(?:(?!\\G)|\\A)"
        return E(f"regexp_replace({a.text}, {string(every)}, {string(by)})", VARCHAR)
    if re.search(r"(?<!\\)\$0", by):
        raise Refused("\\0 in the replacement of regexp_replace()", where(node))
    once = found[:head] + "\\A((?s:.*?))(?:" + found[head:] + ")"
    return E(f"regexp_replace({a.text}, {string(once)}, {string('$1' + by)})", VARCHAR)


@writer("regexp_extract", "regexp_extract_all")
def regexp_extract(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a = w.write(arguments[0])
    group = w.constant(arguments[2], "the group of regexp_extract()") if len(arguments) > 2 else 0
    if a.type.letter != "s" or not isinstance(group, int):
        raise Refused(f"{node['function_name']}() with a list of names", where(node))
    found = pattern(w, arguments[1], option(w, arguments, 3))
    return E(f"{node['function_name']}({a.text}, {string(found)}, {group})", w.type(node))


@writer("regexp_split_to_array", "string_split_regex", "str_split_regex")
def regexp_split(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a = w.write(arguments[0])
    found = pattern(w, arguments[1])
    try:
        if w.scope.gate.run("SELECT regexp_matches('', ?)", w.constant(arguments[1], "a pattern"))[0][0]:
            raise Refused("splitting by a pattern that matches nothing", where(node))
    except GateError:
        raise Refused("this regular expression", where(node)) from None
    return E(f"split({a.text}, {string(found)}, -1)", parse("VARCHAR[]"))


@writer("like_escape", "not_like_escape", "ilike_escape", "not_ilike_escape")
def like_escape(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a, like, escape = (
        w.write(arguments[0]),
        w.constant(arguments[1], "LIKE … ESCAPE"),
        w.constant(arguments[2], "ESCAPE"),
    )
    if a.type.letter != "s" or like is None or not isinstance(escape, str) or len(escape) > 1:
        raise Refused("this LIKE … ESCAPE", where(node))
    out, i = "", 0
    while i < len(like):
        if escape and like[i] == escape and i + 1 < len(like):
            i += 1
            out += ("\\" if like[i] in "%_\\" else "") + like[i]
        else:
            out += "\\\\" if like[i] == "\\" else like[i]
        i += 1
    name = node["function_name"]
    left, right = (_LOWERED.format(a.text), _LOWERED.format(string(out))) if "ilike" in name else (a.text, string(out))
    return E(f"({left} {'NOT ' if name.startswith('not') else ''}LIKE {right})", BOOLEAN)


@writer("~~~")
def glob(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a, text = w.write(arguments[0]), w.constant(arguments[1], "GLOB")
    if a.type.letter != "s" or text is None or set(text) & set("[]\\"):
        raise Refused("GLOB with a character class", where(node))
    found = "".join({"*": ".*", "?": "."}.get(c, quote(c)) for c in text)
    return E(f"({a.text} RLIKE {string('(?s)' + chr(92) + 'A' + found + chr(92) + 'z')})", BOOLEAN)


@writer("format")
def format_(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    """format('{} has {}'): plain braces only."""
    text = w.constant(arguments[0], "the pattern of format()")
    pieces = str(text).split("{}")
    if text is None or any(set(p) & set("{}") for p in pieces) or len(pieces) != len(arguments):
        raise Refused("format() with more than plain {}", where(node))
    found = [w.write(a) for a in arguments[1:]]
    if any(e.type.letter not in "sib" or e.type.letter == "b" for e in found):
        raise Refused(f"format() of {', '.join(str(e.type) for e in found)} (cast to VARCHAR)", where(node), hint=False)
    out = []
    for piece, e, a in zip([*pieces], [*found, None], [*arguments[1:], None], strict=True):
        out += [string(piece)] if piece else []
        if e is not None and a is not None:
            out.append(w.cast(e, VARCHAR, a).text)
    return E("concat(" + ", ".join(out) + ")", VARCHAR)


@writer("printf")
def printf(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    text = w.constant(arguments[0], "the pattern of printf()")
    found = [w.write(a) for a in arguments[1:]]
    marks = re.findall(r"%(?:0?\d*)[sd]|%.", str(text))
    if len(marks) != len(found) or any(
        m[-1] not in "sd" or (m[-1] == "d") != (e.type.letter == "i") or (m[-1] == "s" and e.type.letter != "s")
        for m, e in zip(marks, found, strict=False)
    ):
        raise Refused("printf() with more than %s of text and %d of integers", where(node))
    return E(
        f"CASE WHEN {' AND '.join(f'{e.text} IS NOT NULL' for e in found) or 'true'} THEN format_string("
        + ", ".join([string(str(text)), *(e.text for e in found)])
        + ") END",
        VARCHAR,
    )


@writer("parse_filename")
def parse_filename(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    if len(arguments) != 1:
        raise Refused("parse_filename() with options", where(node))
    return E(f"element_at(split({w.write(arguments[0]).text}, '[/\\\\\\\\]', -1), -1)", VARCHAR)


__all__ = ["BIGINT", "texts"]
