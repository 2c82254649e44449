"""Filters of the list of syncs that a person keeps under a name, for the home page and the list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from ondatra_web.access import chosen_organization, own_organization, saved_filter_for
from ondatra_web.forms import SaveFilterForm, SyncFilterForm
from ondatra_web.models import SavedFilter
from ondatra_web.views.shown import SignedIn

#: So many one person keeps of one organization.
MOST = 30


@dataclass(frozen=True)
class Kept:
    """One of them, as a link; `here` where the address asks for just this."""

    id: int
    name: str
    query: str
    here: bool


def kept(request: SignedIn, chosen: Mapping[str, Any]) -> list[Kept]:
    """Those of the person in the organization that the lists are about, by name."""
    here = asked(chosen)
    rows = SavedFilter.objects.filter(user=request.user, organization=chosen_organization(request)).order_by("name")
    return [Kept(row.pk, row.name, urlencode(row.chosen), row.chosen == here) for row in rows]


def asked(chosen: Mapping[str, Any]) -> dict[str, str]:
    """What is chosen of a list's address, whatever its page."""
    return {name: str(value) for name, value in chosen.items() if value and name != "page"}


@require_POST
@login_required
def save(request: SignedIn) -> HttpResponse:
    """Keeps what the form holds, in place of another one of that name, and shows it."""
    here = own_organization(request)
    form, wanted = SaveFilterForm(request.POST), asked(SyncFilterForm(request.POST).chosen)
    mine = SavedFilter.objects.filter(user=request.user, organization=here)
    if not form.is_valid() or not wanted:
        messages.error(request, "A saved filter needs a name of up to 60 characters, and something that is chosen.")
    elif mine.exclude(name=form.cleaned_data["name"]).count() >= MOST:
        messages.error(request, f"{MOST} filters are saved: remove one of them first.")
    else:
        told = {"user": request.user, "organization": here, "name": form.cleaned_data["name"]}
        SavedFilter.objects.update_or_create(**told, defaults={"chosen": wanted})
    return _back(request, wanted)


@require_POST
@login_required
def remove(request: SignedIn, filter_id: int) -> HttpResponse:
    found = saved_filter_for(request.user, filter_id)
    found.delete()
    messages.success(request, f"{found.name} is no longer saved.")
    return _back(request, {})


def _back(request: SignedIn, chosen: Mapping[str, str]) -> HttpResponse:
    """To home or the list, wherever the person was."""
    page = redirect("home" if request.POST.get("from") == "home" else "syncs")
    if chosen:
        page["Location"] += f"?{urlencode(chosen)}"
    return page
