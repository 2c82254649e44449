"""A project folder, checked whole: every problem of every file at once, before anything starts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from runtime.custody.secrets import Secrets
from runtime.errors import BuildError, ConfigError, Problem, ProjectError
from runtime.model import Column, Model
from runtime.project import dag, directives, produced
from runtime.push.load import check_push
from runtime.sources import connections
from runtime.sources.connections import Connection
from runtime.sql import (
    SqlProblems,
    TableRef,
    Translated,
    read_ahead,
    references,
    remembering,
    translate,
    translate_ahead,
)


class Analyse(Protocol):
    """Spark, asked while a project is checked. `deep`: also about models whose columns DuckDB knows already."""

    deep: bool

    def columns(
        self, name: str, translated: Translated, known: Mapping[str, tuple[Column, ...]]
    ) -> tuple[Column, ...] | None:
        """The columns of a model; None when they cannot be known now. SqlProblems if Spark refuses the SQL."""

    def outside(self, connection: Connection, name: str) -> tuple[Column, ...]:
        """The columns of `connection.schema.table`. BuildError if it cannot be reached."""


@dataclass(frozen=True)
class Project:
    """A project without problems. `order` has inputs before what reads them; `columns` are those of models and of
    connections' tables. Without Spark some models have no translation and no columns yet."""

    folder: Path
    models: dict[str, Model]
    order: tuple[str, ...]
    translated: dict[str, Translated]
    inputs: dict[str, tuple[str, ...]]
    warnings: tuple[Problem, ...] = ()
    connections: Mapping[str, Connection] = field(default_factory=dict)
    columns: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)


@dataclass
class _Check:
    folder: Path
    secrets: Secrets
    allow_paths: Sequence[Path]
    analyse: Analyse | None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    models: dict[str, Model] = field(default_factory=dict)
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    translated: dict[str, Translated] = field(default_factory=dict)
    columns: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)  # models whose rows reach a destination, if only through others
    settings: connections.Settings = field(default_factory=connections.Settings)
    hidden: Sequence[Path] = ()  # files that no model reads, such as the env files of workspaces
    outside: dict[str, list[TableRef]] = field(
        default_factory=dict
    )  # of each model: the tables of connections that it reads

    def wrong(self, model: Model, line: int, message: str) -> None:
        self.problems.append(Problem(model.file, line, message))


def load_project(
    folder: Path,
    *,
    secrets: Secrets,
    allow_paths: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    names: Sequence[str] = (),
    analyse: Analyse | None = None,
) -> Project:
    """The project, or with `names` these models and what they need. Raises ProjectError with all problems,
    ConfigError."""
    project, problems = check_project(
        folder, secrets=secrets, allow_paths=allow_paths, hidden=hidden, names=names, analyse=analyse
    )
    if problems:
        raise ProjectError(problems)
    return project


@remembering()
def check_project(
    folder: Path,
    *,
    secrets: Secrets,
    allow_paths: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    names: Sequence[str] = (),
    analyse: Analyse | None = None,
) -> tuple[Project, list[Problem]]:
    """Everything that can be known before a run; the project is of use only without problems. Raises ConfigError for a
    folder or a name that does not exist."""
    check = _Check(folder, secrets, allow_paths, analyse, hidden=hidden)
    _read_models(check)
    wanted = _wanted(check, names)
    _find_inputs(check)
    _check_renames(check)
    order, cycles = dag.order(check.inputs)
    needed = dag.upstream(wanted, check.inputs) if names else set(check.models)
    check.sent = dag.upstream((m.name for m in check.models.values() if m.sink), check.inputs)
    for cycle in cycles:
        model = check.models[cycle[0]]
        check.wrong(model, model.sql_line, f"models read each other in a circle: {' -> '.join(cycle)}")
        check.broken.update(cycle)
    for names_of_level in dag.levels([n for n in order if n in needed], check.inputs):
        _check_level(check, [check.models[name] for name in names_of_level])
    for name in sorted(needed):
        _check_sink(check, check.models[name])
    files = {check.models[n].file for n in needed} | {
        f"lib/{s.function}.star" for n in needed if (s := check.models[n].sink)
    }
    problems = sorted({p for p in check.problems if not names or p.file in files or p.file == "ondatra.toml"})
    warnings = tuple(sorted(set(check.warnings)))
    kept = [n for n in order if n in needed]
    return Project(
        folder,
        {n: check.models[n] for n in kept},
        tuple(kept),
        {n: check.translated[n] for n in kept if n in check.translated},
        {n: check.inputs[n] for n in kept},
        warnings,
        check.settings.connections,
        check.columns,
    ), problems


# models


def _read_models(check: _Check) -> None:
    folder = check.folder / "models"
    paths = sorted(p for p in folder.rglob("*.sql") if p.is_file()) if folder.is_dir() else []
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if path.suffix.lower() == ".sql" and path.suffix != ".sql":
            told = f"is not read: the name of a model's file ends in .sql, not in {path.suffix}"
            check.problems.append(Problem(path.relative_to(check.folder).as_posix(), 1, told))
    if not paths and not check.problems:
        has_python = any(check.folder.glob("*.py")) or any(folder.glob("**/*.py"))
        raise ConfigError(
            f"there is no model in {folder}: create models/<folder>/<name>.sql with one SELECT"
            + (" (models are SQL; Python files are not read)" if has_python else "")
        )
    check.settings, wrong = connections.read(check.folder, check.secrets)
    check.problems += wrong
    dialect = check.settings.dialect
    for path in paths:
        model, problems = directives.parse_model(path, check.folder)
        check.problems += problems
        if model is None:
            continue
        if dialect and "dialect" not in model.lines:
            model = replace(model, dialect=dialect)
        twin = check.models.get(model.name)
        if twin is not None:
            check.wrong(model, 1, f"{model.file} and {twin.file} are the same model: names compare without case")
            continue
        check.models[model.name] = model


def _wanted(check: _Check, names: Sequence[str]) -> list[str]:
    wanted = []
    for name in names:
        full = name.lower() if "." in name else f"main.{name.lower()}"
        renamed = [m.name for m in check.models.values() if m.renamed_from == full]
        if full not in check.models and len(renamed) == 1:
            (full,) = renamed  # a run that was queued before its file was renamed
        if full not in check.models:
            raise ConfigError(f"there is no model {name}{_near(full, check.models)}")
        wanted.append(full)
    return wanted


def _check_renames(check: _Check) -> None:
    """An old name has one heir, and only once its own file is gone."""
    heirs: dict[str, Model] = {}
    for model in check.models.values():
        old = model.renamed_from
        if old is None:
            continue
        if old in check.models:
            check.wrong(
                model,
                model.line("renamed_from"),
                f"@renamed_from names {old}, which still is a model ({check.models[old].file}): "
                "delete that file, or remove this line",
            )
        elif old in heirs:
            check.wrong(
                model,
                model.line("renamed_from"),
                f"@renamed_from names {old}, and so does {heirs[old].file}: only one of them can go on as it",
            )
        heirs.setdefault(old, model)


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, 3, 0.5)
    if near:
        return f"; did you mean {', '.join(near)}?"
    return f"; there are: {', '.join(sorted(names)[:10])}" if names else ""


def _find_inputs(check: _Check) -> None:
    read_ahead((model.sql, model.dialect) for model in check.models.values())
    for name, model in check.models.items():
        found: dict[str, None] = {}
        try:
            refs = references(model.sql, model.dialect)
        except SqlProblems as error:
            _sql_problems(check, model, error)
            refs = ()
        for ref in refs:
            if ref.name in check.models:
                found[ref.name] = None
            elif ref.name.count(".") == 2 and ref.name.split(".")[0] in check.settings.connections:
                check.outside.setdefault(name, []).append(ref)
            else:
                check.wrong(
                    model, model.sql_line + ref.line - 1, f"there is no table {ref.name}{_elsewhere(check, ref.name)}"
                )
                check.broken.add(name)
        check.inputs[name] = tuple(found)


def _elsewhere(check: _Check, name: str) -> str:
    if name.count(".") < 2:
        return _near(name, check.models)
    known = ", ".join(sorted(check.settings.connections)) or "none"
    return (
        f": {name} is connection.schema.table, and ondatra.toml declares no connection {name.split('.')[0]}; there "
        f"are: {known}"
    )


def _sql_problems(check: _Check, model: Model, error: SqlProblems) -> None:
    check.broken.add(model.name)
    for line, message in error.problems:
        check.wrong(
            model, model.sql_line + line - 1, " ".join(message.split("\n"))
        )  # DuckDB's hints stand on lines of their own


# SQL and columns


def _check_level(check: _Check, models: Sequence[Model]) -> None:
    """Checks models of which none reads another."""
    ready = []
    for model in models:
        inputs = check.inputs[model.name]
        if (
            not _find_outside(check, model)
            or model.name in check.broken
            or any(i in check.broken or i not in check.columns for i in inputs)
        ):
            check.broken.add(model.name)
        else:
            names = [*inputs, *(ref.name for ref in check.outside.get(model.name, ()))]
            ready.append((model, {name: check.columns[name] for name in names}))
    translate_ahead(
        [(model.sql, model.dialect, tables) for model, tables in ready],
        project_dir=check.folder,
        allow_paths=check.allow_paths,
        hidden=check.hidden,
    )
    for model, tables in ready:
        _check_sql(check, model, tables)


def _check_sql(check: _Check, model: Model, tables: Mapping[str, tuple[Column, ...]]) -> None:
    try:
        translated = translate(
            model.sql,
            dialect=model.dialect,
            tables=tables,
            project_dir=check.folder,
            allow_paths=check.allow_paths,
            hidden=check.hidden,
        )
        check.translated[model.name] = translated
        columns = translated.columns
        if check.analyse is not None and (columns is None or check.analyse.deep):
            analysed = check.analyse.columns(model.name, translated, check.columns)
            columns = columns or analysed
    except SqlProblems as error:
        _sql_problems(check, model, error)
        return
    if columns is None:
        return  # Spark's dialect, and nobody to ask: what reads it is checked when it runs
    check.columns[model.name] = _with_scd2(model, columns)
    check.models[model.name] = produced.check_columns(model, columns, partial(check.wrong, model))
    check.warnings += produced.left_out(model, translated)
    if model.name in check.sent:
        check.warnings += produced.warnings(model)


def _find_outside(check: _Check, model: Model) -> bool:
    """Whether the columns of all tables of connections that the model reads are known; without Spark they are not."""
    known = True
    for ref in check.outside.get(model.name, ()):
        connection, line = check.settings.connections[ref.name.split(".")[0]], model.sql_line + ref.line - 1
        if connection.missing:
            check.wrong(
                model,
                line,
                f"the connection {connection.name} needs {' and '.join(connection.missing)}: set it in "
                f"{connection.source}",
            )
        elif ref.name not in check.columns and check.analyse is not None:
            try:
                check.columns[ref.name] = check.analyse.outside(connection, ref.name)
            except BuildError as error:
                check.wrong(model, line, str(error))
        known = known and ref.name in check.columns
    return known


def _with_scd2(model: Model, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    if model.kind != "scd2":
        return columns
    return (
        *columns,
        Column("valid_from_snapshot", "BIGINT", "BIGINT"),
        Column("valid_to_snapshot", "BIGINT", "BIGINT"),
        Column("is_current", "BOOLEAN", "BOOLEAN"),
    )


def _check_sink(check: _Check, model: Model) -> None:
    if model.sink is None:
        return
    name, line = model.sink.function, model.line("sink")
    if not (check.folder / "lib" / f"{name}.star").is_file():
        known = sorted(p.stem for p in (check.folder / "lib").glob("*.star"))
        check.wrong(model, line, f"@sink names {name}, but there is no lib/{name}.star{_near(name, known)}")
        return
    check.problems += check_push(
        check.folder, name, kind=model.kind, sink_args=model.sink.args, secrets=check.secrets, at=(model.file, line)
    )
