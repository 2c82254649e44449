"""Every table for looking; only people, places and tokens are changed by hand. What runs wrote stays as it was
written."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import BinaryField, Model, TextField
from django.http import HttpRequest

from ondatra_web import models, workspaces

#: Everything else is written by runs.
EDITABLE = (models.Organization, models.Membership)
HIDDEN = ("digest", "mask_key", "sql_as_run", "metadata")


class LookAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Read only. Lists count nothing and join nothing that they do not show."""

    show_full_result_count = False
    list_per_page = 50
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class EditAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_per_page = 50


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
class WorkspaceAdmin(EditAdmin):
    """A workspace stays its organization's: its records and secrets are."""

    form = WorkspaceForm
    fields = ("organization", "slug", "project_dir", "env_file", "allow_paths")
    list_display = ("slug", "organization", "project_dir", "created_at")
    list_select_related = ("organization",)
    search_fields = ("slug",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("organization", "slug") if obj else ()

    def save_model(self, request: HttpRequest, obj: models.Workspace, form: Any, change: bool) -> None:
        user = request.user if request.user.is_authenticated else None
        saved, _ = workspaces.save(form.wanted(), obj.organization, user=user)
        obj.pk, obj._state.adding = saved.pk, False


def _columns(table: type[Model]) -> list[str]:
    return [
        "__str__",
        *(
            f.name
            for f in table._meta.fields
            if not f.primary_key
            and not f.is_relation
            and not isinstance(f, BinaryField | TextField)
            and f.name not in HIDDEN
        ),
    ][:9]


def _register(table: type[Model]) -> None:
    filters = [
        f.name for f in table._meta.fields if f.name in ("status", "kind", "trigger", "level", "role", "batch_type")
    ]
    search = [f.name for f in table._meta.fields if f.name in ("name", "slug", "pattern", "text", "action", "url")]
    options: dict[str, Any] = {
        "list_display": _columns(table),
        "list_filter": filters,
        "search_fields": search,
        "ordering": ["-pk"],
        "exclude": [
            f.name for f in table._meta.fields if isinstance(f, BinaryField) or f.name in ("digest", "mask_key")
        ],
        "list_select_related": True,
    }
    admin.site.register(
        table, type(f"{table.__name__}Admin", (EditAdmin if table in EDITABLE else LookAdmin,), options)
    )


for _table in (
    models.Organization,
    models.Membership,
    models.Bucket,
    models.Worker,
    models.ModelState,
    models.Destination,
    models.DestinationObject,
    models.Sync,
    models.Run,
    models.Chunk,
    models.Delivery,
    models.Answer,
    models.Job,
    models.RecordFile,
    models.MessageGroup,
    models.Export,
    models.ApiCallFile,
    models.RunLog,
    models.AuditLog,
    models.ApiToken,
    models.RateLimitHit,
):
    _register(_table)
