"""The SQL models of a person's workspaces: what became of each at the last run, as a list, as a graph, and one by one.
Nothing is sent from here."""

from __future__ import annotations

from collections import Counter
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
from ondatra_web.views import graph
from ondatra_web.views.shown import SignedIn, page_of

SIZE = 100
#: Letters of a name that fit into a box; the rest is told on a touch.
LETTERS = 23
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

    states = {s.name: s for s in _states(request).filter(workspace=chosen)} if chosen else {}
    inputs = _narrowed({name: state.inputs for name, state in states.items()}, q)
    counts = Counter(states[name].last_action or "never run" for name in inputs)

    context = {
        "workspaces": workspaces,
        "workspace": chosen,
        "q": q,
        "total": len(states),
        "counts": [(word, counts[word]) for word in (*STATES, "never run") if counts[word]],
        **_drawn(inputs, states, _syncs(request.user, list(inputs))),
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
    others = {s.name: s for s in _in(model_states_of(request.user)).filter(workspace=state.workspace)}
    inputs = {name: other.inputs for name, other in others.items()}
    readers = (name for name, found in inputs.items() if state.name in found)
    near = {state.name, *state.inputs, *readers} & set(others)
    edges = {name: [i for i in inputs[name] if state.name in (name, i)] for name in near}
    syncs = _syncs(request.user, list(near))

    context = {
        "model": state,
        "sync": syncs.get((state.workspace_id, state.name)),
        "state_id": state.pk,
        "columns": [(c[0], c[1]) for c in state.columns],
        **_drawn(edges, others, syncs),
    }
    return render(request, "models/model.html", context)


def _states(request: HttpRequest) -> Any:
    """Those of the organization that the person looks at."""
    return _in(model_states_of(request.user, chosen_organization(request)))


def _in(states: QuerySet[ModelState]) -> QuerySet[ModelState]:
    return states.filter(gone_at=None).defer("sql_as_run", "sql_as_written", "columns")


def _syncs(user: Person, names: list[str]) -> dict[tuple[int, str], Sync]:
    return {(s.workspace_id, s.name): s for s in syncs_of(user).filter(name__in=names, archived_at=None)}


def _drawn(
    inputs: dict[str, list[str]], states: dict[str, ModelState], syncs: dict[tuple[int, str], Sync]
) -> dict[str, Any]:
    """What the template of the SVG needs."""
    drawing = graph.draw(inputs)
    boxes = [
        {
            "spot": spot,
            "state": states[spot.name],
            "sync": syncs.get((states[spot.name].workspace_id, spot.name)),
            "label": spot.name if len(spot.name) <= LETTERS else f"{spot.name[: LETTERS - 1]}…",
        }
        for spot in drawing.spots
    ]
    edges = format_html_join("", '<path d="{}" />', ((path,) for path in drawing.paths))
    return {"drawing": drawing, "edges": edges, "boxes": boxes, "box_width": graph.WIDTH, "box_height": graph.HEIGHT}
