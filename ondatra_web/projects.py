"""A workspace's project folder and secrets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ondatra_web.models import Workspace
from runtime.custody import secrets
from runtime.errors import ConfigError, Problem
from runtime.project.check import Analyse, Project, check_project, load_project


def workspace_of(slug: str) -> Workspace:
    """Raises ConfigError that lists the workspaces there are."""
    found = Workspace.objects.select_related("organization").filter(slug=slug).first()
    if found is None:
        known = (
            ", ".join(Workspace.objects.values_list("slug", flat=True)[:20]) or "none; run bin/up or manage.py migrate"
        )
        raise ConfigError(f"there is no workspace {slug!r}; there are: {known}")
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
        _folder(workspace),
        secrets=secrets_of(workspace),
        allow_paths=[Path(p) for p in workspace.allow_paths],
        hidden=env_files(),
        names=names,
        analyse=analyse,
    )


def check(workspace: Workspace, *, analyse: Analyse | None = None) -> tuple[Project, list[Problem]]:
    return check_project(
        _folder(workspace),
        secrets=secrets_of(workspace),
        allow_paths=[Path(p) for p in workspace.allow_paths],
        hidden=env_files(),
        analyse=analyse,
    )


def _folder(workspace: Workspace) -> Path:
    folder = Path(workspace.project_dir)
    if not folder.is_dir():
        raise ConfigError(
            f"the project folder {folder} of workspace {workspace.slug} does not exist: "
            f"`manage.py workspace {workspace.slug} --project DIR` points it elsewhere"
        )
    return folder
