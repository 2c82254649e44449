"""Payload fields as columns of the window, kept for each person and sync; what a record's panel offers to copy."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from ondatra_web.models import Run, ShownColumns
from tests.web.filled import a_run, a_sync, closing, person, put_calls, put_records, record, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(tmp_path: Path) -> Run:
    found = a_run(a_sync(workspace()), **closing(2))
    payload = {"tailnum": "N1", "year": 12345678901234567890, "owner": {"name": "Ada", "tags": ["a", "b"]}}
    put_records(found, tmp_path, [record("N1", payload=payload), record("N2", row=1, payload={"tailnum": "N2"})])
    return found


def _page(client: Client, run: Run, query: str = "") -> str:
    return " ".join(unescape(client.get(f"/runs/{run.pk}/records/{query}").content.decode()).split())


def _choose(client: Client, run: Run, *names: str, back: str = "") -> str:
    answer = client.post(f"/syncs/{run.sync_id}/columns/", {"column": names, "back": back})
    return str(answer.headers["Location"])


def test_chosen_fields_stand_beside_each_record(client: Client, run: Run) -> None:
    client.force_login(person("alice", run.sync.workspace))

    back = _choose(client, run, "year", "owner", back=f"/runs/{run.pk}/records/?q=N")

    text = _page(client, run)
    cells = re.findall(r'<td data-label="(year|owner)" class="cell">([^<]*)</td>', text)
    assert back == f"/runs/{run.pk}/records/?q=N"
    assert cells == [
        ("year", "12345678901234567890"),
        ("owner", '{ "name": "Ada", "tags": [ "a", "b" ] }'),
        ("year", ""),
        ("owner", ""),
    ]


def test_a_choice_is_of_one_person_and_one_sync(client: Client, run: Run) -> None:
    client.force_login(person("alice", run.sync.workspace))
    _choose(client, run, "year")
    _choose(client, run, "owner")
    client.force_login(person("bob", run.sync.workspace))

    assert 'class="cell"' not in _page(client, run)
    assert [(c.user.username, c.sync_id, c.names) for c in ShownColumns.objects.all()] == [
        ("alice", run.sync_id, ["owner"])
    ]


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_a_choice_leads_back_to_this_product_alone(client: Client, run: Run, back: str) -> None:
    client.force_login(person("alice", run.sync.workspace))

    assert _choose(client, run, "year", back=back) == f"/syncs/{run.sync_id}/"


def test_a_payload_is_a_tree_and_its_json_can_be_copied(client: Client, run: Run) -> None:
    client.force_login(person("alice", run.sync.workspace))

    panel = _page(client, run, "?record=records_updated.0:0").split("<aside")[1]

    assert '<summary class="muted">2 fields</summary>' in panel
    assert '<dt>1</dt> <dd> <code>"b"</code> </dd>' in panel
    assert '"year": 12345678901234567890' in panel.split('id="payload-json"')[1].split("</pre>")[0]


def test_a_request_is_a_curl_command_without_secrets_and_shows_its_headers(
    client: Client, run: Run, tmp_path: Path
) -> None:
    sent = '{"Authorization":"***","X-Kind":"it\'s","Content-Length":"12"}'
    put_calls(
        run,
        tmp_path,
        [{"request_headers": sent, "request_body": '{"a":"b\'c"}', "response_headers": '{"etag":"1"}'}],
    )
    client.force_login(person("alice", run.sync.workspace))

    text = unescape(client.get(f"/runs/{run.pk}/records/?record=records_updated.0:0").content.decode())
    panel = text.split("<aside")[1]

    assert panel.split('id="curl-1"')[1].split(">", 1)[1].split("</pre>")[0] == (
        "curl -X POST http://assets.example/aircraft \\\n"
        "  -H 'Authorization: ***' \\\n"
        "  -H 'X-Kind: it'\"'\"'s' \\\n"
        '  --data-raw \'{"a":"b\'"\'"\'c"}\''
    )
    assert "Authorization: ***\n" in panel and "etag: 1" in panel


def test_a_history_has_a_page_of_its_own(client: Client, run: Run, tmp_path: Path) -> None:
    later = a_run(run.sync, **closing(1, rejected=1))
    put_records(later, tmp_path, [record("N1", "rejected", "no year", "reject")])
    client.force_login(person("alice", run.sync.workspace))

    text = client.get(f"/syncs/{run.sync_id}/history/?q=N1").content.decode()

    links = re.findall(r'href="(/runs/\d+/records/[^"]*)">run \d+<', text)
    assert links == [f"/runs/{r.pk}/records/?record=records_updated.0%3A0" for r in (later, run)]
    assert "no year" in text
