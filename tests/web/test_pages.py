"""Home, syncs, one sync, one run, models: what they say, and what they cost."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ondatra_web.models import AuditLog, Chunk, MessageGroup, ModelState, Run, RunLog, Sync
from tests.web.filled import a_run, a_sync, closing, person, workspace

pytestmark = pytest.mark.django_db
Look = Callable[[str], str]


@pytest.fixture
def sync() -> Sync:
    return a_sync(workspace())


@pytest.fixture
def look(client: Client, sync: Sync) -> Look:
    """The text at an address, as the owner sees it; without space that separates tags."""
    client.force_login(person("alice", sync.workspace))

    def get(address: str) -> str:
        answer = client.get(address)
        assert answer.status_code == 200, answer
        return re.sub(r"(?<=>) | (?=<)", "", " ".join(unescape(answer.content.decode()).split()))

    return get


def _queries(look: Look, address: str) -> int:
    with CaptureQueriesContext(connection) as seen:
        look(address)
    return len(seen)


# home


def test_home_of_an_empty_install_says_what_to_do(client: Client) -> None:
    client.force_login(person("alice", workspace()))

    assert "python manage.py run" in client.get("/").content.decode()


def test_home_names_a_failing_sync_with_its_reason_and_since_when(look: Look, sync: Sync) -> None:
    a_run(sync, "completed", ago=timedelta(days=3), **closing())
    first = a_run(sync, "failed", ago=timedelta(days=2), error="401: token expired", **closing(not_tried=5))
    last = a_run(sync, "failed", ago=timedelta(days=1), error="401: token expired", **closing(not_tried=5))

    text = look("/")

    assert re.search(rf"Failing since<time [^>]*>{first.created_at.day} {first.created_at:%b}</time>", text)
    assert "401: token expired" in text
    assert f'href="/runs/{last.pk}/">Open run {last.pk}' in text


def test_a_failure_that_a_later_run_mended_needs_nobody(look: Look, sync: Sync) -> None:
    a_run(sync, "failed", error="401: token expired", **closing(not_tried=5))
    a_run(sync, "completed", ago=timedelta(minutes=1), **closing())

    assert "Nothing needs you" in look("/")


def test_home_shows_a_held_run_for_review(look: Look, sync: Sync) -> None:
    run = a_run(sync, "held", error="would delete 8,112 of 9,004 records")

    text = look("/")

    assert "would delete 8,112 of 9,004 records" in text
    assert f"Review run {run.pk}" in text


def test_rejects_need_a_person_only_for_a_reason_that_is_new(look: Look, sync: Sync) -> None:
    old = a_run(sync, "completed_with_rejects", ago=timedelta(days=1), **closing(rejected=3))
    run = a_run(sync, "completed_with_rejects", **closing(rejected=3))
    group = MessageGroup.objects.create(
        run=run, status="rejected", pattern="400: year is missing", sample_message="", rows=3, first_run=old
    )
    assert "Nothing needs you" in look("/")

    group.first_run = run
    group.save(update_fields=["first_run"])

    assert "3 rows: 400: year is missing" in look("/")


# lists


def test_a_list_asks_the_same_number_of_questions_for_any_number_of_syncs_and_runs(look: Look, sync: Sync) -> None:
    a_run(sync, "completed_with_rejects", **closing(rejected=1))
    before = _queries(look, "/")

    for n in range(30):
        other = a_sync(sync.workspace, f"sync.n{n}")
        Run.objects.bulk_create(
            [Run(sync=other, status="completed" if i % 2 else "failed", **closing()) for i in range(30)]
        )

    assert _queries(look, "/") == before


def test_the_bar_of_recent_runs_shows_the_last_twenty(look: Look, sync: Sync) -> None:
    for _ in range(25):
        a_run(sync, **closing())

    assert "Last 20 runs: 20 went through, 0 with rejects, 0 failed" in look("/syncs/")


def test_syncs_are_filtered_by_name_and_state_in_the_address(look: Look, sync: Sync) -> None:
    a_run(a_sync(sync.workspace, "sync.broken"), "failed", **closing(not_tried=1))
    a_run(a_sync(sync.workspace, "sync.fine"), **closing())

    text = look("/syncs/?q=sync&state=failed")

    assert "sync.broken" in text
    assert "sync.fine" not in text
    assert '<option value="failed" selected>' in text


def test_a_filter_without_a_match_offers_the_way_back(look: Look) -> None:
    assert "No sync matches" in look("/syncs/?q=nothing-like-it")


@pytest.mark.parametrize("address", ["/syncs/?state=wrong", "/syncs/?page=999", "/syncs/?page=x", "/?page=-1"])
def test_values_that_are_no_choice_count_as_not_chosen(look: Look, address: str) -> None:
    assert "sync.aircraft" in look(address)


def test_what_is_due_is_read_from_the_waiting_chunks(look: Look, sync: Sync) -> None:
    a_run(sync, **closing())
    Chunk.objects.create(sync=sync, url="x", rows=9, records=9, states=b"", due_rows=7)

    assert 'data-label="Due">7<' in look("/syncs/")


# a sync


def test_a_syncs_history_shows_trigger_counts_and_view_records(look: Look, sync: Sync) -> None:
    run = a_run(
        sync,
        "completed_with_rejects",
        trigger="schedule",
        **closing(3_322, unchanged=2_958, invalid=12, rejected=11, retrying=6),
    )

    text = look(f"/syncs/{sync.pk}/")

    assert f'href="/runs/{run.pk}/records/">View Records' in text
    assert all(f">{n}<" in text for n in ("3,322", "12", "352", "335", "11", "6", "schedule"))


def test_records_past_the_retention_are_called_expired(look: Look, sync: Sync) -> None:
    a_run(sync, ago=timedelta(days=15), **closing())

    text = look(f"/syncs/{sync.pk}/")

    assert "expired" in text
    assert "View Records" not in text


def test_a_history_is_paged_and_asks_no_more_for_longer_ones(look: Look, sync: Sync) -> None:
    a_run(sync, **closing())
    before = _queries(look, f"/syncs/{sync.pk}/")
    Run.objects.bulk_create(
        [Run(sync=sync, status="completed", started_at=timezone.now(), **closing()) for _ in range(60)]
    )

    assert _queries(look, f"/syncs/{sync.pk}/") == before
    assert "1–25 of 61" in look(f"/syncs/{sync.pk}/")
    assert "51–61 of 61" in look(f"/syncs/{sync.pk}/?page=3")


@pytest.mark.parametrize(
    ("told", "full", "dry"), [({}, False, False), ({"full": "on"}, True, False), ({"dry_run": "on"}, False, True)]
)
def test_a_button_starts_a_run_and_leads_to_it(
    client: Client, look: Look, sync: Sync, told: dict[str, str], full: bool, dry: bool
) -> None:
    answer = client.post(f"/syncs/{sync.pk}/start/", told)

    run = Run.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.pk}/")
    assert (run.status, run.full, run.dry_run, run.trigger) == ("queued", full, dry, "page")
    assert run.started_by is not None and run.started_by.get_username() == "alice"
    assert AuditLog.objects.get().action == "start_run"


def test_an_archived_sync_is_shown_but_not_started(client: Client, look: Look, sync: Sync) -> None:
    sync.archived_at = timezone.now()
    sync.save(update_fields=["archived_at"])

    client.post(f"/syncs/{sync.pk}/start/")
    text = look(f"/syncs/{sync.pk}/")

    assert Run.objects.count() == 0
    assert "is archived: its file is gone" in text
    assert "/start/" not in text


# a run


def test_a_run_says_that_its_sums_close(look: Look, sync: Sync) -> None:
    run = a_run(sync, "completed_with_rejects", **closing(3_322, unchanged=2_958, invalid=12, rejected=11, retrying=6))

    text = look(f"/runs/{run.pk}/")

    assert "The sums close" in text
    assert "3,322 source rows = 2,958 unchanged + 12 invalid + 352 changed" in text
    assert "352 = 335 succeeded + 11 rejected + 6 due again + 0 not tried" in text


def test_a_run_whose_sums_do_not_close_says_so(look: Look, sync: Sync) -> None:
    run = a_run(sync, **{**closing(), "succeeded": 1})

    assert "The sums do not close" in look(f"/runs/{run.pk}/")


def test_a_working_run_asks_again_and_shows_rate_and_time_left(look: Look, sync: Sync) -> None:
    began = (timezone.now() - timedelta(seconds=100)).isoformat()
    run = a_run(
        sync,
        "working",
        step="push",
        step_times={"build": began, "changes": began, "push": began},
        **closing(1_000, not_tried=500),
    )

    text = look(f"/runs/{run.pk}/live/")

    assert 'hx-trigger="every 2s' in text
    assert "Working 50 %" in text
    assert re.search(r"(5\.0|4\.[89]) rows/s, 1 min 4\d s left", text)  # a busy machine looks a moment later
    assert "Cancel run" in text


def test_the_title_of_a_run_says_its_state(look: Look, sync: Sync) -> None:
    run = a_run(sync, "failed", **closing(not_tried=5))

    assert f"<title>Failed · run {run.pk} of sync.aircraft · Ondatra</title>" in look(f"/runs/{run.pk}/")


def test_a_moment_is_utc_and_says_so(look: Look, sync: Sync) -> None:
    run = a_run(sync, **closing())
    Run.objects.filter(pk=run.pk).update(started_at="2013-02-03T04:05:06Z")

    assert (
        '<time datetime="2013-02-03T04:05:06+00:00" data-as="moment" title="2013-02-03 04:05:06 UTC">'
        "3 Feb 2013, 04:05</time>"
    ) in look(f"/runs/{run.pk}/")


def test_a_run_that_has_ended_asks_no_more(look: Look, sync: Sync) -> None:
    run = a_run(sync, **closing())

    text = look(f"/runs/{run.pk}/live/")

    assert "hx-get" not in text
    assert "Cancel run" not in text


def test_reasons_are_grouped_and_new_ones_marked(look: Look, sync: Sync) -> None:
    old = a_run(sync, ago=timedelta(days=2), **closing())
    run = a_run(sync, "completed_with_rejects", **closing(rejected=10))
    MessageGroup.objects.create(
        run=run,
        status="rejected",
        pattern="503: timeout after ‹n› ms",
        sample_message="",
        sample_identifier="N711MQ",
        rows=8,
        first_run=run,
    )
    MessageGroup.objects.create(
        run=run, status="rejected", pattern="400: no year", sample_message="", rows=2, first_run=old
    )

    text = look(f"/runs/{run.pk}/")

    assert "Why 10 rows did not arrive" in text
    assert (
        text.index("503: timeout after ‹n› ms")
        < text.index("new in this run")
        < text.index("400: no year")
        < text.index(f"run {old.pk}</a>")
    )
    assert f"/runs/{run.pk}/records/?q=N711MQ" in text


def test_a_run_shows_its_error_and_its_log_escaped(look: Look, sync: Sync, client: Client) -> None:
    run = a_run(sync, "failed", error="<b>broken</b>", **closing(not_tried=1))
    RunLog.objects.create(run=run, text="<script>said</script>")

    raw = client.get(f"/runs/{run.pk}/").content.decode()

    assert "&lt;b&gt;broken&lt;/b&gt;" in raw
    assert "&lt;script&gt;said&lt;/script&gt;" in raw


def test_cancel_stops_a_queued_run_and_refuses_an_ended_one(client: Client, look: Look, sync: Sync) -> None:
    run = a_run(sync, "queued")

    client.post(f"/runs/{run.pk}/cancel/")
    client.post(f"/runs/{run.pk}/cancel/")

    run.refresh_from_db()
    assert run.status == "cancelled"
    assert f"run {run.pk} is cancelled: only a run that is queued, held or working can be cancelled" in look(
        f"/runs/{run.pk}/"
    )


def test_confirm_lets_a_held_run_go_on_as_a_new_one(client: Client, look: Look, sync: Sync) -> None:
    run = a_run(sync, "held", options={"would_delete": 12})

    answer = client.post(f"/runs/{run.pk}/confirm/")

    new = Run.objects.exclude(pk=run.pk).get()
    assert answer["Location"] == f"/runs/{new.pk}/"
    assert new.options["confirmed_deletes"] == 12


# models and the rest


def test_models_show_their_inputs_and_what_became_of_them(look: Look, sync: Sync) -> None:
    ModelState.objects.create(
        workspace=sync.workspace,
        name="sync.aircraft",
        kind="merge",
        inputs=["mart.aircraft"],
        rows=3_322,
        last_action="failed",
        last_error="models/sync/aircraft.sql:4: no column yeer",
    )

    text = look("/models/")

    assert '<a href="#mart.aircraft">mart.aircraft</a>' in text
    assert "models/sync/aircraft.sql:4: no column yeer" in text
    assert f'href="/syncs/{sync.pk}/"' in text


def test_login_says_that_name_and_password_do_not_match(client: Client, sync: Sync) -> None:
    person("bob", sync.workspace)

    assert "do not match" in client.post("/login/", {"username": "bob", "password": "wrong"}).content.decode()
    assert client.post("/login/", {"username": "bob", "password": "bob-password"})["Location"] == "/"


def test_every_table_is_in_the_admin_site(client: Client, sync: Sync) -> None:
    boss = person("boss", sync.workspace)
    boss.is_staff = boss.is_superuser = True
    boss.save(update_fields=["is_staff", "is_superuser"])
    run = a_run(sync, **closing())
    client.force_login(boss)

    index = client.get("/admin/").content.decode()

    assert all(
        f"/admin/ondatra_web/{name}/" in index
        for name in ("run", "chunk", "delivery", "recordfile", "messagegroup", "apitoken", "auditlog")
    )
    assert client.get(f"/admin/ondatra_web/run/{run.pk}/change/").status_code == 200
    assert client.post(f"/admin/ondatra_web/run/{run.pk}/delete/", {"post": "yes"}).status_code == 403
