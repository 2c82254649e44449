"""The boxes of a graph of models, as SVG: thousands of them, which a template takes its time for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from ondatra_web.models import ModelState
from ondatra_web.views import graph

#: Letters of a name and of a destination that fit into a box; the rest is told on a touch.
LETTERS, LETTERS_OF_A_DESTINATION = 23, 12
LONGEST_ERROR = 300

BOX = """<a href="{}{}{}" class="box {}"{}>
  <title>{}</title>
  <g transform="translate({} {})">
    <rect width="{}" height="{}" rx="6" />
    <circle cx="13" cy="16" r="4" />
    <text x="24" y="20" class="name">{}</text>
    <text x="24" y="37" class="what">{}</text>
  </g>
</a>
"""
CURRENT = SafeString(' aria-current="page"')


class Told(NamedTuple):
    """Of a model what its box shows."""

    pk: int
    name: str
    kind: str
    last_action: str
    last_error: str
    rows: int
    inputs: list[str]

    @property
    def action(self) -> str:
        return self.last_action or "never run"


def told(states: QuerySet[ModelState]) -> dict[str, Told]:
    """By name, of models of one workspace."""
    return {one[1]: Told(*one) for one in states.values_list(*Told._fields)}


def drawn(
    spots: Iterable[graph.Spot], models: Mapping[str, Told], destinations: Mapping[str, str], here: str = ""
) -> SafeString:
    """`destinations` are those of the models that are syncs; `here` is the model that the page is about."""
    before, _, behind = reverse("model", args=[0]).rpartition("0")  # asked once
    return format_html_join(
        "",
        BOX,
        (
            (
                before,
                model.pk,
                behind,
                (model.last_action or "never") + (" here" if model.name == here else ""),
                CURRENT if model.name == here else "",
                _title(model),
                spot.x,
                spot.y,
                graph.WIDTH,
                graph.HEIGHT,
                _label(model.name),
                _what(model, destinations.get(model.name)),
            )
            for spot, model in ((spot, models[spot.name]) for spot in spots)
        ),
    )


def _label(name: str) -> str:
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"


def _title(model: Told) -> str:
    said = f"{model.name}: {model.action}"
    return f"{said}. {Truncator(model.last_error).chars(LONGEST_ERROR)}" if model.last_error else said


def _what(model: Told, destination: str | None) -> str:
    """`built · merge → HubSpot`, `unchanged · table · 1,000`."""
    to = f"· {model.rows:,}" if destination is None else f"→ {Truncator(destination).chars(LETTERS_OF_A_DESTINATION)}"
    return f"{model.action} · {model.kind} {to}"
