"""What people are called for: what each kind of rule finds, once for each change, and who hears of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ondatra_web import actions
from ondatra_web.alerts import judging, rules
from ondatra_web.clock import calling
from ondatra_web.models import (
    Alert,
    AlertEvent,
    Chunk,
    MessageGroup,
    Run,
    Sync,
    SyncUsual,
)
from tests.web.alerting import ends, rule_of, story
from tests.web.filled import a_run, a_sync, closing

pytestmark = pytest.mark.django_db


# without any set-up


def test_every_workspace_has_a_rule_of_each_kind_from_the_first_look_on(sync: Sync) -> None:
    told = rules.of_workspace(sync.workspace).values_list("kind", "unit", "warning", "critical", "enabled")

    assert sorted(told) == [
        ("deviation", "percent", 50, 90, True),
        ("due", "runs", 3, 10, True),
        ("duration", "times", 3, None, True),
        ("failure", "runs", 1, 3, True),
        ("held", "hours", 0, 24, True),
        ("invalid", "percent", 5, 50, True),
        ("late", "minutes", 60, 360, True),
        ("rejected", "percent", 5, 50, True),
    ]


def test_a_failure_is_told_once_when_it_gets_worse_and_when_it_is_over(sync: Sync) -> None:
    for _ in range(4):
        ends(sync, "failed", error="401: token of tenant 77 expired", **closing(not_tried=100))
    ends(sync)
    ends(sync)

    assert story(sync, "failure") == [
        "raised warning: failed: 401: token of tenant ‹n› expired",
        "worse critical: failed 3 times in a row: 401: token of tenant ‹n› expired",
        "resolved critical: failed 4 times in a row: 401: token of tenant ‹n› expired",
    ]


def test_a_failure_is_since_its_first_run(sync: Sync) -> None:
    ends(sync)
    first = ends(sync, "failed", ago=timedelta(hours=5))
    ends(sync, "failed")

    assert Alert.objects.get(kind="failure").since == first.started_at


def test_an_error_is_told_without_what_may_be_the_value_of_a_row(sync: Sync) -> None:
    ends(sync, "failed", error="the value 'Ada' of \"name\" cannot be cast: ada@example.com\nat line 3")

    assert story(sync, "failure") == ["raised warning: failed: the value ‹text› of ‹text› cannot be cast: ‹address›"]


def test_rejects_are_told_by_their_share_with_the_commonest_patterns_and_no_sample(sync: Sync) -> None:
    run = a_run(sync, "completed_with_rejects", staged=True, **closing(rejected=60))
    for rows, pattern in ((10, "409: gone"), (50, '422: field "year" is required')):
        MessageGroup.objects.create(
            run=run, status="rejected", pattern=pattern, sample_message="Ada Lovelace", rows=rows, first_run=run
        )
    judging.ended()

    assert story(sync, "rejected") == ["raised critical: 60 of 100 records were not taken (60 %)"]
    assert Alert.objects.get().details == {
        "rows": 60,
        "of": 100,
        "value": 60.0,
        "unit": "percent",
        "warning": 5,
        "critical": 50,
        "reasons": [
            {"status": "rejected", "pattern": '422: field "year" is required', "rows": 50},
            {"status": "rejected", "pattern": "409: gone", "rows": 10},
        ],
    }


def test_a_count_of_rejects_may_be_the_threshold(sync: Sync) -> None:
    rules.save(sync.workspace, rules.Wanted("rejected", unit="records", warning=3), rule=rule_of(sync, "rejected"))
    ends(sync, "completed_with_rejects", **closing(rejected=2))
    ends(sync, "completed_with_rejects", **closing(rejected=3))

    assert story(sync, "rejected") == ["raised warning: 3 of 100 records were not taken (3 %)"]


def test_rejects_are_over_when_a_run_takes_them_and_not_when_one_has_nothing_to_send(sync: Sync) -> None:
    ends(sync, "completed_with_rejects", **closing(rejected=60))
    chunk = Chunk.objects.create(
        sync=sync, url="", rows=100, records=100, states=b"", rejected_rows=60, rejected_records=60
    )
    ends(sync, **closing(unchanged=100))
    ends(sync, "completed", options={"retry_of": 1}, **closing(1))
    assert len(story(sync, "rejected")) == 1

    Chunk.objects.filter(pk=chunk.pk).update(rejected_rows=0, rejected_records=0)
    ends(sync, "completed", options={"retry_of": 1}, **closing(59))

    assert [line.split()[0] for line in story(sync, "rejected")] == ["raised", "resolved"]


def test_invalid_rows_are_told_by_their_share_of_the_source(sync: Sync) -> None:
    ends(sync, **closing(invalid=7))
    ends(sync, **closing(invalid=4))

    assert story(sync, "invalid") == [
        "raised warning: 7 of 100 rows are invalid (7 %)",
        "resolved warning: 7 of 100 rows are invalid (7 %)",
    ]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (0, ["raised critical: 0 rows of the model, usually about 1,000"]),
        (100, ["raised critical: 100 rows of the model, usually about 1,000"]),
        (1_600, ["raised warning: 1,600 rows of the model, usually about 1,000"]),
        (1_400, []),
    ],
)
def test_a_row_count_off_its_usual_is_told_zero_rows_included(sync: Sync, source: int, told: list[str]) -> None:
    for n in (990, 1_000, 1_000, 1_010, 1_000):
        ends(sync, **closing(n))
    ends(sync, **closing(source))

    assert story(sync, "deviation") == told


def test_a_sync_whose_counts_always_differ_widely_is_not_off_its_usual(sync: Sync) -> None:
    for n in (100, 1_900, 300, 1_000, 1_700, 600):
        ends(sync, **closing(n))
    ends(sync, **closing(2_000))

    assert story(sync, "deviation") == []


def test_nothing_is_usual_before_five_runs_and_what_is_off_ends_with_a_usual_one(sync: Sync) -> None:
    for n in (1_000, 0, 1_000, 1_000, 1_000):
        ends(sync, **closing(n))
    assert story(sync, "deviation") == []

    ends(sync, **closing(0))
    ends(sync, **closing(1_000))

    assert [line.split()[0] for line in story(sync, "deviation")] == ["raised", "resolved"]


def test_retries_dry_runs_and_runs_with_a_limit_are_not_usual(sync: Sync) -> None:
    for _ in range(5):
        ends(sync, **closing(1_000))
    ends(sync, options={"retry_of": 1}, **closing(0))
    ends(sync, dry_run=True, **closing(0))
    ends(sync, options={"limit": 3}, **closing(0))

    assert story(sync, "deviation") == []
    assert [c[0] for c in SyncUsual.objects.get().counts] == [1_000] * 5


def test_deletes_may_be_what_is_off(sync: Sync) -> None:
    rules.save(
        sync.workspace,
        rules.Wanted("deviation", measure="deleted", warning=100),
        rule=rule_of(sync, "deviation"),
    )
    for _ in range(5):
        ends(sync, deleted=10)
    ends(sync, deleted=90)

    assert story(sync, "deviation") == ["raised warning: 90 deletes, usually about 10"]


def _lasting(minutes: float) -> dict[str, Any]:
    end = timezone.now()
    return {"started_at": end - timedelta(minutes=minutes), "ended_at": end}


def test_a_run_that_takes_several_times_its_usual_is_told(sync: Sync) -> None:
    for _ in range(5):
        ends(sync, **_lasting(10))
    ends(sync, **_lasting(42))
    ends(sync, **_lasting(11))

    assert story(sync, "duration") == [
        "raised warning: took 42 min, usually about 10 min",
        "resolved warning: took 42 min, usually about 10 min",
    ]


def test_a_run_that_still_works_is_told_when_it_takes_too_long(sync: Sync) -> None:
    for _ in range(5):
        ends(sync, **_lasting(10))
    a_run(sync, "working", ago=timedelta(minutes=50))
    judging.look()

    assert story(sync, "duration") == ["raised warning: has taken 50 min so far, usually about 10 min"]


def test_rows_that_wait_are_told_when_they_grow_from_run_to_run(sync: Sync) -> None:
    chunk = Chunk.objects.create(sync=sync, url="", rows=900, records=900, states=b"")
    for due in (5, 5, 6, 7, 8, 9, 2):
        Chunk.objects.filter(pk=chunk.pk).update(due_rows=due)
        ends(sync, "completed_with_rejects", **closing(retrying=1))

    assert story(sync, "due") == [
        "raised warning: 8 rows wait to be sent again, more after each of the last 3 runs",
        "resolved warning: 9 rows wait to be sent again, more after each of the last 4 runs",
    ]


def test_a_held_run_is_told_at_once_again_after_a_day_and_when_somebody_decides(sync: Sync) -> None:
    run = ends(sync, "held", options={"would_delete": 8_112})
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now() - timedelta(hours=25))
    judging.look()
    judging.look()
    actions.cancel_run(run)

    text = f"run {run.pk} is held: it would delete 8,112 rows; nothing was sent"
    assert story(sync, "held") == [f"raised warning: {text}", f"worse critical: {text}", f"resolved critical: {text}"]


# by the clock


@pytest.fixture
def scheduled(sync: Sync) -> Sync:
    """A sync of every hour that the clock has seen, and that ran at six."""
    Sync.objects.filter(pk=sync.pk).update(schedule="0 * * * *")
    judging.look()
    SyncUsual.objects.update(schedule_from=_today(0))
    run = a_run(sync, staged=True, **closing())
    Run.objects.filter(pk=run.pk).update(created_at=_today(6))
    judging.ended()
    return sync


def _today(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 2, hour, minute, tzinfo=timezone.get_fixed_timezone(0))


def _at(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    monkeypatch.setattr(judging.timezone, "now", lambda: now)


def test_a_scheduled_time_whose_run_has_not_ended_is_late_until_one_has(
    scheduled: Sync, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now in (_today(7, 30), _today(8, 10), _today(8, 20)):
        _at(monkeypatch, now)
        judging.look()
    run = a_run(scheduled, staged=True, **closing())
    Run.objects.filter(pk=run.pk).update(created_at=_today(8, 21))
    judging.ended()
    judging.look()

    text = "is 1 h 10 min late: its run of 2026-03-02 07:00 UTC has not ended"
    assert story(scheduled, "late") == [f"raised warning: {text}", f"resolved warning: {text}"]


def test_what_is_paused_is_not_late_and_counts_anew_when_it_goes_on(
    scheduled: Sync, monkeypatch: pytest.MonkeyPatch
) -> None:
    _at(monkeypatch, _today(9))
    judging.look()
    actions.pause_sync(scheduled)
    judging.look()
    scheduled.refresh_from_db()
    actions.resume_sync(scheduled)
    _at(monkeypatch, _today(12, 30))
    judging.look()
    _at(monkeypatch, _today(13, 30))
    judging.look()

    assert [line.split()[0] for line in story(scheduled, "late")] == ["raised", "resolved"]
    assert AlertEvent.objects.get(what="resolved").details["why"] == "its sync is paused"


def test_a_sync_whose_file_is_gone_has_no_open_alert(sync: Sync) -> None:
    ends(sync, "failed")
    Sync.objects.filter(pk=sync.pk).update(archived_at=timezone.now())
    judging.look()

    assert [e.details.get("why") for e in AlertEvent.objects.order_by("pk")] == [None, "the file of its sync is gone"]


def test_a_run_that_nobody_judged_is_judged_by_the_scheduler(sync: Sync) -> None:
    a_run(sync, "failed", **closing(not_tried=100))  # its process died at its end
    calling.round()
    calling.round()

    assert len(story(sync, "failure")) == 1


# what it costs


def _queries(work: Any) -> int:
    with CaptureQueriesContext(connection) as seen:
        work()
    return len(seen)


def test_judging_asks_the_same_number_of_questions_whatever_there_is(sync: Sync) -> None:
    ends(sync, "failed")
    a_run(sync, "failed")
    before = _queries(judging.judge)

    others = [a_sync(sync.workspace, f"sync.n{n}", schedule="0 * * * *") for n in range(40)]
    for other in others:
        Run.objects.bulk_create([Run(sync=other, status="completed", judged=True, ended_at=timezone.now())] * 20)
        a_run(other, "completed_with_rejects", **closing(rejected=1), staged=True)
    a_run(sync, "failed")
    judging.judge()
    for other in [sync, *others]:
        a_run(other, "failed" if other == sync else "completed", **closing(rejected=1), staged=True)

    assert _queries(judging.judge) <= before + 1  # patterns of what was refused
    judging.look()
    assert _queries(judging.look) < 25
