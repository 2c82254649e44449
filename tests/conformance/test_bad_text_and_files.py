"""Identifiers and messages of any text, and files in a run's folder that are not what they should be: nothing is lost, the rest is shown."""
import html
import json

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pushing import PUSH, SYNC, push_lib, run_id, sent, statuses, table

NASTY = ["it's", 'say "hi"', "a\nb\r\nc", "😀 e\u0301 \u202e", "<script>alert(1)</script>", "'; DROP TABLE x; --", "=1+1", "NULL", "a\x00b", "%_\\", " ", "x" * 1_000_000]


def nasty(case):
    """Each text as a key, refused with itself as the message."""
    case.parquet("data/contacts.parquet", [{"id": t, "email": f"{n}@x"} for n, t in enumerate([*NASTY, "plain"])])
    push_lib(case, PUSH, push={"batch_size": 5})
    case.model("sync/contacts", "-- @kind: merge\n-- @unique_key: id\n-- @sink: crm\nSELECT id, email FROM read_parquet('data/contacts.parquet')\n")
    statuses(case, {t: f"reject: {t}" for t in NASTY})
    return case.run()


def page(case, address):
    from django.contrib.auth.models import User
    from django.test import Client
    from ondatra_web.models import Membership, Organization

    user, _ = User.objects.get_or_create(username="reader of bad text")
    Membership.objects.get_or_create(user=user, organization=Organization.objects.get(pk=case.metadata(SYNC)["organization_id"]))
    client = Client()
    client.force_login(user)
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def test_any_text_arrives_is_recorded_shown_exported_and_sent_again(case, tmp_path):
    result = nasty(case)
    assert (result.sync(SYNC)["status"], result.counts(SYNC)["rejected"]) == ("completed_with_rejects", len(NASTY))
    assert {r[1] for r in sent(case)} == {*NASTY, "plain"}
    kept = {r["identifier"]: r["status_message"] for r in case.records(SYNC) if r["status"] == "rejected"}
    assert sorted(kept) == sorted(NASTY)
    *short, long = NASTY
    assert {text: (kept[text] or "").strip() for text in short} == {text: text.strip() for text in short}
    whole, _, cut = kept[long].partition("…")
    assert (set(whole), len(kept[long]) <= 65_536, cut) == ({"x"}, True, " (cut: 1,000,000 bytes in all)")

    run = run_id(result)
    for text in NASTY:
        shown = case.command("records", run, "--identifier", text, "--format", "json")
        assert [r["identifier"] for r in json.loads(shown.stdout)] == [text], text[:20]
    window = page(case, f"/runs/{run}/records/?status=rejected")
    assert "<script>alert(1)" not in window and html.escape("<script>alert(1)</script>") in window and len(window) < 200_000
    assert "<script>alert(1)" not in page(case, f"/runs/{run}/") + page(case, f"/syncs/{result.sync(SYNC)['sync_id']}/")
    at = [r["identifier"] for r in pq.read_table(case.run_folder(SYNC) / "records_updated.0.parquet", partitioning=None).to_pylist()]
    assert len(page(case, f"/runs/{run}/records/?record=records_updated.0:{at.index('x' * 1_000_000)}")) < 8_000_000
    out = tmp_path / "all.csv"
    assert case.command("records", run, "--format", "csv", "--output", out).exit == 0
    read = duckdb.execute("SELECT identifier FROM read_csv($f, all_varchar = true, max_line_size = 9000000, nullstr = ['<none>'], quote = '\"', escape = '\"', "
                          "delim = ',', header = true, strict_mode = false, new_line = '\\r\\n')", {"f": str(out)}).fetchall()
    assert len(read) == len(NASTY) + 1

    statuses(case)
    case.dest.clear()
    again = case.command("retry", run, "--identifier", "'; DROP TABLE x; --", "--identifier", "a\nb\r\nc", "--yes")
    assert (again.exit, {r[1] for r in sent(case)}) == (0, {"'; DROP TABLE x; --", "a\nb\r\nc"})


def test_files_that_are_not_ours_or_not_whole_are_named_and_the_rest_is_shown(case, tmp_path):
    case.csv("data/contacts.csv", [{"id": i, "email": f"p{i}@x"} for i in range(1, 6)])
    push_lib(case, PUSH)
    case.model("sync/contacts", "-- @kind: merge\n-- @unique_key: id\n-- @on_missing: delete\n-- @sink: crm\nSELECT id, email FROM read_csv('data/contacts.csv')\n")
    case.run()
    case.csv("data/contacts.csv", [{"id": 1, "email": "new@x"}, {"id": 2, "email": "p2@x"}])
    result = case.run()
    run, folder = run_id(result), case.run_folder(SYNC)
    pq.write_table(pa.table({"a": [1]}), folder / "someone.parquet")
    (folder / "records_updated.1.parquet").write_bytes(b"PAR1 not really")
    shown = case.command("records", run, "--format", "json")
    assert (shown.exit, table(json.loads(shown.stdout), "identifier", "operation")) == (0, [("1", "upsert"), ("3", "delete"), ("4", "delete"), ("5", "delete")])

    whole = (folder / "records_deleted.0.parquet").read_bytes()
    for broken in (whole[:len(whole) // 2], b"", whole[:30] + bytes(200) + whole[230:]):
        (folder / "records_deleted.0.parquet").write_bytes(broken)
        window = page(case, f"/runs/{run}/records/")
        assert "records_deleted.0" in window and "new@x" in page(case, f"/runs/{run}/records/?record=records_updated.0:0")
        out = tmp_path / "rest.jsonl"
        said = case.command("records", run, "--format", "jsonl", "--output", out)
        assert (said.exit, [json.loads(line)["identifier"] for line in out.read_text().splitlines()]) == (1, ["1"])
        assert "records_deleted.0" in said.stderr
    pq.write_table(pa.table({"identifier": [[1]], "status": [{"a": 1}], "batch_ended_at": ["no time"]}), folder / "records_deleted.0.parquet")
    assert "records_deleted.0" in page(case, f"/runs/{run}/records/")
    (folder / "records_deleted.0.parquet").unlink()
    assert "records_deleted.0" in page(case, f"/runs/{run}/records/")
    (folder / "records_deleted.0.parquet").write_bytes(whole)
    for calls in (case.store / "api_calls").rglob(f"{run}/*.parquet"):
        calls.write_bytes(b"broken")
    assert "cannot be read" in page(case, f"/runs/{run}/records/?record=records_updated.0:0")
