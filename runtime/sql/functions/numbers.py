"""Arithmetic, rounding, logarithms, bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import texts
from ..casts import E
from ..model import Refused
from ..scope import where
from ..tree import Node
from ..types import DOUBLE, Type, as_decimal, spark_type
from .registry import is_volatile, result, rules, writer

if TYPE_CHECKING:
    from ..expr import Expressions

_TOO_SMALL = (
    "CASE WHEN {0} <= 0 THEN CAST(raise_error('cannot take the logarithm of zero or less') AS DOUBLE) ELSE %s({0}) END"
)
_ZERO = "if({0} < 0 AND {0} > -1, {0} * 0D, %s)"  # -0.4 becomes -0.0, whose text differs
_WHOLE = "CASE WHEN abs({0}) < 9e15D THEN CAST(%s({0}) AS DOUBLE) ELSE {0} END"

rules(
    __name__,
    {
        "abs @": "n: abs({0})",
        "floor": [("f", "=" + _WHOLE % "floor"), ("d", "floor({0})"), ("i", "={0}")],
        "ceil ceiling": [("f", "=" + _ZERO % (_WHOLE % "ceil")), ("d", "ceil({0})"), ("i", "={0}")],
        "trunc": [
            (
                "f",
                "="
                + _ZERO
                % "CASE WHEN abs({0}) < 9e15D THEN CAST(if({0} < 0, ceil({0}), floor({0})) AS DOUBLE) ELSE {0} END",
            ),
            ("d", "if({0} < 0, ceil({0}), floor({0}))"),
            ("i", "={0}"),
        ],
        "sqrt": "F: =CASE WHEN {0} < 0 THEN CAST(raise_error('cannot take square root of a negative number') AS "
        "DOUBLE) ELSE sqrt({0}) END",
        "cbrt": "F: =cbrt({0})",
        "exp": "F: =exp({0})",
        "pow power ** ^": "FF: =pow({0}, {1})",
        "pi": ": =pi()",
        "ln": "F: =" + _TOO_SMALL % "ln",
        "log log10": "F: =" + _TOO_SMALL % "log10",
        "log2": "F: =" + _TOO_SMALL % "log2",
        "sin": "F: =sin({0})",
        "cos": "F: =cos({0})",
        "tan": "F: =tan({0})",
        "asin": "F: =asin({0})",
        "acos": "F: =acos({0})",
        "atan": "F: =atan({0})",
        "atan2": "FF: =atan2({0}, {1})",
        "degrees": "F: =degrees({0})",
        "radians": "F: =radians({0})",
        "sign": "n: signum({0})",
        "isnan": "f: isnan({0})",
        "isinf": "f: (abs({0}) = double('infinity'))",
        "isfinite": "f: (NOT isnan({0}) AND abs({0}) <> double('infinity'))",
        "&": "ii: ({0} & {1})",
        "|": "ii: ({0} | {1})",
        "xor": "ii: ({0} ^ {1})",
        "~": "i: (~{0})",
    },
)


@writer("+", "-", "*")
def arithmetic(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    operator, kind = node["function_name"], w.type(node)
    found = [w.write(a) for a in arguments]
    if len(found) == 1:
        if operator == "-" and found[0].type.name == "INTERVAL":
            return E("", kind, tuple((u, f"(-{t})") for u, t in found[0].interval))
        return result(w, f"({operator}{found[0].text})", node) if found[0].type.is_numeric else None
    a, b = found
    if all(e.type.is_numeric or e.type.name == "NULL" for e in found) and kind.is_numeric:
        if kind.name == "DECIMAL":
            return E(f"CAST({exact(a, b, operator, node)} AS {spark_type(kind)})", kind)
        return E(f"({w.cast(a, kind, arguments[0]).text} {operator} {w.cast(b, kind, arguments[1]).text})", kind)
    from .dates import moved

    return moved(w, operator, a, b, arguments, node)


def exact(a: E, b: E, operator: str, node: Node) -> str:
    """Decimal arithmetic; refused where Spark would round to make room for digits."""
    left, right = as_decimal(a.type), as_decimal(b.type)
    if "NULL" in (a.type.name, b.type.name):
        return "NULL"
    if left.name != "DECIMAL" or right.name != "DECIMAL":
        raise Refused(f"{a.type} {operator} {b.type}", where(node))
    if operator == "*":
        digits, scale = left.precision + right.precision + 1, left.scale + right.scale
    else:
        scale = max(left.scale, right.scale)
        digits = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    if digits > 38 and scale > 6:
        raise Refused(
            f"{a.type} {operator} {b.type}, which needs more than 38 digits (cast one side)", where(node), hint=False
        )
    sides = [f"CAST({e.text} AS {spark_type(t)})" if e.type != t else e.text for e, t in ((a, left), (b, right))]
    return f"({sides[0]} {operator} {sides[1]})"


@writer("/", "fdiv")
def division(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a, b = (w.write(x) for x in arguments)
    if not (a.type.is_numeric or a.type.name == "NULL") or not (b.type.is_numeric or b.type.name == "NULL"):
        raise Refused(f"{a.type} / {b.type}", where(node))
    left, right = w.cast(a, DOUBLE, arguments[0]).text, w.cast(b, DOUBLE, arguments[1]).text
    if w.is_constant(arguments[1]) and w.constant(arguments[1], "the divisor"):
        return E(f"({left} / {right})", DOUBLE)
    if any(map(is_volatile, arguments)):
        raise Refused("/ over a volatile function", where(node))
    if len(left) + len(right) > 300:
        body = _quotient("nv", "dw")
        return E(texts.bound(left, "nv", texts.bound(right, "dw", body)), DOUBLE)
    return E(_quotient(left, right), DOUBLE)


def _quotient(left: str, right: str) -> str:
    zero = (
        f"CASE WHEN {left} = 0 OR isnan({left}) THEN double('nan') WHEN {left} > 0 THEN double('infinity') WHEN "
        f"{left} < 0 THEN double('-infinity') END"
    )
    return f"CASE WHEN {right} = 0 THEN {zero} ELSE {left} / {right} END"


@writer("//", "divide")
def whole_division(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a, b = (w.write(x) for x in arguments)
    if (a.type.letter, b.type.letter) != ("i", "i"):
        raise Refused(f"{a.type} // {b.type}", where(node))
    kind = w.type(node)
    return E(f"CAST({a.text} div {b.text} AS {spark_type(kind)})", kind)


@writer("%", "mod")
def modulo(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a, b = (w.write(x) for x in arguments)
    kind = w.type(node)
    if not {a.type.letter, b.type.letter} <= set("id"):
        raise Refused(f"{a.type} % {b.type}", where(node))
    if kind.name == "DECIMAL" and kind.precision > 30:
        raise Refused(f"{a.type} % {b.type}", where(node))
    return E(f"CAST({a.text} % {b.text} AS {spark_type(kind)})", kind)


@writer("round")
def rounded(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    """DuckDB scales a double, rounds it half away from zero and scales it back; a DECIMAL is rounded as such."""
    a, kind = w.write(arguments[0]), w.type(node)
    digits = int(w.constant(arguments[1], "round() to a number of digits") or 0) if len(arguments) > 1 else 0
    if a.type.name == "DECIMAL" and digits >= 0:
        return E(f"CAST(round({a.text}, {digits}) AS {spark_type(kind)})", kind)
    if a.type.letter == "i" and digits >= 0:
        return E(a.text, kind) if a.type == kind else w.cast(a, kind, node)
    if a.type.name == "DOUBLE" and abs(digits) <= 15:
        power = f"1e{abs(digits)}D"
        if digits == 0:
            return E(texts.bound(a.text, "rv", "if(rv < 0 AND rv > -0.5D, rv * 0D, round(rv, 0))"), DOUBLE)
        if digits < 0:
            return E(
                texts.bound(
                    a.text, "rv", f"CASE WHEN abs(rv) < 5 THEN rv * 0D ELSE round(rv / {power}, 0) * {power} END"
                ),
                DOUBLE,
            )
        return E(texts.bound(a.text, "rv", decimal_rounding(digits)), DOUBLE)
    raise Refused(f"round({a.type}, {digits})", where(node))


def decimal_rounding(digits: int) -> str:
    """Rounds the exact value of the double `rv`: the error of scaling it is computed (Dekker's product) and decides
    near a tie."""
    scale = 10.0**digits
    high = 134217729.0 * scale - (134217729.0 * scale - scale)
    split = "(134217729D * abs(rv))"
    top = f"({split} - ({split} - abs(rv)))"
    rest = f"(abs(rv) - {top})"
    product = f"(abs(rv) * {scale!r}D)"
    error = (
        f"((({top} * {high!r}D - {product}) + {top} * {scale - high!r}D + {rest} * {high!r}D) + {rest} * "
        f"{scale - high!r}D)"
    )
    whole = f"(floor({product}) + if(({product} - floor({product})) - 0.5D + {error} >= 0, 1, 0))"
    large = "CAST(raise_error('round() of so large a number to so many digits is not supported') AS DOUBLE)"
    return (
        f"CASE WHEN rv IS NULL OR isnan(rv) OR abs(rv) >= 4503599627370496D THEN rv WHEN {product} >= 9e15D THEN "
        f"{large}"
        f" ELSE if(rv < 0, -1D, 1D) * ({whole} / {scale!r}D) END"
    )


@writer("<<", ">>")
def shifted(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a, kind = w.write(arguments[0]), w.type(node)
    count = w.constant(arguments[1], "a shift by a number of bits")
    if a.type.letter != "i" or a.type.name == "HUGEINT" or count is None or not 0 <= int(count) <= 30:
        raise Refused(f"{a.type} {node['function_name']} {count}", where(node))
    if node["function_name"] == ">>":
        return E(f"CAST(shiftright({a.text}, {count}) AS {spark_type(kind)})", kind)
    spark = spark_type(kind)
    body = (
        f"CASE WHEN sv < 0 THEN CAST(raise_error('cannot left-shift a negative number') AS {spark}) ELSE CAST(sv * "
        f"{2 ** int(count)}L AS {spark}) END"
    )
    return E(texts.bound(a.text, "sv", body), kind)


@writer("greatest", "least")
def extreme(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    kind = w.type(node)
    if kind.letter not in "ifdsDTZb" or len(arguments) < 2:
        raise Refused(f"{node['function_name']}() of {kind}", where(node))
    return E(f"{node['function_name']}(" + ", ".join(w.cast(w.write(a), kind, a).text for a in arguments) + ")", kind)


@writer("nullif")
def nullif(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a, b = w.both(arguments[0], arguments[1], node)
    first = w.write(arguments[0])
    return E(f"CASE WHEN {w.compared('COMPARE_EQUAL', a, b, node)} THEN NULL ELSE {first.text} END", first.type)


@writer("ifnull")
def ifnull(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    kind = w.type(node)
    return E("coalesce(" + ", ".join(w.cast(w.write(a), kind, a).text for a in arguments) + ")", kind)


@writer("if")
def choice(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    kind = w.type(node)
    return E(
        f"if({w.condition(arguments[0])}, {w.cast(w.write(arguments[1]), kind, arguments[1]).text}, "
        f"{w.cast(w.write(arguments[2]), kind, arguments[2]).text})",
        kind,
    )


__all__ = ["Type"]
