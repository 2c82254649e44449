"""The SQL models of a person's workspaces: what became of each at the last run, as a list, as a graph, and one by one.
Nothing is sent from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import format_html_join
from django.views.decorators.http import require_safe

from ondatra_web.access import Person, chosen_organization, model_state_for, model_states_of, syncs_of
from ondatra_web.forms import SyncFilterForm
from ondatra_web.models import ModelState, Sync, Workspace
from ondatra_web.views import boxes, graph
from ondatra_web.views.shown import SignedIn, page_of

SIZE = 100
#: Failed first, so that the legend begins with what needs a person.
STATES = ("failed", "skipped", "built", "unchanged")


@require_safe
@login_required
def index(request: SignedIn) -> HttpResponse:
    form = SyncFilterForm(request.GET)
    q = form.chosen["q"]
    rows = _states(request).select_related("workspace").order_by("workspace__slug", "name")
    if q:
        rows = rows.filter(Q(name__icontains=q))
    page = page_of(rows, form.number, SIZE)
    shown = list(page.object_list)
    syncs = _syncs(request.user, [state.name for state in shown])
    states = [(state, syncs.get((state.workspace_id, state.name))) for state in shown]
    return render(request, "models/index.html", {"page": page, "q": q, "states": states})


@require_safe
@login_required
def lineage(request: SignedIn) -> HttpResponse:
    """The models of one workspace as a graph; `q` narrows it to the models that match, with what they need and what
    needs them."""
    workspaces = list(Workspace.objects.filter(pk__in=_states(request).values("workspace")).order_by("slug"))
    named = (w for w in workspaces if w.slug == request.GET.get("workspace"))
    chosen = next(named, workspaces[0] if workspaces else None)
    q = SyncFilterForm(request.GET).chosen["q"]

    models = boxes.told(_states(request).filter(workspace=chosen))
    inputs = _narrowed({name: found.inputs for name, found in models.items()}, q)
    counts = Counter(models[name].action for name in inputs)

    context = {
        "workspaces": workspaces,
        "workspace": chosen,
        "q": q,
        "total": len(models),
        "shown": len(inputs),
        "counts": [(word, counts[word]) for word in (*STATES, "never run") if counts[word]],
        **_drawn(inputs, models, _destinations(request.user, chosen)),
    }
    return render(request, "models/lineage.html", context)


def _narrowed(inputs: dict[str, list[str]], q: str) -> dict[str, list[str]]:
    """The models that match, with what they need and what needs them."""
    if not q:
        return inputs
    near = set().union(*(graph.around(name, inputs) for name in inputs if q.lower() in name))
    return {name: found for name, found in inputs.items() if name in near}


@require_safe
@login_required
def model(request: SignedIn, state_id: int) -> HttpResponse:
    state = model_state_for(request.user, state_id)
    others = boxes.told(_kept(model_states_of(request.user)).filter(workspace=state.workspace))
    readers = (name for name, found in others.items() if state.name in found.inputs)
    near = {state.name, *state.inputs, *readers} & set(others)
    edges = {name: [i for i in others[name].inputs if state.name in (name, i)] for name in near}
    destinations = _destinations(request.user, state.workspace, near)

    context = {
        "model": state,
        "sync": _syncs(request.user, [state.name]).get((state.workspace_id, state.name)),
        "columns": [(c[0], c[1]) for c in state.columns],
        **_drawn(edges, others, destinations, here=state.name),
    }
    return render(request, "models/model.html", context)


def _states(request: HttpRequest) -> QuerySet[ModelState]:
    """Those of the organization that the person looks at."""
    return _kept(model_states_of(request.user, chosen_organization(request)))


def _kept(states: QuerySet[ModelState]) -> QuerySet[ModelState]:
    return states.filter(gone_at=None).defer("sql_as_run", "sql_as_written", "columns")


def _syncs(user: Person, names: list[str]) -> dict[tuple[int, str], Sync]:
    return {(s.workspace_id, s.name): s for s in syncs_of(user).filter(name__in=names, archived_at=None)}


def _destinations(user: Person, workspace: Workspace | None, names: Collection[str] | None = None) -> dict[str, str]:
    """By sync where it sends to, as its box says it; of these names or all."""
    syncs = syncs_of(user).filter(workspace=workspace, archived_at=None)
    syncs = syncs if names is None else syncs.filter(name__in=names)
    told = syncs.values_list("name", "destination_type", "function")
    return {name: destination or function for name, destination, function in told}


def _drawn(
    inputs: dict[str, list[str]], models: dict[str, boxes.Told], destinations: dict[str, str], here: str = ""
) -> dict[str, Any]:
    """What the template of the SVG needs."""
    drawing = graph.draw(inputs)
    edges = format_html_join("", '<path d="{}" />', ((path,) for path in drawing.paths))
    return {"drawing": drawing, "edges": edges, "boxes": boxes.drawn(drawing.spots, models, destinations, here)}
