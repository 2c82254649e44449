"""Push functions, loaded and checked before the first request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from runtime.errors import Problem, ProjectError
from runtime.push import api_dict
from runtime.push.api_dict import Api
from runtime.push.builtins import FUNCTIONS
from runtime.push.function import PushFunction
from runtime.push.http.auth import SecretSource
from runtime.push.starlark import Loader, Module
from runtime.push.trial import tried

_modules: dict[tuple[str, str], tuple[tuple[tuple[str, int, int], ...], Module]] = {}


def _compile(project_dir: Path, name: str) -> Module:
    """The module of a file, compiled once until any of its files changes."""
    file = f"lib/{name}.star"
    known = _modules.get((str(project_dir), file))
    if known and known[0] == _stamps(project_dir, [f for f, _, _ in known[0]]):
        return known[1]
    loader = Loader(project_dir, FUNCTIONS)
    module = tried(loader, file)
    _modules[(str(project_dir), file)] = (_stamps(project_dir, list(module.texts)), module)
    return module


def _stamps(project_dir: Path, files: Sequence[str]) -> tuple[tuple[str, int, int], ...]:
    stamps = []
    for file in files:
        try:
            stat = (project_dir / file).stat()
            stamps.append((file, stat.st_mtime_ns, stat.st_size))
        except OSError:
            stamps.append((file, 0, -1))
    return tuple(stamps)


def load_push(project_dir: Path, name: str, *, secrets: SecretSource, sink_args: Sequence[str] = ()) -> PushFunction:
    """The push function of `lib/<name>.star`, for a sync with these arguments. Raises ProjectError, also for a secret
    that is not set."""
    module, api, line = _read(project_dir, name)
    problems = _missing_secrets(api, module.file, line, secrets) + _undefined(module, api)
    if problems:
        raise ProjectError(problems)
    return PushFunction(name, module, replace(api, destination=api.destination.of(sink_args)), secrets)


def _read(project_dir: Path, name: str) -> tuple[Module, Api, int]:
    """Raises ProjectError with the problems of the API dict and of the code together."""
    file = f"lib/{name}.star"
    problems: list[Problem] = []
    api: Api | None = None
    line = 1
    try:
        value, line = api_dict.find_api(Loader(project_dir, FUNCTIONS).read(file), file=file)
        api = api_dict.read_api(value, name, file=file, line=line)
    except ProjectError as error:
        problems += error.problems
    module = None
    try:
        module = _compile(project_dir, name)
    except ProjectError as error:
        problems += error.problems
    if problems or module is None or api is None:
        raise ProjectError(problems)
    return module, api, line


def check_push(
    project_dir: Path,
    name: str,
    *,
    kind: str,
    sink_args: Sequence[str],
    secrets: SecretSource,
    at: tuple[str, int] | None = None,
) -> list[Problem]:
    """Everything that can be known before the first request. `at`: file and line of the @sink, for what is wrong
    there."""
    try:
        module, api, line = _read(project_dir, name)
    except ProjectError as error:
        return error.problems
    problems = _missing_secrets(api, module.file, line, secrets) + _undefined(module, api)
    wanted = api.push.args
    if len(sink_args) != len(wanted):
        names = f" ({', '.join(wanted)})" if wanted else ""
        told = f"@sink gives {len(sink_args)} argument(s), but push.args of {module.file} names {len(wanted)}{names}"
        problems.append(Problem(*at or (module.file, line), told))
    for function, known in (("push", api_dict.PUSH_PARAMETERS), ("poll", api_dict.POLL_PARAMETERS)):
        allowed = (*known, *wanted)
        for parameter, has_default in module.parameters.get(function, {}).items():
            if parameter not in allowed and not has_default:
                problems.append(
                    Problem(
                        module.file,
                        module.lines.get(function, 1),
                        f"{function}() asks for {parameter!r}, which nobody gives; it may declare {', '.join(allowed)}",
                    )
                )
    needed = [p for p, has_default in module.parameters.get("finalize", {}).items() if not has_default]
    if len(needed) > 2:
        problems.append(
            Problem(
                module.file,
                module.lines.get("finalize", 1),
                f"finalize() asks for {', '.join(needed)}; it is given succeeded and failed",
            )
        )
    return sorted(set(problems))


def _undefined(module: Module, api: Api) -> list[Problem]:
    problems = []
    if "push" not in module.parameters:
        problems.append(Problem(module.file, 1, "the file defines no push(): def push(rows): …"))
    if api.push.batch_mode == "async" and "poll" not in module.parameters:
        problems.append(Problem(module.file, 1, "batch_mode 'async' needs a function poll(job_ref) in the file"))
    return problems


def _missing_secrets(api: Api, file: str, line: int, secrets: SecretSource) -> list[Problem]:
    source = getattr(secrets, "source", "the environment")
    return [
        Problem(file, line, f"auth needs the secret {name}, which is not set: set it in {source}")
        for name in (api.auth.secrets() if api.auth else ())
        if not secrets.get(name)
    ]
