"""A workspace's project folder and secrets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from ondatra_web.models import Workspace
from runtime import config
from runtime.custody import secrets
from runtime.errors import ConfigError, Problem
from runtime.project.check import Analyse, Project, check_project, load_project

#: The workspace of whoever names none.
DEFAULT = "default"


def workspace_of(slug: str) -> Workspace:
    """Raises ConfigError that lists the workspaces there are, and where `default` is another project than the one that
    was asked for."""
    found = Workspace.objects.select_related("organization").filter(slug=slug).first()
    if found is None:
        migrate = settings.ONDATRA.command("migrate")
        known = ", ".join(Workspace.objects.values_list("slug", flat=True)[:20]) or f"none; run {migrate}"
        raise ConfigError(f"there is no workspace {slug!r}; there are: {known}")
    here = settings.ONDATRA.project_dir
    if slug == DEFAULT and here != config.ROOT and Path(found.project_dir) != here:
        raise ConfigError(
            f"workspace {slug} in {settings.ONDATRA.data_dir} is the project {found.project_dir}, not {here}: give "
            f"this one data of its own (unset ONDATRA_DATA_DIR), or a workspace of its own (`ondatra workspace NAME "
            f"--project {here}`, then --workspace NAME), or move {slug} (`ondatra workspace {slug} --project {here}`)"
        )
    return found


def secrets_of(workspace: Workspace) -> secrets.Secrets:
    """With an env file only its variables, else the environment less the product's own settings."""
    return secrets.from_file(Path(workspace.env_file)) if workspace.env_file else secrets.from_environment()


def env_files() -> list[Path]:
    """The files of secrets of all workspaces, which no model reads wherever they lie."""
    return [Path(p).resolve() for p in Workspace.objects.exclude(env_file="").values_list("env_file", flat=True)]


def project_of(workspace: Workspace, names: Sequence[str] = (), *, analyse: Analyse | None = None) -> Project:
    """Raises ProjectError with all problems, ConfigError."""
    return load_project(
        folder_of(workspace),
        secrets=secrets_of(workspace),
        allow_paths=[Path(p) for p in workspace.allow_paths],
        hidden=env_files(),
        names=names,
        analyse=analyse,
    )


def check(workspace: Workspace, *, analyse: Analyse | None = None) -> tuple[Project, list[Problem]]:
    return check_project(
        folder_of(workspace),
        secrets=secrets_of(workspace),
        allow_paths=[Path(p) for p in workspace.allow_paths],
        hidden=env_files(),
        analyse=analyse,
    )


def folder_of(workspace: Workspace) -> Path:
    """Raises ConfigError where it is not there."""
    folder = Path(workspace.project_dir)
    if not folder.is_dir():
        raise ConfigError(
            f"the project folder {folder} of workspace {workspace.slug} does not exist: "
            f"`{settings.ONDATRA.command(f'workspace {workspace.slug} --project DIR')}` points it elsewhere"
        )
    return folder
