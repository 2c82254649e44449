"""JSON of what push functions build, with a bound on its levels.

Starlark's own encoder ends the process where its stack is full, which it fills with the square of the levels: 260 of
them in the usual 8 MB, 1,050 in `threads.STACK`. Whatever else takes a value counts its levels itself: passing it to
Python (1,000) and comparing it (3,000).
"""

from __future__ import annotations

from pathlib import Path

import starlark

#: Levels of what becomes JSON: twice those of an answer that is read, so that what was read can be sent on within
#: something else.
MOST_NESTED = 200
#: Bodies hardly ever have more levels, and the type sees that at a fifth of what counting takes.
_FLAT = 6

_TEXT = (
    f"ondatra__MOST_NESTED = {MOST_NESTED}\n"
    + "ondatra__json_encode = json.encode\n"
    + "ondatra__flat = eval_type(None | bool | int | float | str)\n"
    + _FLAT * "ondatra__flat = eval_type(ondatra__flat | list[ondatra__flat] | dict[typing.Any, ondatra__flat])\n"
    + Path(__file__).with_name("nesting.star").read_text(encoding="utf-8")
)


def _compiled(text: str) -> starlark.FrozenModule:
    module = starlark.Module()
    extensions = [starlark.LibraryExtension.Json, starlark.LibraryExtension.Typing]
    starlark.eval(
        module,
        starlark.parse("<built-in>", text, starlark.Dialect.extended()),
        starlark.Globals.extended_by(extensions),
    )
    return module.freeze()


#: What the prelude's `load("nesting", …)` and `load("text", …)` read; compiled once, which takes most of a millisecond.
_MODULES = {
    "nesting": _compiled(_TEXT),
    "text": _compiled(Path(__file__).with_name("text.star").read_text(encoding="utf-8")),
}
LOADER = starlark.FileLoader(lambda name: _MODULES[name])
