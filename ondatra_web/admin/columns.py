"""Columns that a person can read: links, separators, sizes, counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from typing import Any

from django.contrib import admin
from django.db.models import BooleanField, DateTimeField, Model
from django.urls import reverse
from django.utils.html import format_html

Display = Callable[[Any], Any]


def list_of(table: str, column: str, key: Any) -> str:
    """The address of those rows of a table whose column names that key."""
    app = "auth" if table in ("user", "group") else "ondatra_web"
    return f"{reverse(f'admin:{app}_{table}_changelist')}?{column}__id__exact={key}"


def link(path: str, description: str) -> Display:
    """A column that leads to another row: `run.sync` of a delivery is the sync of its run."""

    @admin.display(description=description, empty_value="–")
    def shown(row: Any) -> Any:
        for name in path.split("."):
            row = getattr(row, name) if row is not None else None
        if row is None:
            return None
        kind = row._meta
        return format_html(
            '<a href="{}">{}</a>', reverse(f"admin:{kind.app_label}_{kind.model_name}_change", args=[row.pk]), row
        )

    return shown


@cache
def readable(table: type[Model], column: Any) -> Any:
    """Moments with their zone and flags as words, where the column is a field of that kind; else as it is."""
    if not isinstance(column, str) or column not in {f.name for f in table._meta.concrete_fields}:
        return column
    field = table._meta.get_field(column)
    words: Display
    if isinstance(field, DateTimeField):
        words = _moment
    elif isinstance(field, BooleanField):
        words = ("no", "yes").__getitem__
    else:
        return column

    @admin.display(description=str(field.verbose_name), empty_value="–")
    def shown(row: Any) -> Any:
        value = getattr(row, column)
        return None if value is None else words(value)

    return shown


def _moment(at: datetime) -> str:
    return format_html('<span class="moment">{} UTC</span>', f"{at:%Y-%m-%d %H:%M:%S}")


def told(name: str, description: str) -> Display:
    """A column with separators, or a list of words."""

    @admin.display(description=description, empty_value="–")
    def shown(row: Any) -> Any:
        value = getattr(row, name)
        if value is None:
            return None
        if isinstance(value, int):
            return f"{value:,}"
        return ", ".join(map(str, value)) or None

    return shown


def size(name: str, description: str) -> Display:
    """Bytes, as people read them."""

    @admin.display(description=description)
    def shown(row: Any) -> str:
        value = float(getattr(row, name))
        for unit in ("B", "KiB", "MiB"):
            if value < 1024:
                return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
            value /= 1024
        return f"{value:,.1f} GiB"

    return shown


def counts(name: str, description: str) -> Display:
    """`succeeded 57, rejected 3` of a column of counts."""

    @admin.display(description=description, empty_value="–")
    def shown(row: Any) -> Any:
        pairs: Iterable[tuple[str, int]] = (getattr(row, name) or {}).items()
        return ", ".join(f"{word.replace('_', ' ')} {number:,}" for word, number in pairs if number) or None

    return shown
