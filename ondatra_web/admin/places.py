"""Where projects and records lie, and what is built there."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest

from ondatra_web import models, workspaces
from ondatra_web.admin.columns import link, told
from ondatra_web.admin.looking import Edit, Look, is_id


class WorkspaceForm(forms.ModelForm):  # type: ignore[type-arg]
    """Checked as the command checks it."""

    def clean(self) -> dict[str, Any]:
        told = super().clean() or {}
        for field, why in workspaces.problems(self.wanted()):
            self.add_error(field if field in self.fields else None, why)
        return told

    def wanted(self) -> workspaces.Wanted:
        said = {**{"slug": self.instance.slug}, **self.cleaned_data}
        paths = said.get("allow_paths") or []
        return workspaces.Wanted(
            said.get("slug") or "",
            said.get("project_dir") or "",
            said.get("env_file") or "",
            tuple(map(str, paths)) if isinstance(paths, list) else (str(paths),),
        )


@admin.register(models.Workspace)
class WorkspaceAdmin(Edit):
    """A workspace stays its organization's: its records and secrets are."""

    form = WorkspaceForm
    organization = link("organization", "organization")
    fields = ("organization", "slug", "project_dir", "env_file", "allow_paths")
    list_display = ("slug", "id", organization, "project_dir", "created_at")
    list_select_related = ("organization",)
    search_help_text = "Part of a name, or an id"
    below = (
        ("Syncs", "sync", "workspace"),
        ("Models", "modelstate", "workspace"),
        ("Destinations", "destination", "workspace"),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("organization", "slug", "see") if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """With it would go everything that was ever sent from it."""
        return False

    def found(self, term: str) -> Q | None:
        named = Q(slug__icontains=term)
        return named | Q(pk=int(term)) if is_id(term) else named

    def save_model(self, request: HttpRequest, obj: models.Workspace, form: Any, change: bool) -> None:
        user = request.user if request.user.is_authenticated else None
        saved, _ = workspaces.save(form.wanted(), obj.organization, user=user)
        obj.pk, obj._state.adding = saved.pk, False


@admin.register(models.ModelState)
class ModelAdmin(Look):
    workspace = link("workspace", "workspace")
    list_display = ("name", "id", workspace, "kind", "last_action", "last_run_at", told("rows", "rows"), "gone_at")
    list_select_related = ("workspace",)
    search_help_text = "Part of a name, or an id"
    columns = (
        "name",
        workspace,
        "kind",
        told("key", "key"),
        "file",
        told("inputs", "reads"),
        "last_action",
        "last_error",
        "last_run_at",
        told("rows", "rows"),
        "table_version",
        "place",
        "gone_at",
    )

    def found(self, term: str) -> Q | None:
        named = Q(name__icontains=term)
        return named | Q(pk=int(term)) if is_id(term) else named


@admin.register(models.Destination)
class DestinationAdmin(Look):
    workspace = link("workspace", "workspace")
    list_display = ("type", "id", workspace)
    list_select_related = ("workspace",)
    columns = ("type", workspace, "objects")

    @admin.display(description="objects")
    def objects(self, destination: models.Destination) -> str:
        return ", ".join(destination.destinationobject_set.values_list("name", flat=True)[:200])


@admin.register(models.Bucket)
class BucketAdmin(Look):
    """Without its keys."""

    organization = link("organization", "organization")
    list_display = ("url", organization, "in_use", "region", "retention_days", "checked_at", "problem")
    list_select_related = ("organization",)
    columns = (
        organization,
        "bucket",
        "prefix",
        "region",
        "endpoint",
        "role_arn",
        "in_use",
        "retention_days",
        "saved_at",
        "checked_at",
        "problem",
    )
    below = (("Runs whose records lie there", "run", "bucket"),)
