"""View Records: filters, search, pages, one record, downloads, over real files."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
from django.test import Client

from ondatra_web.models import MessageGroup, Run
from runtime.custody.masks import Masker
from runtime.model import Mask
from tests.web.filled import a_run, a_sync, closing, person, put_calls, put_records, record, workspace

pytestmark = pytest.mark.django_db
Look = Callable[[str], str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Thirty that arrived, two that were refused for good, one that is due again, one invalid."""
    found = a_run(a_sync(workspace()), "completed_with_rejects", **closing(34, invalid=1, rejected=2, retrying=1))
    rows = [record(f"N{i:03}AA", row=i) for i in range(30)]
    rows += [
        record("N201AA", "rejected", 'field "year" is required', "reject", row=31),
        record("N202AA", "rejected", 'field "year" is required', "reject", row=32),
        record(
            "N711MQ",
            "rejected",
            "upstream timeout after 3011 ms",
            "error",
            row=33,
            change_type="update_postimage",
            payload={"tailnum": "N711MQ", "seats": 2},
            previous={"tailnum": "N711MQ", "seats": 4},
        ),
    ]
    put_records(found, tmp_path, rows)
    put_records(
        found,
        tmp_path,
        [record(None, "NULL", "the key tailnum is NULL", "invalid", change_type=None)],
        batch_type="records_invalid",
    )
    return found


@pytest.fixture
def look(client: Client, run: Run) -> Look:
    """The window with this query, as the owner sees it."""
    client.force_login(person("alice", run.sync.workspace))

    def get(query: str) -> str:
        return " ".join(unescape(client.get(f"/runs/{run.pk}/records/{query}").content.decode()).split())

    return get


def _panel(client: Client, run: Run) -> str:
    """What the window says of the run's first record."""
    text = client.get(f"/runs/{run.pk}/records/?record=records_updated.0:0").content.decode()
    return " ".join(unescape(text).split("<aside")[1].split())


def _identifiers(text: str) -> list[str]:
    return [
        part.split("<")[0]
        for part in text.split('class="list"')[-1].split('<td class="lead">')[1:]
        for part in [part.split("<code>")[1]]
    ]


def test_statuses_are_chips_with_counts_under_their_shown_names(look: Look) -> None:
    text = look("")

    chips = [
        f'{name} <span class="muted">{n}</span>'
        for name, n in (("All", 34), ("Success", 30), ("Rejected", 3), ("Invalid", 1))
    ]
    assert all(chip in text for chip in chips)


def test_a_status_selects_its_records_and_marks_those_that_are_due_again(look: Look) -> None:
    text = look("?status=rejected").split('class="list"')[1]

    assert _identifiers(text) == ["N201AA", "N202AA", "N711MQ"]
    assert text.count('<span class="tag warn">Due again</span>') == 1
    assert text.count('<span class="tag bad">Rejected</span>') == 2


def test_a_reason_selects_the_records_of_its_group(look: Look, run: Run) -> None:
    group = MessageGroup.objects.get(run=run, pattern__contains="timeout")

    assert _identifiers(look(f"?reason={group.pk}")) == ["N711MQ"]


def test_a_reason_selects_what_it_counts_and_nothing_alike(look: Look, run: Run, tmp_path: Path) -> None:
    said = ["no row 1 at a_b", "no row 1 at aXb", "value x% of 3 refused", "value x and more of 3 refused"]
    rows = [record(f"k{n}", "rejected", text, "reject", row=n) for n, text in enumerate(said)]
    rows.append(record("k9", "succeeded", "no row 9 at a_b", "warn", row=9))
    put_records(run, tmp_path, rows, number=1)
    groups = MessageGroup.objects.filter(run=run, sample_identifier__startswith="k").order_by("sample_identifier")

    assert [(g.rows, _identifiers(look(f"?reason={g.pk}"))) for g in groups] == [
        (1, ["k0"]),
        (1, ["k1"]),
        (1, ["k2"]),
        (1, ["k3"]),
        (1, ["k9"]),
    ]


def test_a_reason_of_another_run_selects_nothing_else(look: Look) -> None:
    assert "1–25 of 34" in look("?reason=999999")


def test_an_operation_is_selected_and_kept_in_the_links(look: Look) -> None:
    text = look("?status=success&operation=upsert")

    assert "1–25 of 30" in text
    assert "?status=success&operation=upsert&page=2" in text


def test_search_finds_by_the_beginning_of_an_identifier(look: Look) -> None:
    assert _identifiers(look("?q=N20")) == ["N201AA", "N202AA"]


def test_a_search_takes_wildcards_and_quotes_as_they_are(look: Look) -> None:
    assert "No record matches" in look("?q=N%25' OR 1=1 --")


def test_a_masked_key_is_found_by_its_plain_value(client: Client, tmp_path: Path) -> None:
    masked = a_run(a_sync(workspace(), "sync.contacts"), **closing(1))
    hashed = Masker([Mask("identifier", "hash")], masked.sync.workspace.mask_key).value("identifier", "ada@example.com")
    put_records(masked, tmp_path, [record(hashed)])
    client.force_login(person("alice", masked.sync.workspace))

    assert hashed[:20] in client.get(f"/runs/{masked.pk}/records/?q=ada@example.com").content.decode()


def test_pages_go_by_number_to_the_last_one(look: Look) -> None:
    assert "1–25 of 34" in look("")
    assert "26–34 of 34" in look("?page=2")
    assert "26–34 of 34" in look("?page=99")


def test_a_record_shows_payload_change_request_and_history(look: Look, run: Run, tmp_path: Path) -> None:
    put_calls(
        run,
        tmp_path,
        [
            {
                "status": 503,
                "request_body": '{"tailnum":"N711MQ"}',
                "response_text": "busy",
                "rows": ["33:update_postimage"],
            },
            {"request_body": '{"tailnum":"N201AA"}', "rows": ["31:insert"]},
        ],
    )
    earlier = a_run(run.sync, ago=timedelta(days=1), **closing(1))
    put_records(earlier, tmp_path, [record("N711MQ")])

    panel = look("?record=records_updated.0:32").split("<aside")[1]

    assert "upstream timeout after 3011 ms" in panel
    assert "<del><code>4</code></del> → <ins><code>2</code></ins>" in panel
    assert '"tailnum": "N711MQ"' in panel and "busy" in panel and "503" in panel
    assert "N201AA" not in panel
    assert panel.index(f"run {run.pk}<") != panel.index(f"run {earlier.pk}<")


def test_every_digit_of_a_number_is_shown(client: Client, tmp_path: Path) -> None:
    huge, wide = "12345678901234567890123456789012345678", "12345678901234567890123456789.123456789"
    run = a_run(a_sync(workspace(), "sync.amounts"), **closing(1))
    amounts = {**record("7", change_type="update_postimage")}
    amounts["record_payload"] = f'{{"id":7,"huge":{huge},"wide":{wide}}}'
    amounts["previous_payload"] = f'{{"id":7,"huge":{huge[:-1]}7,"wide":{wide}}}'
    put_records(run, tmp_path, [amounts])
    put_calls(run, tmp_path, [{"request_body": f'{{"huge":{huge}}}', "rows": ["0:update_postimage"]}])
    client.force_login(person("alice", run.sync.workspace))

    panel = _panel(client, run)

    assert f"<del><code>{huge[:-1]}7</code></del> → <ins><code>{huge}</code></ins>" in panel
    assert f"<code>{wide}</code>" in panel
    assert f'"huge": {huge}' in panel


def test_a_message_of_megabytes_is_cut_with_its_length_said(client: Client, tmp_path: Path) -> None:
    run = a_run(a_sync(workspace(), "sync.loud"), "completed_with_rejects", **closing(1, rejected=1))
    put_records(run, tmp_path, [record("7", "rejected", "x" * 3_000_000, "reject")])
    client.force_login(person("alice", run.sync.workspace))

    panel = _panel(client, run)

    assert "(cut: the whole has 3,000,000 characters)" in panel
    assert 64 * 1024 < len(panel) < 80_000


@pytest.mark.parametrize("row", ["9999", "²", "٣", "9" * 100, "-1", ""])
def test_an_address_without_a_record_says_so(look: Look, row: str) -> None:
    assert "There is no such record in this run" in look(f"?record=records_updated.0:{row}")


def test_payloads_are_escaped(client: Client, tmp_path: Path) -> None:
    run = a_run(a_sync(workspace(), "sync.evil"), **closing(1))
    put_records(run, tmp_path, [record("<i>", payload={"<b>": "<script>alert(1)</script>"})])
    client.force_login(person("alice", run.sync.workspace))

    text = client.get(f"/runs/{run.pk}/records/?record=records_updated.0:0").content.decode()

    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_expired_records_are_gone_and_say_why(client: Client, tmp_path: Path) -> None:
    run = a_run(a_sync(workspace(), "sync.old"), ago=timedelta(days=15), **closing(1))
    put_records(run, tmp_path, [record("N1")])
    client.force_login(person("alice", run.sync.workspace))

    answer = client.get(f"/runs/{run.pk}/records/")

    assert answer.status_code == 410
    assert "These records have expired" in answer.content.decode()
    assert client.get(f"/runs/{run.pk}/records/download/?format=csv").status_code == 410


def test_a_file_that_is_gone_is_named_and_the_rest_is_shown(look: Look, tmp_path: Path) -> None:
    next(tmp_path.rglob("records_invalid.0.parquet")).unlink()

    text = look("?page=2")

    assert "records_invalid.0" in text
    assert "N711MQ" in text


def test_only_the_window_is_sent_to_a_page_that_has_the_rest(client: Client, look: Look, run: Run) -> None:
    whole, part = look(""), client.get(f"/runs/{run.pk}/records/", headers={"HX-Request": "true"}).content.decode()

    assert "The sums close" in whole
    assert "The sums close" not in part


def _download(client: Client, run: Run, query: str) -> bytes:
    answer = client.get(f"/runs/{run.pk}/records/download/{query}")
    assert answer.status_code == 200
    return b"".join(answer.streaming_content)  # type: ignore[arg-type]


def test_a_csv_has_what_the_filter_selects_for_spreadsheets(client: Client, look: Look, run: Run) -> None:
    data = _download(client, run, "?format=csv&status=rejected")

    lines = data.decode("utf-8-sig").split("\r\n")
    assert data.startswith(b"\xef\xbb\xbf")
    assert lines[0].startswith("identifier,record_payload,operation,status,status_message,")
    assert [line.split(",")[0].strip('"') for line in lines[1:-1]] == ["N201AA", "N202AA", "N711MQ"]


def test_json_and_parquet_hold_the_same_records(client: Client, look: Look, run: Run) -> None:
    as_json = orjson.loads(_download(client, run, "?format=json&q=N20"))
    as_parquet = pq.read_table(io.BytesIO(_download(client, run, "?format=parquet&q=N20"))).to_pylist()

    assert [r["identifier"] for r in as_json] == [r["identifier"] for r in as_parquet] == ["N201AA", "N202AA"]


def test_a_download_is_named_after_sync_run_and_status(client: Client, look: Look, run: Run) -> None:
    answer = client.get(f"/runs/{run.pk}/records/download/?format=csv&status=rejected")

    assert answer["Content-Disposition"] == f'attachment; filename="sync.aircraft.run{run.pk}.rejected.csv"'


def test_a_download_of_the_first_rows_is_named_so(client: Client, look: Look, run: Run) -> None:
    answer = client.get(f"/runs/{run.pk}/records/download/?format=csv&status=success&sample=1")

    name = f"sync.aircraft.run{run.pk}.success.first-1000.csv"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'


def test_an_unknown_format_is_refused(client: Client, look: Look, run: Run) -> None:
    assert client.get(f"/runs/{run.pk}/records/download/?format=xls").status_code == 400


def test_the_duckdb_query_of_a_filter_is_shown(look: Look) -> None:
    assert "status IN ('rejected')" in look("?status=rejected")
