"""A checked project with its push functions: what building needs, and what delivery in the same process does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from ondatra_web import projects
from ondatra_web.models import ModelState, Run, Sync, Workspace
from ondatra_web.runs import declared, renames
from ondatra_web.runs.claims import columns_of
from ondatra_web.runs.patience import patiently
from ondatra_web.runs.watch import Watch
from ondatra_web.tracking import facts
from runtime.lake import spark
from runtime.model import Column, Model
from runtime.pipeline.building import Result
from runtime.project.check import Project
from runtime.push import apart
from runtime.push.function import PushFunction
from runtime.sources.columns import WithSpark
from runtime.sql import Translated
from runtime.tracking.info import RunInfo


@dataclass
class Walk:
    """One checked project with its push functions; what came of it, once it was run."""

    workspace: Workspace
    project: Project
    pushes: Mapping[str, PushFunction]
    results: dict[str, Result] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)

    def model(self, run: Run) -> Model:
        return self.project.models[run.sync.name]

    def push(self, run: Run) -> PushFunction:
        return self.pushes[run.sync.name]

    def info(self, run: Run) -> RunInfo:
        return patiently(facts.run_info)(self.workspace, run, self.model(run), self.push(run))


def prepare(workspace: Workspace, names: Sequence[str] = (), watch: Watch | None = None) -> Walk:
    """Checks everything that can be known; raises ProjectError or ConfigError before anything started."""
    watch = watch or Watch()
    watch.doing("checking the models")
    project = projects.project_of(workspace, names, analyse=_Remembering(workspace, watch))
    watch.doing("")
    secrets = projects.secrets_of(workspace)
    folder = Path(workspace.project_dir)
    pushes = {
        name: apart.load(folder, m.sink.function, secrets=secrets, sink_args=m.sink.args)
        for name, m in project.models.items()
        if m.sink
    }

    patiently(renames.carry_over)(workspace, project)
    patiently(_save_syncs)(workspace, project, whole=not names)
    return Walk(workspace, project, pushes)


def session(watch: Watch | None = None) -> Any:
    """A Spark session of its own."""
    if watch is None or spark.is_there():
        return spark.isolated(settings.ONDATRA)
    watch.doing("starting Spark")
    try:
        return spark.isolated(settings.ONDATRA)
    finally:
        watch.doing("")


class _Remembering(WithSpark):
    """Columns of models in Spark's dialect: remembered while their SQL is the same, else from Spark itself."""

    def __init__(self, workspace: Workspace, watch: Watch) -> None:
        super().__init__(lambda: session(watch))
        self.workspace = workspace

    def columns(
        self, name: str, translated: Translated, known: Mapping[str, tuple[Column, ...]]
    ) -> tuple[Column, ...] | None:
        # a connection's table may have other columns today
        if any(table.count(".") > 1 for table in translated.tables):
            return super().columns(name, translated, known)
        state = ModelState.objects.filter(workspace=self.workspace, name=name, sql_as_run=translated.spark_sql).first()
        return columns_of(state.columns) if state and state.columns else super().columns(name, translated, known)


def _save_syncs(workspace: Workspace, project: Project, *, whole: bool) -> None:
    """A row for each model with a sink; with the `whole` project at hand one whose file is gone is archived."""
    declared.save(workspace, project.models.values())
    if whole:
        _archive(workspace, project)


def _archive(workspace: Workspace, project: Project) -> None:
    now = timezone.now()
    kept = [name for name, model in project.models.items() if model.sink]
    Sync.objects.filter(workspace=workspace, archived_at=None).exclude(name__in=kept).update(archived_at=now)
    ModelState.objects.filter(workspace=workspace, gone_at=None).exclude(name__in=project.models).update(gone_at=now)
