"""Starlark files: compiled once per process with the built-ins of the contract, frozen, called from any thread.

The built-ins find the call that they serve through a thread-local, so one frozen module serves all calls at once.
"""

from __future__ import annotations

import ast
import io
import re
import threading
import time
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import starlark

from runtime.errors import Cancelled, OndatraError, Problem, ProjectError
from runtime.push import nesting
from runtime.push.exact_text import exact

#: Seconds of Starlark's own work within one call; requests and waits do not count.
TIME_LIMIT = 60.0
#: What a call may add to the memory of the process.
MEMORY_LIMIT = 1024 * 1024 * 1024
CALL_DEPTH = 200
#: The check hook runs every thousand steps; it looks at the clock each time and at the rest this often.
LOOK_EVERY = 0.25
BUILTINS = "<built-in>"

_local = threading.local()


#: A def's head in which only parameters stand between the parentheses.
_HEAD = re.compile(r"""[^()\[\]{}"'#:\\]*\([^()\[\]{}"'#:\\]*\)[ \t]*:""")


class StarlarkFailure(OndatraError):
    """A call that ended in an error. `failed` when the function said so itself by fail()."""

    def __init__(
        self, message: str, *, failed: bool = False, place: str = "", cause: BaseException | None = None
    ) -> None:
        super().__init__(message if failed or not place else f"{message} ({place})")
        self.message, self.failed, self.place, self.cause = message, failed, place, cause


@dataclass(frozen=True)
class Module:
    """A file. `parameters` of each function that its text defines, with True for those that have a default; `texts` of
    this file and all that it loads."""

    file: str
    text: str
    parameters: Mapping[str, Mapping[str, bool]]
    lines: Mapping[str, int]
    texts: Mapping[str, str]
    compiled: Callable[[], starlark.FrozenModule]

    @classmethod
    def of(cls, file: str, texts: Mapping[str, str], compiled: Callable[[], starlark.FrozenModule]) -> Module:
        text = texts[file]
        lines = {m[1]: text.count("\n", 0, m.start()) + 1 for m in re.finditer(r"^def[ \t]+(\w+)", text, re.MULTILINE)}
        return cls(file, text, signatures(text), lines, texts, compiled)

    @cached_property
    def frozen(self) -> starlark.FrozenModule:
        return self.compiled()


#: Evaluated in each module before the file's own text, under names that no file uses. Two steps, because a name may not
#: be read where it is later assigned.
_PRELUDE = (
    "ondatra__native_decode = json.decode",
    Path(__file__).with_name("prelude.star").read_text(encoding="utf-8"),
)

#: Calls a function with rows that travel as JSON: Starlark reads that many times faster than Python's dicts. What it
#: says of them travels back as one text, names and values by turns, where a text can hold it; else as the one member of
#: a list.
_BRIDGE = """
def ondatra__{name}(names, lines, given):
    return ondatra__joined({name}(rows=ondatra__rows(names, lines), **given))
"""


def _dialect() -> starlark.Dialect:
    dialect = starlark.Dialect.extended()
    dialect.enable_f_strings = True
    return dialect


DIALECT = _dialect()
GLOBALS = starlark.Globals.extended_by(
    [
        starlark.LibraryExtension.StructType,
        starlark.LibraryExtension.Json,
        starlark.LibraryExtension.Map,
        starlark.LibraryExtension.Filter,
        starlark.LibraryExtension.Partial,
    ]
)


class Loader:
    """Compiles the files of one project folder, each once."""

    def __init__(self, project_dir: Path, builtins: Mapping[str, Callable[..., Any]]) -> None:
        self.project_dir, self.builtins = project_dir, builtins
        self.modules: dict[str, Module] = {}
        self.seconds: float | None = None  # what the top of a file may compute
        self._loading: list[str] = []

    def load(self, file: str) -> Module:
        """The module of `lib/x.star`. Raises ProjectError with file and line."""
        if file not in self.modules:
            if file in self._loading:
                raise ProjectError(
                    [Problem(self._loading[-1], 1, f"load() goes in a circle: {' -> '.join([*self._loading, file])}")]
                )
            self._loading.append(file)
            try:
                self.modules[file] = self._compile(file)
            finally:
                self._loading.pop()
        return self.modules[file]

    def read(self, file: str) -> str:
        path = self.project_dir / file
        if not re.fullmatch(r"lib/[\w./-]+\.star", file) or not path.resolve().is_relative_to(
            (self.project_dir / "lib").resolve()
        ):
            raise ProjectError(
                [
                    Problem(
                        self._loading[0] if self._loading else file,
                        1,
                        f"{file} cannot be loaded: only lib/<name>.star of the project can",
                    )
                ]
            )
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            near = ", ".join(sorted(p.name for p in (self.project_dir / "lib").glob("*.star"))) or "no file"
            why = "does not exist" if isinstance(error, FileNotFoundError) else "is no UTF-8 text: save it as UTF-8"
            if not isinstance(error, FileNotFoundError | UnicodeDecodeError):
                why = f"cannot be read: {error.strerror}"
            raise ProjectError([Problem(file, 1, f"{file} {why}; lib/ has {near}")]) from None

    def exists(self, file: str) -> bool:
        return (self.project_dir / file).is_file()

    def prepared(self) -> starlark.Module:
        """A module with the built-ins, before a file's own text."""
        module = starlark.Module()
        for name, function in self.builtins.items():
            module.add_callable(name, function)
        for part in _PRELUDE:
            starlark.eval(module, starlark.parse(BUILTINS, part, DIALECT), GLOBALS, nesting.LOADER)
        return module

    def _compile(self, file: str) -> Module:
        text = self.read(file)
        module = self.prepared()
        inner: list[ProjectError] = []

        def loaded(name: str) -> starlark.FrozenModule:
            try:
                return self.load(name).frozen
            except ProjectError as error:
                at = re.search(rf"^load\([^)]*{re.escape(name)}", text, re.MULTILINE)
                line = text.count("\n", 0, at.start()) + 1 if at else 1
                inner.append(
                    ProjectError(
                        [
                            Problem(file, line, p.message) if p.file == name and not self.exists(name) else p
                            for p in error.problems
                        ]
                    )
                )
                raise

        functions = signatures(text)
        watch = Watch(lambda: False, self.seconds)
        try:
            options = starlark.EvalOptions(check_cancelled=watch.look, max_callstack_size=CALL_DEPTH)
            starlark.eval_with(
                options, module, starlark.parse(file, exact(text), DIALECT), GLOBALS, starlark.FileLoader(loaded)
            )
            for name in ("push", "poll"):
                if "rows" in functions.get(name, {}):
                    starlark.eval(module, starlark.parse(BUILTINS, _BRIDGE.format(name=name), DIALECT), GLOBALS)
        except starlark.StarlarkError as error:
            if inner:
                raise inner[0] from None
            failure = explain(str(error), {file: text}, watch)
            line = re.search(rf"{re.escape(file)} line (\d+)", failure.place)
            raise ProjectError([Problem(file, int(line[1]) if line else 1, failure.message)]) from None
        frozen = module.freeze()
        return Module.of(file, {file: text, **{f: m.text for f, m in self.modules.items()}}, lambda: frozen)


def signatures(text: str) -> dict[str, dict[str, bool]]:
    """The parameters of each top-level def; Starlark's own are Python's, so Python reads them."""
    found = {}
    for match in re.finditer(r"^def[ \t]+(\w+)[ \t]*\(", text, re.MULTILINE):
        head = _until_body(text[match.start() :])
        try:
            (node,) = ast.parse(head + " pass").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if isinstance(node, ast.FunctionDef):
            args = node.args
            plain = [*args.posonlyargs, *args.args]
            needed = len(plain) - len(args.defaults)
            names = {a.arg: i >= needed for i, a in enumerate(plain)}
            names.update({a.arg: d is not None for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)})
            found[match[1]] = names
    return found


def _until_body(text: str) -> str:
    """A def's head, up to its colon."""
    plain = _HEAD.match(text)
    if plain:
        return plain[0]
    depth = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.OP:
                depth += (token.string in "([{") - (token.string in ")]}")
                if token.string == ":" and depth == 0:
                    row, column = token.end
                    lines = text.splitlines(keepends=True)
                    return "".join(lines[: row - 1]) + lines[row - 1][:column]
    except (tokenize.TokenError, SyntaxError):
        pass
    return text


class Watch:
    """Starlark's check hook: ends a call that was cancelled, that computes too long or takes too much memory."""

    def __init__(self, cancelled: Callable[[], bool], seconds: float | None = None) -> None:
        self.cancelled = cancelled
        self.seconds = TIME_LIMIT if seconds is None else seconds
        self.began = self.looked = time.monotonic()
        self.away = 0.0  # spent in requests and waits
        self.memory = _resident_lately(self.began)
        self.why = ""
        self.raised: BaseException | None = None

    def look(self) -> bool:
        now = time.monotonic()
        if now - self.looked < LOOK_EVERY:
            return False
        self.looked = now
        if now - self.began - self.away > self.seconds:
            self.why = f"the call computed longer than {self.seconds:g} s"
            return True
        used = _resident()
        if used - self.memory > MEMORY_LIMIT:
            self.why = f"the call took more than {MEMORY_LIMIT >> 20} MiB of memory"
            return True
        if self.cancelled():
            self.raised = Cancelled("the run was cancelled")
            self.why = "the run was cancelled"
            return True
        return False


_measured = 0.0, 0


def _resident_lately(now: float) -> int:
    """As it was at most LOOK_EVERY ago: short calls need not ask each time."""
    global _measured
    if now - _measured[0] > LOOK_EVERY:
        _measured = now, _resident()
    return _measured[1]


def _resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * 4096
    except (OSError, IndexError, ValueError):
        return 0


def current() -> Any:
    """The session that the running call of this thread serves."""
    session = getattr(_local, "session", None)
    if session is None:
        raise OndatraError(
            "http, env, print and the like work inside push(), poll() and finalize() only, not at the top of a file"
        )
    return session


def call(
    module: Module, name: str, kwargs: Mapping[str, Any], session: Any, watch: Watch, *, args: tuple[Any, ...] = ()
) -> Any:
    """Calls a function of the module; built-ins see `session`. Raises StarlarkFailure, Cancelled."""
    before = getattr(_local, "session", None)
    _local.session = session
    options = starlark.EvalOptions(check_cancelled=watch.look, max_callstack_size=CALL_DEPTH)
    try:
        return module.frozen.call_with(options, name, *args, **kwargs).value
    except starlark.StarlarkError as error:
        if isinstance(watch.raised, Cancelled):
            raise watch.raised from None
        raise explain(str(error), module.texts, watch) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise StarlarkFailure(
            f"{name.removeprefix('ondatra__')}() gave or got a value that cannot pass between Starlark and Python: "
            f"{error}"
        ) from None
    finally:
        _local.session = before


def with_rows(
    module: Module, name: str, names: list[str], lines: str, given: Mapping[str, Any], session: Any, watch: Watch
) -> Any:
    """Calls push() or poll() with plain rows: their columns, and their values as a JSON list of lists. Raises as
    `call`."""
    said = call(module, f"ondatra__{name}", {}, session, watch, args=(names, lines, given))
    if isinstance(said, str):
        texts = iter(said.split("\x7f"))
        return dict(zip(texts, texts, strict=True))
    return said[0]


def explain(said: str, texts: Mapping[str, str], watch: Watch | None = None) -> StarlarkFailure:
    """An error as people read it: what, and the line of their own file."""
    match = re.search(r"^error: (.*?)\n\s*--> (.+?):(\d+):\d+$", said, re.MULTILINE | re.DOTALL)
    message, file, line = (
        (match[1], match[2], int(match[3])) if match else (said.strip().removeprefix("error: "), "", 0)
    )
    if file not in texts:  # inside a built-in, which is not a fail() of the file's own: the line that called it
        message = message.removeprefix("fail: ")
        frames = [(f, int(n)) for f, n in re.findall(r"^  \* (.+?):(\d+), in ", said, re.MULTILINE) if f in texts]
        file, line = frames[-1] if frames else ("", 0)
    place = ""
    if file:
        place = place_of(file, line, texts)
    if watch and watch.why:
        message = watch.why
    elif watch and watch.raised is not None:
        return StarlarkFailure(str(watch.raised), place=place, cause=watch.raised)
    if message.startswith("fail: ") or message == "fail:":
        return StarlarkFailure(message[6:] or "fail() without a message", failed=True, place=place)
    return StarlarkFailure(message, place=place)


def place_of(file: str, line: int, texts: Mapping[str, str]) -> str:
    """A line as people find it."""
    function = _function_at(texts[file], line)
    return f"{file} line {line}" + (f", in {function}" if function else "")


def _function_at(text: str, line: int) -> str:
    for above in reversed(text.splitlines()[:line]):
        if match := re.match(r"def[ \t]+(\w+)", above):
            return match[1]
        if above[:1] not in ("", " ", "\t", "#", ")", "}", "]"):
            return ""
    return ""
