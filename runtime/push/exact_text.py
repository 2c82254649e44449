"""A file's text with calls of text.star in the place of what writes numbers as text: str(), repr(), fail(), `%`,
format() and f"…".

These are Starlark's own and some of them operators, so that they cannot be given another meaning by name. Each line
stays where it was. Starlark's grammar is a part of Python's, so Python finds the places.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

_NAMES = {"str": "ondatra__str", "repr": "ondatra__repr"}
_Edit = tuple[int, int, str]  # from, to, what stands there then


def exact(text: str) -> str:
    """The text; as it is where Python cannot read it, which Starlark then tells."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text

    own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    own |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    data = text.encode()
    pieces, at = [], 0
    for start, end, new in sorted(_Edits(data, own).of(tree), key=_order):
        pieces += [data[at:start], new.encode()]
        at = max(at, end)
    return b"".join([*pieces, data[at:]]).decode()


def _order(edit: _Edit) -> tuple[int, int]:
    """At one place what ends stands first, then what begins, the outer one before the inner, then what is replaced."""
    start, end, new = edit
    return start, 2 if end > start else 0 if new.startswith(")") else 1


class _Edits:
    def __init__(self, data: bytes, own: set[str]) -> None:
        self.data = data
        self.own = own  # names that the file gives a meaning of its own
        self.starts = [0]
        for line in data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def of(self, node: ast.AST) -> Iterator[_Edit]:
        """Outer ones before those within."""
        if isinstance(node, ast.JoinedStr):
            yield from self._joined(node)
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not _is_whole_number(node.right):
            yield from self._around(node, "ondatra__mod(")
            at = self._sign(self._end(node.left))
            yield at, at + 1, ","
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mod) and isinstance(node.target, ast.Name):
            at, (start, end) = self._sign(self._end(node.target)), self._span(node.value)
            yield at, at + 2, f"= ondatra__mod({node.target.id},"
            yield start, start, "("
            yield end, end, "))"
        elif isinstance(node, ast.Call) and self._writes(node.func):
            for given in [*node.args, *(k.value for k in node.keywords)]:
                many = isinstance(given, ast.Starred) or any(k.value is given and k.arg is None for k in node.keywords)
                value = given.value if isinstance(given, ast.Starred) else given
                yield from self._around(value, "ondatra__all_shown(" if many else "ondatra__shown(")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _NAMES.keys() - self.own:
            yield *self._span(node), _NAMES[node.id]
        for child in _children(node):
            yield from self.of(child)

    def _writes(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Attribute):
            return function.attr == "format"
        return isinstance(function, ast.Name) and function.id == "fail" and "fail" not in self.own

    def _joined(self, node: ast.JoinedStr) -> Iterator[_Edit]:
        parts = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(json.dumps(part.value).replace("\x7f", "\\u007f"))
            elif isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and not part.format_spec:
                parts.append(f"ondatra__{'repr' if part.conversion == ord('r') else 'str'}({part.value.id})")
            else:
                return  # which Starlark refuses
        start, end = self._span(node)
        lines = "\n" * self.data.count(b"\n", start, end)
        yield start, end, f"({' + '.join(parts) or repr('')}{lines})"

    def _around(self, node: ast.AST, call: str) -> Iterator[_Edit]:
        start, end = self._span(node)
        yield start, start, call
        yield end, end, ")"

    def _sign(self, at: int) -> int:
        """Where the `%` after this place is; a comment may hold others."""
        while self.data[at : at + 1] != b"%":
            at = self.data.index(b"\n", at) if self.data[at : at + 1] == b"#" else at + 1
        return at

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self.starts[node.lineno - 1] + node.col_offset, self._end(node)  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return int(self.starts[node.end_lineno - 1] + node.end_col_offset)  # type: ignore[attr-defined]


def _is_whole_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """All but types, which are no values."""
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            yield from (v for v in (value if isinstance(value, list) else [value]) if isinstance(v, ast.AST))
