"""Each example of docs/api.md is asked as it stands there and answers as it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ondatra_web import tokens
from ondatra_web.alerts import judging
from ondatra_web.models import Alert, Run
from tests.web import filled

pytestmark = pytest.mark.django_db
TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```\n((?:GET|POST) [^\n]+\n.*?)```\n+(?:```json\n(.*?)```)", re.S)


def _install(folder: Path) -> tuple[Run, str]:
    """The run of the page's examples, under the ids that stand there."""
    place = filled.workspace()
    sync = filled.a_sync(place, schedule="0 6 * * *")
    run = filled.a_run(sync, "completed_with_rejects", **filled.closing(3, rejected=2), tracking="written")
    rows = [
        filled.record("N1"),
        filled.record("N2", "rejected", '422: field "year" is required', "reject", row=1),
        filled.record("N3", "rejected", "409: maker is unknown", "reject", row=2),
    ]
    filled.put_records(run, folder, rows)
    judging.ended()
    return run, tokens.make(place.organization, filled.person("ada", place), "t", list(tokens.SCOPES))[1]


def _within(wanted: Any, found: Any) -> bool:
    """Whether what the page shows stands in the answer, which may say more."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(k in found and _within(v, found[k]) for k, v in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and all(_within(w, f) for w, f in zip(wanted, found, strict=False))
    return bool(wanted == found)


def test_every_example_answers_as_the_page_says(tmp_path: Path) -> None:
    run, token = _install(tmp_path)
    real = {
        "syncs/1/": f"syncs/{run.sync_id}/",
        "sync_runs/1": f"sync_runs/{run.pk}",
        "sync_id=1": f"sync_id={run.sync_id}",
        "alerts/1": f"alerts/{Alert.objects.get().pk}",
    }
    client, wrong, asked = Client(), {}, 0
    for request, answer in EXAMPLE.findall(TEXT):
        head, _, body = request.strip().partition("\n\n")
        first, *lines = head.splitlines()
        method, path = first.split(" ", 1)
        for shown, there in real.items():
            path = re.sub(rf"{re.escape(shown)}(?!\d)", there, path)
        headers = dict(line.split(": ", 1) for line in lines)
        body = body.replace('"sync_id": 1', f'"sync_id": {run.sync_id}')
        said = client.generic(
            method, path, body, content_type="application/json", headers={"authorization": f"Bearer {token}", **headers}
        )
        wanted = json.loads(answer)
        if "trigger" in path:
            wanted["data"]["sync_run_id"] = Run.objects.order_by("-pk").values_list("pk", flat=True)[0]
        else:
            wanted = json.loads(
                answer.replace('"sync_run_id": 1', f'"sync_run_id": {run.pk}')
                .replace('"id": 1', f'"id": {run.pk}')
                .replace('"sync_id": 1', f'"sync_id": {run.sync_id}')
            )
        asked += 1
        if not _within(wanted, said.json()):
            wrong[first] = said.json()
    assert (asked, wrong) == (16, {})
