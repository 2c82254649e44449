"""The SQL models of a person's workspaces, and what became of each at the last run."""
from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import model_states_of, syncs_of
from ondatra_web.forms import SyncFilterForm
from ondatra_web.views.shown import SignedIn, page_of

SIZE = 100


@require_safe
@login_required
def index(request: SignedIn) -> HttpResponse:
    form = SyncFilterForm(request.GET)
    q = form.chosen["q"]
    rows = model_states_of(request.user).select_related("workspace").defer("sql_as_run", "columns").order_by("workspace__slug", "name")
    if q:
        rows = rows.filter(Q(name__icontains=q))
    page = page_of(rows, form.number, SIZE)
    shown = list(page.object_list)
    names = [state.name for state in shown]
    syncs = {(s.workspace_id, s.name): s for s in syncs_of(request.user).filter(name__in=names, archived_at=None)}
    return render(request, "models/index.html", {"page": page, "q": q, "states": [(s, syncs.get((s.workspace_id, s.name))) for s in shown]})
