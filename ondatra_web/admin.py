"""Every table for looking; only people, places and tokens are changed by hand. What runs wrote stays as it was
written."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import BinaryField, Model, TextField
from django.http import HttpRequest

from ondatra_web import models

#: Everything else is written by runs.
EDITABLE = (models.Organization, models.Membership, models.Workspace)
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
    models.Workspace,
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
