"""Every filter of the window and of the API selects what DuckDB itself counts over the run's files."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import duckdb
import pytest
from django.test import Client

from ondatra_web import tokens
from ondatra_web.models import Run
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
}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Two files of records of every kind, and one of invalid rows."""
    found = a_run(a_sync(workspace()), "completed_with_rejects", warned=2, **closing(18, invalid=1, rejected=3))
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
    put_records(found, tmp_path, [{**invalid, "attempt": None}], batch_type="records_invalid")
    return found


def _asked(query: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in query.split("&"))


@pytest.mark.parametrize("query", FILTERS)
def test_a_filter_selects_what_duckdb_counts(client: Client, run: Run, tmp_path: Path, query: str) -> None:
    files = f"{tmp_path}/sync_tracking_datasets/**/*.parquet"
    expected = duckdb.sql(f"SELECT count(*) FROM read_parquet('{files}') WHERE {FILTERS[query]}").fetchall()[0][0]
    assert expected or FILTERS[query] == "false"
    user = person("alice", run.sync.workspace)
    client.force_login(user)
    _, token = tokens.make(run.sync.workspace.organization, user, "t", ["read", "records"])
    head = {"Authorization": f"Bearer {token}"}
    address = "?" + urlencode(_asked(query))

    window = unescape(client.get(f"/runs/{run.pk}/records/{address}").content.decode())
    api = client.get(f"/api/v1/sync_runs/{run.pk}/records{address}", headers=head).json()
    count = client.get(f"/api/v1/sync_runs/{run.pk}/records_count{address}", headers=head).json()

    shown = re.search(r"of (\d+)</span>", window)
    told = (int(shown[1]) if shown else 0, len(api["data"]), count["data"][0]["record_count"])
    assert told == (expected, expected, expected)


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
