"""What may be done to a row: each deed has a page that says what it does and asks, and a home that does it and writes
the audit log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path, reverse

from runtime.errors import OndatraError


@dataclass(frozen=True)
class Deed:
    """`asks` says what would be done, a line each, and raises OndatraError where it cannot be; `does` does it for a
    person and says what came of it. `may` is False where the deed makes no sense, and then nobody is offered it."""

    name: str
    label: str
    asks: Callable[[Any], Sequence[str]]
    does: Callable[[Any, Any], str]
    may: Callable[[Any], bool] = lambda row: True


class Deeds(admin.ModelAdmin):  # type: ignore[type-arg]
    """A table whose rows have deeds. Who may change a row may do them."""

    deeds: tuple[Deed, ...] = ()

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_deed"
        ask = self.admin_site.admin_view(self.ask)
        return [path("<int:key>/do/<slug:deed>/", ask, name=name), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, object_id) if self.deeds else None
        context = {"deeds": self._offered(request, row) if row else [], **(extra_context or {})}
        return super().change_view(request, object_id, form_url, context)

    def _offered(self, request: HttpRequest, row: Any) -> list[tuple[str, str]]:
        """Addresses and labels."""
        if not self._may(request):
            return []
        return [(self._address("deed", row.pk, deed.name), deed.label) for deed in self.deeds if deed.may(row)]

    def _may(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def _address(self, page: str, *arguments: Any) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}", args=arguments)

    def ask(self, request: HttpRequest, key: int, deed: str) -> HttpResponse:
        """GET says what would be done, POST does it."""
        row = self.get_object(request, str(key))
        chosen = next((d for d in self.deeds if d.name == deed), None)
        if row is None or chosen is None:
            raise Http404(f"there is nothing called {deed} for {self.opts.verbose_name} {key}")
        if not self._may(request):
            raise PermissionDenied(f"your account may look at {row} but not change it")

        back = HttpResponseRedirect(self._address("change", key))
        try:
            if request.method == "POST":
                messages.success(request, chosen.does(row, request.user))
                return back
            lines = chosen.asks(row)
        except OndatraError as error:
            messages.error(request, str(error))
            return back
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": chosen.label,
            "lines": lines,
            "label": chosen.label,
            "back": back["Location"],
        }
        return render(request, "admin/deed.html", context)


def corrected(wrong: dict[str, list[int]]) -> str:
    """Counts that were added up anew, as `[before, after]`, in words."""
    if not wrong:
        return "Every count was right."
    each = (f"{name.replace('_', ' ')} from {before:,} to {after:,}" for name, (before, after) in wrong.items())
    return f"Corrected: {', '.join(each)}."
