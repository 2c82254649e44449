"""A page that looks at a table of any size: what it costs follows from the rows that it shows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.text import capfirst

from ondatra_web.admin.columns import list_of, readable
from ondatra_web.admin.deeds import Deeds
from ondatra_web.models import Sync

PER_PAGE = 50


class Pages(Paginator):  # type: ignore[type-arg]
    """Counts the rows of one page and one more, however many there are."""

    def __init__(self, rows: Any, size: int, number: int) -> None:
        super().__init__(rows, size)
        self._before = (number - 1) * size

    @cached_property
    def count(self) -> int:  # type: ignore[override]
        ids = self.object_list.values_list("pk", flat=True)  # type: ignore[attr-defined]
        return self._before + len(ids[self._before : self._before + self.per_page + 1])


class Listing(ChangeList):
    """A list that goes on: newer and older, without a last page."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.title = str(capfirst(self.opts.verbose_name_plural))

    @property
    def newer(self) -> str:
        return str(self.get_query_string({PAGE_VAR: self.page_num - 1})) if self.page_num > 1 else ""

    @property
    def older(self) -> str:
        more = self.result_count > self.page_num * self.list_per_page
        return str(self.get_query_string({PAGE_VAR: self.page_num + 1})) if more else ""

    @property
    def narrowed(self) -> list[str]:
        """Of which rows of other tables the list is, as `run 7`."""
        told = [(name.split("__")[0], values) for name, values in self.filter_params.items() if "__id__" in name]
        return [f"{name.replace('_', ' ')} {', '.join(values)}" for name, values in told]


class Look(Deeds):
    """Reads, and does what its deeds say."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = PER_PAGE
    list_max_show_all = 0
    ordering = ("-pk",)
    sortable_by = ()
    actions = None
    view_on_site = False  # type: ignore[assignment]
    search_fields = ("pk",)  # says only that there is a search: `found` does it
    search_help_text = "An id"
    #: What the page of a row shows.
    columns: tuple[Any, ...] = ()
    #: What lies below a row: title, table, and the table's column that names the row.
    below: tuple[tuple[str, str, str], ...] = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    # lists

    def get_list_display(self, request: HttpRequest) -> Any:
        return [readable(self.opts.model, column) for column in self.list_display]  # type: ignore[arg-type]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return Listing

    def get_paginator(self, request: HttpRequest, queryset: Any, per_page: int, *args: Any, **kwargs: Any) -> Pages:
        number = request.GET.get(PAGE_VAR, "1")
        return Pages(queryset, per_page, max(1, int(number)) if number.isdecimal() else 1)

    def found(self, term: str) -> Q | None:
        """What a search selects, by an index; None for what nothing can be."""
        return Q(pk=int(term)) if is_id(term) else None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        chosen = self.found(term)
        return queryset.none() if chosen is None else queryset.filter(chosen), False

    # one row

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = self.fields or [readable(self.opts.model, column) for column in self.columns]  # type: ignore[arg-type]
        return (*shown, *(["see"] if self.below and obj else []))

    @admin.display(description="See")
    def see(self, row: Model) -> str:
        links = ((list_of(table, column, row.pk), title) for title, table, column in self.below)
        return format_html_join(" · ", '<a href="{}">{}</a>', links)


class Edit(Look):
    """What people made may be changed by people; who did is in the audit log."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._has(request, "add")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._has(request, "change")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._has(request, "delete")

    def _has(self, request: HttpRequest, right: str) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.{right}_{self.opts.model_name}")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.readonly_fields, *(["see"] if self.below and obj else []))


def is_id(term: str) -> bool:
    return term.isascii() and term.isdecimal() and len(term) < 19


def of_run(term: str, column: str = "run") -> Q | None:
    return Q(**{f"{column}_id": int(term)}) if is_id(term) else None


def of_sync(term: str, column: str = "sync") -> Q | None:
    """Rows of the syncs of that name: few, so that their index finds the rows."""
    found = list(Sync.objects.filter(name=term).values_list("pk", flat=True)[:20])
    return Q(**{f"{column}_id__in": found}) if found else None
