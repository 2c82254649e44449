"""The one home for making and changing a workspace: the command, the admin site and pages come here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from ondatra_web import audit
from ondatra_web.models import Organization, Workspace
from runtime.config import ROOT
from runtime.errors import ConfigError

SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
#: Of the system: whoever could have them read would read every user's files.
SYSTEM = {Path("/"), *(Path("/", name) for name in ("home", "media", "mnt", "opt", "root", "srv", "tmp", "usr", "var"))}
#: The same of everything below.
SYSTEMS_OWN = [
    Path("/", name) for name in ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys")
]
#: What of the code's own folder a model has no business with.
CODE = ("runtime", "ondatra_web", "bin", ".venv", ".git")


@dataclass(frozen=True)
class Wanted:
    """A workspace as somebody wants it. Paths are taken as they resolve, links followed."""

    slug: str
    project: str
    env_file: str = ""
    allow_paths: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return Path(self.project).resolve()

    @property
    def env_path(self) -> Path | None:
        return Path(self.env_file).resolve() if self.env_file else None

    @property
    def allowed(self) -> list[Path]:
        return [Path(path).resolve() for path in self.allow_paths]


def problems(wanted: Wanted, guest: Organization | None = None) -> list[tuple[str, str]]:
    """What is wrong, as (field of Workspace, sentence); empty where it can be saved. A guest is an organization whose
    admin does not run the install: its paths lie below ONDATRA_WORKSPACE_ROOTS, apart from those of all others."""
    if guest is not None and (found := [*_slug(wanted), *_guest(wanted, guest)]):
        return found  # nothing is told of what lies elsewhere, not even whether it is there
    return [*_slug(wanted), *_project(wanted), *_env_file(wanted), *_allow_paths(wanted)]


def save(
    wanted: Wanted,
    organization: Organization | None = None,
    *,
    user: AbstractBaseUser | None = None,
    guest: Organization | None = None,
) -> tuple[Workspace, bool]:
    """The workspace of that slug, and whether it is new. A new one belongs to the organization (the first one where
    none is given) for good, and has a mask key of its own. Raises ConfigError."""
    if found := problems(wanted, guest):
        raise ConfigError("\n".join(why for _, why in found))
    told: dict[str, Any] = {
        "project_dir": str(wanted.folder),
        "env_file": str(wanted.env_path or ""),
        "allow_paths": [str(path) for path in wanted.allowed],
    }
    with transaction.atomic():
        known = Workspace.objects.select_for_update().filter(slug=wanted.slug).first()
        if known is not None and organization is not None and known.organization_id != organization.pk:
            raise ConfigError(f"workspace {wanted.slug} is another organization's: give it another name")
        if known is None:
            owner = organization or Organization.objects.order_by("pk").first()
            owner = owner or Organization.objects.create(name="Default")
            saved = Workspace.objects.create(slug=wanted.slug, organization=owner, **told)
        else:
            Workspace.objects.filter(pk=known.pk).update(**told)
            saved = Workspace.objects.get(pk=known.pk)
        audit.write(saved.organization_id, user, "save_workspace", wanted.slug, told)
    return saved, known is None


def _slug(wanted: Wanted) -> Iterator[tuple[str, str]]:
    if not SLUG.fullmatch(wanted.slug):
        yield "slug", f"{wanted.slug!r} is no slug: lower-case letters, digits, - and _, up to 50"


def _guest(wanted: Wanted, guest: Organization) -> Iterator[tuple[str, str]]:
    roots = [Path(root).resolve() for root in settings.ONDATRA.workspace_roots]
    others = list(Workspace.objects.exclude(organization=guest).values_list("project_dir", "env_file", "allow_paths"))
    taken = [Path(p).resolve() for folder, env_file, allowed in others for p in (folder, env_file, *allowed) if p]

    named = [("project_dir", wanted.folder), *(("allow_paths", path) for path in wanted.allowed)]
    named += [("env_file", wanted.env_path)] if wanted.env_path else []
    for field, path in named:
        if not any(path != root and path.is_relative_to(root) for root in roots):
            below = ", ".join(map(str, roots)) or "none: whoever runs the install sets ONDATRA_WORKSPACE_ROOTS"
            yield field, f"{path} lies below no folder that workspaces may use ({below})"
        elif any(path.is_relative_to(other) or other.is_relative_to(path) for other in taken):
            yield field, f"{path} is another organization's: choose a folder of your own"


def _project(wanted: Wanted) -> Iterator[tuple[str, str]]:
    folder = wanted.folder
    if not folder.is_dir():
        yield "project_dir", f"project {folder}: there is no such folder"
    elif why := _systems(folder):
        yield "project_dir", f"project {folder}: {why}"
    elif inside := next((kept for kept in _kept() if folder.is_relative_to(kept)), None):
        yield "project_dir", f"project {folder} lies in {inside}, which the install keeps for itself: put it elsewhere"


def _env_file(wanted: Wanted) -> Iterator[tuple[str, str]]:
    path = wanted.env_path
    if path is None:
        return
    if not path.is_file():
        yield "env_file", f"env file {path}: there is no such file"
    for folder in (wanted.folder, *wanted.allowed):
        if path.is_relative_to(folder):
            yield "env_file", f"env file {path} lies inside {folder}, which models may read: keep secrets outside of it"


def _allow_paths(wanted: Wanted) -> Iterator[tuple[str, str]]:
    for path in wanted.allowed:
        if not path.is_dir():
            yield "allow_paths", f"allowed path {path}: there is no such folder"
        elif why := _systems(path):
            yield "allow_paths", f"allowed path {path}: {why}"
        elif kept := next((k for k in _kept() if path.is_relative_to(k) or k.is_relative_to(path)), None):
            yield (
                "allow_paths",
                f"allowed path {path}: models would read {kept}, which the install keeps for itself (keys, database, "
                f"everybody's records, code): allow a folder beside it",
            )


def _systems(folder: Path) -> str:
    """Why a folder of the system cannot be read by models."""
    if folder in SYSTEM or any(folder.is_relative_to(own) for own in SYSTEMS_OWN):
        return "it is the system's, and models would read passwords and other people's files: give a folder of its own"
    return ""


def _kept() -> list[Path]:
    """Where an install on this machine keeps what is its own."""
    config = settings.ONDATRA
    urls = (config.lake_url, config.staging_url, config.tracking_url)
    database = settings.DATABASES["default"]
    return [
        config.data_dir.resolve(),
        *(Path(unquote(urlsplit(url).path)).resolve() for url in urls if url.startswith("file:")),
        *([Path(database["NAME"]).resolve()] if database["ENGINE"].endswith("sqlite3") else []),
        config.jars_dir.resolve(),
        *((ROOT / name).resolve() for name in CODE),
    ]
