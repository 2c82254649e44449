"""Where a function was when its process died: its text again, with a mark before each statement."""

from __future__ import annotations

import ast
import os
from typing import Any

from runtime.push.call import CallContext
from runtime.push.http.answers import Answer
from runtime.push.http.rate_limits import MemoryLimiter
from runtime.push.sandbox import AT, LENGTH

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Pass, ast.Break, ast.Continue)


def traced(file: str, text: str) -> str:
    """The text with a mark before each simple statement of its functions; each line stays where it was."""
    starts = [0]
    for line in (data := text.encode()).splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    functions = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    marks = {
        starts[n.lineno - 1] + n.col_offset: n.lineno for f in functions for n in ast.walk(f) if isinstance(n, _SIMPLE)
    }
    for at in sorted(marks, reverse=True):
        data = data[:at] + f"ondatra__at({file!r},{marks[at]});".encode() + data[at:]
    return data.decode()


def mark(file: str, line: int) -> None:
    """What the marks call; in the file, because a process that dies says nothing any more."""
    os.pwrite(2, f"{file}\n{line}".encode().ljust(LENGTH, b"\n"), AT)


class Nothing:
    """Stands for the network."""

    def send(self, *_: Any) -> Answer:
        return Answer(200, {"content-type": "application/json"}, b"{}")


def nothing_real(secrets: Any) -> CallContext:
    return CallContext(secrets=secrets, limiter=MemoryLimiter(), transport=Nothing())
