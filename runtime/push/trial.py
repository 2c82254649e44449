"""A file is tried in the process of sandbox.py before this one compiles it: compiling evaluates its top, and constants
(`list(range(1 << 30))`) wherever they stand."""

from __future__ import annotations

import re
from typing import Any

from runtime.errors import OndatraError, Problem, ProjectError
from runtime.push.sandbox import SandboxDied, sandbox
from runtime.push.starlark import Loader

#: Seconds without a word after which a trial is ended.
PATIENCE = 3.0
_LOAD = re.compile(r"^load\(\s*[\"']([^\"']+)", re.MULTILINE)


def try_out(loader: Loader, file: str) -> None:
    """Raises ProjectError with the line where evaluating the file, or one that it loads, takes too much."""
    texts, missing = _texts(loader, file)
    at: tuple[str, int] = (file, 1)

    def answer(_: str, place: tuple[Any, ...]) -> None:
        nonlocal at
        at = place[0], place[1]

    try:
        sandbox().call(("try", file, texts), answer, most=PATIENCE)
    except SandboxDied as died:
        raise ProjectError([Problem(*at, f"this cannot be evaluated: {died}")]) from None
    except ProjectError as error:
        if not missing or any("the call " in p.message for p in error.problems):
            raise
    except OndatraError as error:
        raise ProjectError([Problem(*at, f"this cannot be evaluated: {error}")]) from None


def _texts(loader: Loader, file: str) -> tuple[dict[str, str], bool]:
    """The file and all that it loads; whether one of them cannot be read, which compiling tells."""
    texts: dict[str, str] = {}
    missing, wanted = False, [file]
    while wanted:
        name = wanted.pop()
        if name in texts:
            continue
        try:
            texts[name] = loader.read(name)
        except ProjectError:
            missing = True
            continue
        wanted += _LOAD.findall(texts[name])
    return texts, missing
