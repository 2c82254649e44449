"""Models as a graph: where boxes stand, what the page says, and that it holds for hundreds."""

from __future__ import annotations

import itertools
import re
import time

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ondatra_web.models import ModelState, Workspace
from ondatra_web.views import graph
from tests.web.filled import a_sync, person, workspace


def many(number: int) -> dict[str, list[str]]:
    """Each model reads the one before it and, often, one that is far away."""
    return {f"m{i:03}": [f"m{j:03}" for j in {i - 1, i // 3} if 0 <= j < i and i % 7] for i in range(number)}


def test_inputs_stand_to_the_left_of_what_reads_them_and_no_two_boxes_touch() -> None:
    inputs = many(300)
    drawing = graph.draw(inputs)
    where = {spot.name: spot for spot in drawing.spots}
    assert set(where) == set(inputs)
    assert all(where[i].x + graph.WIDTH < where[name].x for name, found in inputs.items() for i in found)
    assert not [
        (a, b)
        for a, b in itertools.combinations(where.values(), 2)
        if abs(a.x - b.x) < graph.WIDTH and abs(a.y - b.y) < graph.HEIGHT
    ]
    assert all(
        spot.x + graph.WIDTH <= drawing.width and spot.y + graph.HEIGHT <= drawing.height for spot in where.values()
    )
    assert len(drawing.paths) == sum(map(len, inputs.values()))


def test_three_hundred_models_that_read_nothing_fill_a_sheet_and_no_strip() -> None:
    drawing = graph.draw({f"m{i}": [] for i in range(300)})
    assert 1 / 6 < drawing.width / drawing.height < 6


def test_models_that_cross_the_least_stand_side_by_side() -> None:
    drawing = graph.draw({"a": [], "b": [], "c": [], "x": ["c"], "y": ["b"], "z": ["a"]})
    spots = {spot.name: spot.y for spot in drawing.spots}
    assert [spots[r] - spots[i] for r, i in (("x", "c"), ("y", "b"), ("z", "a"))] == [0, 0, 0]


def test_inputs_that_were_remembered_in_a_circle_or_are_gone_still_draw() -> None:
    assert len(graph.draw({"a": ["b", "gone"], "b": ["a"]}).spots) == 2
    assert graph.draw({}).spots == ()


# the pages

pages = pytest.mark.django_db


def state(place: Workspace, name: str, *inputs: str, action: str = "built", **fields: object) -> ModelState:
    return ModelState.objects.create(
        workspace=place, name=name, inputs=list(inputs), **{"kind": "table", "last_action": action, **fields}
    )


@pages
def test_the_graph_says_what_became_of_each_model_and_leads_to_it(client: Client) -> None:
    place = workspace()
    client.force_login(person("alice", place, "viewer"))
    raw = state(place, "raw.flights", rows=5)
    state(place, "mart.planes", "raw.flights", action="failed", last_error="no column <yeer>")
    state(place, "sync.out", "mart.planes", action="skipped")
    state(place, "old.gone", gone_at=raw.workspace.created_at)
    a_sync(place, "sync.out", destination_type="HubSpot")
    text = client.get("/models/lineage/").content.decode()
    assert len(re.findall(r"<path ", text)) == 2
    assert re.findall(r'class="box (\w+)"', text).count("failed") == 1
    assert f'href="/models/{raw.pk}/"' in text
    assert "mart.planes: failed. no column &lt;yeer&gt;" in text
    assert "→ HubSpot" in text
    assert "old.gone" not in text
    assert "<form" not in text.split("<main")[1].replace('<form class="row filterbar"', "")  # nothing is sent from here

    narrowed = client.get("/models/lineage/?q=raw").content.decode()
    assert "3 of 3 models" in narrowed  # a filter keeps what the model needs and what needs it


@pages
def test_a_model_shows_its_sql_as_written_and_as_run_and_its_columns(client: Client) -> None:
    place = workspace()
    client.force_login(person("alice", place))
    state(place, "raw.flights")
    shown = state(
        place,
        "mart.planes",
        "raw.flights",
        sql_as_written="SELECT a::INT FROM raw.flights",
        sql_as_run="SELECT CAST(a AS INT) FROM raw__flights",
        columns=[["a", "INTEGER", "INT"]],
        file="models/mart/planes.sql",
    )
    state(place, "other.far")
    text = client.get(f"/models/{shown.pk}/").content.decode()
    for said in (
        "SELECT a::INT FROM raw.flights",
        "SELECT CAST(a AS INT) FROM raw__flights",
        "<code>INTEGER</code>",
        "models/mart/planes.sql",
        "raw.flights",
    ):
        assert said in text
    assert "other.far" not in text
    client.force_login(person("charlie", workspace("elsewhere")))
    assert client.get(f"/models/{shown.pk}/").status_code == 404
    assert "mart.planes" not in client.get("/models/lineage/").content.decode()


@pages
def test_three_hundred_models_take_few_questions_and_little_time(client: Client) -> None:
    place = workspace()
    client.force_login(person("alice", place))
    ModelState.objects.bulk_create(
        [
            ModelState(
                workspace=place,
                name=f"a.{name}",
                kind="merge",
                inputs=[f"a.{i}" for i in found],
                last_action="unchanged",
            )
            for name, found in many(300).items()
        ]
    )
    client.get("/models/lineage/")
    with CaptureQueriesContext(connection) as asked:
        began = time.process_time()
        text = client.get("/models/lineage/").content.decode()
        took = time.process_time() - began
    assert text.count('class="box unchanged"') == 300
    assert len(asked) < 12
    assert took < 2
