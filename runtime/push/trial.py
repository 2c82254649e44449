"""A file is compiled in the process of sandbox.py when it is checked, and here only where it is called here: compiling
evaluates its top, and constants (`list(range(1 << 30))`) wherever they stand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runtime.errors import OndatraError, Problem, ProjectError
from runtime.push.sandbox import SandboxDied, sandbox
from runtime.push.starlark import Loader, Module

#: Seconds without a word after which a trial is ended.
PATIENCE = 3.0
#: Characters of a message, which a file may make of anything (`fail`).
LONGEST = 1_000


def tried(loader: Loader, file: str) -> Module:
    """The file as a module that is not compiled here before it is called. Raises ProjectError with every line that is
    wrong, and with the one where compiling took too much."""
    texts: dict[str, str] = {}
    at: tuple[str, int] = (file, 1)

    def answer(asked: str, given: tuple[Any, ...]) -> Any:
        nonlocal at
        if asked == "at":
            at = given[0], given[1]
            return None
        texts[given[0]] = loader.read(given[0])
        return texts[given[0]]

    try:
        sandbox().call(("try", file), answer, most=PATIENCE)
    except SandboxDied as died:
        raise ProjectError([Problem(*at, f"this cannot be evaluated: {died}")]) from None
    except ProjectError as error:
        raise ProjectError([replace(p, message=_cut(p.message)) for p in error.problems]) from None
    except OndatraError as error:
        raise ProjectError([Problem(*at, f"this cannot be evaluated: {error}")]) from None
    return Module.of(file, texts, lambda: loader.load(file).frozen)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}… ({len(line):,} characters)"
