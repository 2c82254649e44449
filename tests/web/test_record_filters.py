"""Every filter of the window, the API and the commands selects what DuckDB itself counts over the run's files."""

from __future__ import annotations

import io
import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import duckdb
import pytest
from django.core.management import call_command
from django.test import Client

from ondatra_web import tokens
from ondatra_web.models import MessageGroup, Run
from tests.web.filled import a_run, a_sync, closing, person, put_records, record, workspace

pytestmark = pytest.mark.django_db

#: What the address asks for -> the same in SQL.
FILTERS = {
    "status=success": "status = 'succeeded'",
    "status=rejected": "status = 'rejected'",
    "status=invalid": "status IN ('NULL', 'DUPLICATE')",
    "operation=delete": "operation = 'delete'",
    "change_type=update_postimage": "change_type = 'update_postimage'",
    "outcome=warn": "outcome = 'warn'",
    "outcome=ok": "outcome = 'ok'",
    "outcome=error": "outcome = 'error'",
    "outcome=reject": "outcome = 'reject'",
    "attempt=3": "attempt = 3",
    "batch=2": "batch_number = 2",
    "batch=2&outcome=reject": "batch_number = 2 AND outcome = 'reject'",
    "q=n1": "identifier ILIKE 'n1%'",
    "q=n1&within=identifier&how=anywhere": "identifier ILIKE '%n1%'",
    "q=1n&within=identifier&how=anywhere": "identifier ILIKE '%1n%'",
    "q=N201aa&how=whole": "lower(identifier) = 'n201aa'",
    "q=n201&how=whole": "false",
    "q=7": "identifier LIKE '7%'",
    "q=kÜR": "identifier ILIKE 'kür%'",
    "q=100%": "identifier LIKE '100\\%%' ESCAPE '\\'",
    "q=FIELD&within=message": "status_message ILIKE '%field%'",
    "q=field&within=message&how=beginning": "status_message ILIKE 'field%'",
    'q=Field "YEAR" is required&within=message&how=whole': "status_message ILIKE 'field \"year\" is required'",
    "q=zürich&within=payload": "record_payload ILIKE '%zürich%'",
    'q=say "HI"&within=payload': "json_extract_string(record_payload, '$.said') ILIKE 'say \"hi\"'",
    "q=zürich&within=payload&how=whole": "json_extract_string(record_payload, '$.city') ILIKE 'zürich'",
    "q=züri&within=payload&how=beginning": "json_extract_string(record_payload, '$.city') ILIKE 'züri%'",
    "q=4&within=payload&how=whole": "json_extract_string(record_payload, '$.seats') = '4'",
    "q=city&within=payload&how=whole": "false",
    "q=%&within=payload": "record_payload LIKE '%\\%%' ESCAPE '\\'",
    "q=_&within=message": "false",
    "q=\\&within=payload": "contains(record_payload, '\\')",
    "status=rejected&outcome=error&attempt=3": "status = 'rejected' AND outcome = 'error' AND attempt = 3",
    "status=success&outcome=reject": "false",
    "status=invalid&batch=1": "status IN ('NULL', 'DUPLICATE') AND batch_number = 1",
    "operation=upsert&change_type=insert": "operation = 'upsert' AND change_type = 'insert'",
    "operation=delete&status=success&outcome=warn": "operation = 'delete' AND outcome = 'warn'",
    "q=field&within=message&batch=2&attempt=1": "status_message ILIKE '%field%' AND batch_number = 2 AND attempt = 1",
    "q=n&status=rejected": "identifier ILIKE 'n%' AND status = 'rejected'",
    "q=zürich&within=payload&status=success&batch=1": "record_payload ILIKE '%zürich%' AND status = 'succeeded'",
    "change_type=insert&q=year&within=message&how=anywhere": "status_message ILIKE '%year%' AND change_type = 'insert'",
}
#: The same of what only programs ask for.
OF_PROGRAMS = {
    "message=FIELD": "status_message ILIKE '%field%'",
    "message=the %25 is": "status_message ILIKE '%the % is%'",
    "message=year&status=rejected&batch=2": "status_message ILIKE '%year%' AND batch_number = 2",
    "primary_identifier=N201AA": "identifier = 'N201AA'",
    "primary_identifier=n201": "false",
    "status=null": "status = 'NULL'",
    "status=duplicate": "status = 'DUPLICATE'",
    "outcome=invalid": "outcome = 'invalid'",
}
OPTIONS = {"q": "search", "message": "message-like", "primary_identifier": "identifier"}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Two files of records of every kind, and one of invalid rows."""
    found = a_run(a_sync(workspace()), "completed_with_rejects", warned=2, **closing(18, invalid=2, rejected=3))
    put_records(
        found,
        tmp_path,
        [record(f"N{i}AA", row=i, payload={"seats": i, "city": "Zürich" if i % 2 else "ZÜRICH West"}) for i in range(9)]
        + [{**record("N201AA", "rejected", 'field "year" is required', "reject", row=20), "batch_number": 2}],
    )
    rows = [
        record("n201aa", "rejected", 'the Field "year" is required', "reject", row=30),
        record("711MQ", "rejected", "upstream timeout", "error", row=31, change_type="update_postimage"),
        record("Kürbis", "succeeded", "no owner", "warn", row=32, payload={"said": 'say "Hi"'}),
        record("100%", "succeeded", "no owner", "warn", row=33, operation="delete", change_type="delete"),
        record("x1N", row=34),
    ]
    put_records(found, tmp_path, [{**row, "attempt": 3, "batch_number": 2} for row in rows], number=1)
    invalid = record(None, "NULL", "the key tailnum is NULL", "invalid", change_type=None)
    twice = record("N5AA", "DUPLICATE", "the key occurs twice", "invalid", change_type=None, row=40)
    put_records(found, tmp_path, [{**r, "attempt": None} for r in (invalid, twice)], batch_type="records_invalid")
    return found


def _asked(query: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in query.replace("%25", "%").split("&"))


def _counted(tmp_path: Path, where: str) -> int:
    """DuckDB's own count over the parquet files."""
    files = f"{tmp_path}/sync_tracking_datasets/**/*.parquet"
    return int(duckdb.sql(f"SELECT count(*) FROM read_parquet('{files}') WHERE {where}").fetchall()[0][0])


def _of_api(client: Client, run: Run, token: str, query: str) -> tuple[int, int]:
    """Rows and count."""
    head = {"Authorization": f"Bearer {token}"}
    address = "?" + urlencode(_asked(query))
    rows = client.get(f"/api/v1/sync_runs/{run.pk}/records{address}", headers=head).json()["data"]
    count = client.get(f"/api/v1/sync_runs/{run.pk}/records_count{address}", headers=head).json()["data"]
    return len(rows), count[0]["record_count"]


def _of_command(run: Run, query: str) -> int:
    named = ((OPTIONS.get(name, name).replace("_", "-"), value) for name, value in _asked(query).items())
    said = io.StringIO()
    with pytest.raises(SystemExit, match="0"):
        call_command("records", str(run.pk), *(f"--{n}={v}" for n, v in named), "--format=json", stdout=said)
    return len(json.loads(said.getvalue()))


def _of_page(client: Client, run: Run, query: str) -> int:
    window = unescape(client.get(f"/runs/{run.pk}/records/?{urlencode(_asked(query))}").content.decode())
    shown = re.search(r"of (\d+)</span>", window)
    return int(shown[1]) if shown else 0


@pytest.fixture
def token(client: Client, run: Run) -> str:
    """Of somebody who is signed in as well."""
    user = person("alice", run.sync.workspace)
    client.force_login(user)
    return tokens.make(run.sync.workspace.organization, user, "t", ["read", "records"])[1]


@pytest.mark.slow
def test_filters_select_what_duckdb_counts(client: Client, run: Run, token: str, tmp_path: Path) -> None:
    expected = {query: _counted(tmp_path, where) for query, where in FILTERS.items()}
    assert [q for q, n in expected.items() if not n and FILTERS[q] != "false" and " AND " not in FILTERS[q]] == []

    told = {q: (_of_page(client, run, q), *_of_api(client, run, token, q), _of_command(run, q)) for q in FILTERS}

    assert told == {query: (n, n, n, n) for query, n in expected.items()}


def test_filters_of_programs_select_what_duckdb_counts(client: Client, run: Run, token: str, tmp_path: Path) -> None:
    expected = {query: _counted(tmp_path, where) for query, where in OF_PROGRAMS.items()}
    assert [query for query, n in expected.items() if not n and OF_PROGRAMS[query] != "false"] == []

    told = {query: (*_of_api(client, run, token, query), _of_command(run, query)) for query in OF_PROGRAMS}

    assert told == {query: (n, n, n) for query, n in expected.items()}


def test_the_rows_of_a_reason_are_those_that_duckdb_counts(
    client: Client, run: Run, token: str, tmp_path: Path
) -> None:
    group = MessageGroup.objects.get(run=run, pattern="upstream timeout")
    expected = _counted(tmp_path, "status_message = 'upstream timeout'")

    window = client.get(f"/runs/{run.pk}/records/?reason={group.pk}&attempt=3").content.decode()

    query = f"group={group.pk}&attempt=3"
    assert (*_of_api(client, run, token, query), _of_command(run, query)) == (expected, expected, expected) == (1, 1, 1)
    assert "1–1 of 1" in window


def test_the_shown_query_gives_the_same_rows_in_duckdb(client: Client, run: Run) -> None:
    client.force_login(person("alice", run.sync.workspace))
    address = "?" + urlencode({"q": "züri", "within": "payload", "how": "beginning", "batch": "1"})

    window = unescape(client.get(f"/runs/{run.pk}/records/{address}").content.decode())
    sql = window.split('aria-label="DuckDB query">')[1].split("</pre>")[0]

    assert len(duckdb.sql(sql).fetchall()) == 9


def test_warned_records_are_a_choice_with_their_count(client: Client, run: Run) -> None:
    client.force_login(person("alice", run.sync.workspace))

    text = " ".join(client.get(f"/runs/{run.pk}/records/").content.decode().split())

    assert '<a class="chip" href="?outcome=warn"> Warned <span class="muted">2</span> </a>' in text


def test_a_search_of_payloads_takes_the_right_to_read_them(client: Client, run: Run) -> None:
    client.force_login(person("vera", run.sync.workspace, "metadata_viewer"))

    assert client.get(f"/runs/{run.pk}/records/?q=zürich&within=payload").status_code == 403
