"""What support does in the admin site: asked for first, done by the homes that pages and commands use, written down."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from ondatra_web import tokens, workers
from ondatra_web.models import ApiToken, AuditLog, Chunk, Delivery, RecordFile, Run, Sync, Worker
from runtime.errors import LeaseLost
from runtime.staging import states
from tests.web import filled

pytestmark = pytest.mark.django_db


@pytest.fixture
def sync() -> Sync:
    return filled.a_sync(filled.workspace(), schedule="every 1h")


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("ada", password="ada-password"))
    return client


def _asked(client: Client, table: str, key: int, deed: str) -> str:
    """The page that asks, as text; nothing is done by it."""
    before = AuditLog.objects.count()
    answer = client.get(f"/admin/ondatra_web/{table}/{key}/do/{deed}/", follow=True)
    assert (answer.status_code, AuditLog.objects.count()) == (200, before)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def _done(client: Client, table: str, key: int, deed: str, app: str = "ondatra_web") -> list[str]:
    """What the site says of it."""
    answer = client.post(f"/admin/{app}/{table}/{key}/do/{deed}/", follow=True)
    assert answer.status_code == 200
    return [str(message) for message in answer.context["messages"]]


def _written(action: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [(str(a.user), a.target, a.detail) for a in AuditLog.objects.filter(action=action)]


def _claimed(sync: Sync, owner: Worker | None) -> tuple[Run, Delivery]:
    run = filled.a_run(sync, "working", staged=True, planned=2, owner=owner, lease=3)
    chunk = Chunk.objects.create(
        sync=sync, staged_by=run, url="file:///c", rows=2, records=2, states=states.pack(np.ones(2, np.uint8))
    )
    claimed = Delivery.objects.create(
        run=run, chunk=chunk, ordinal=1, rows=2, records=2, status="claimed", owner=owner, lease=4
    )
    return run, claimed


def _a_stuck_worker() -> Worker:
    """One of another machine that beat just now."""
    return Worker.objects.create(kind="push", host="elsewhere", pid=7, lock="/nowhere")


def test_a_lease_is_released_and_who_had_it_cannot_write_any_more(staff: Client, sync: Sync, stub_broker: Any) -> None:
    from ondatra_web.runs import claims
    from ondatra_web.runs.outbox import DatabaseOutbox

    stuck = _a_stuck_worker()
    run, delivery = _claimed(sync, stuck)
    held = claims.claim_of(Delivery.objects.select_related("chunk").get(pk=delivery.pk))

    asked = _asked(staff, "run", run.pk, "release")
    assert "Alive and at work on it: push elsewhere/7" in asked and "may get these rows twice" in asked
    assert _done(staff, "run", run.pk, "release") == [
        f"The lease of run {run.pk} is released, with 1 of its chunks; a worker was woken."
    ]

    run.refresh_from_db()
    delivery.refresh_from_db()
    assert (run.owner, run.lease, delivery.owner, delivery.lease) == (None, 4, None, 5)
    with pytest.raises(LeaseLost):
        DatabaseOutbox().make_sure(held)
    taken = claims.take(run, 1, 1)
    assert taken is not None and (taken.delivery_id, taken.lease) == (delivery.pk, 6)
    assert _written("release_run") == [("ada", f"run {run.pk}", {"claims": 1})]


def test_a_living_build_is_not_taken_from_its_process(staff: Client, sync: Sync) -> None:
    run = filled.a_run(sync, "working", owner=workers.me("pipeline"))

    assert _done(staff, "run", run.pk, "release") == [
        f"{workers.me()} lives and builds run {run.pk}: cancel the run, or end that process"
    ]
    assert _written("release_run") == []


def test_what_was_refused_is_sent_again_by_a_new_run(staff: Client, sync: Sync, tmp_path: Path) -> None:
    run = filled.a_run(sync, "completed_with_rejects", **filled.closing(2, rejected=1), tracking="written")
    filled.put_records(run, tmp_path, [filled.record("N1"), filled.record("N2", "rejected", "no", "reject", row=1)])

    asked = _asked(staff, "run", run.pk, "retry")
    assert "0 of its 2 records are undelivered" in asked and "2 were delivered since or are gone" in asked
    said = _done(staff, "run", run.pk, "retry")

    new = Run.objects.latest("pk")
    assert said == [f"Run {new.pk} is queued: it sends them again."]
    assert (new.trigger, new.started_by, new.options) == (
        "retry",
        User.objects.get(),
        {"retry_of": run.pk, "chosen": {}},
    )
    assert _written("retry_run") == [("ada", f"run {run.pk}", {"run": new.pk, "chosen": {}})]


def test_records_expire_by_hand_and_the_counts_stay(staff: Client, sync: Sync, tmp_path: Path) -> None:
    run = filled.a_run(sync, **filled.closing(1), tracking="written")
    filled.put_records(run, tmp_path, [filled.record("N1")])

    assert "1 so far, are removed from the store for good" in _asked(staff, "run", run.pk, "expire")
    assert _done(staff, "run", run.pk, "expire") == [f"The records of run {run.pk} are removed."]

    run.refresh_from_db()
    assert (run.succeeded, run.rows_expired_at is not None, RecordFile.objects.count()) == (1, True, 0)
    assert list(tmp_path.rglob("*.parquet")) == []
    assert _written("expire_run") == [("ada", f"run {run.pk}", {})]
    assert "expired already" in _done(staff, "run", run.pk, "expire")[0]


def test_counts_of_a_run_are_added_up_anew_from_its_deliveries(staff: Client, sync: Sync) -> None:
    run, delivery = _claimed(sync, None)
    Delivery.objects.filter(pk=delivery.pk).update(status="closed", counts={"succeeded": 1, "rejected": 1})
    Run.objects.filter(pk=run.pk).update(status="failed", ended_at=timezone.now(), succeeded=2)

    assert "added up anew from its deliveries" in _asked(staff, "run", run.pk, "recount")
    assert _done(staff, "run", run.pk, "recount") == ["Corrected: succeeded from 2 to 1, rejected from 0 to 1."]
    assert _done(staff, "run", run.pk, "recount") == ["Every count was right."]

    run.refresh_from_db()
    assert (run.succeeded, run.rejected, run.planned) == (1, 1, 2)
    assert _written("recount_run")[0] == ("ada", f"run {run.pk}", {"succeeded": [2, 1], "rejected": [0, 1]})


def test_counts_are_left_where_deliveries_are_gone(staff: Client, sync: Sync) -> None:
    run = filled.a_run(sync, **filled.closing(5), staged=True)

    assert "its counts cannot be added up any more" in _done(staff, "run", run.pk, "recount")[0]
    run.refresh_from_db()
    assert run.succeeded == 5


def test_what_waits_of_a_sync_is_added_up_anew_from_its_chunks(staff: Client, sync: Sync) -> None:
    run, delivery = _claimed(sync, None)
    Run.objects.filter(pk=run.pk).update(status="failed", ended_at=timezone.now())
    whole = np.array([states.REJECTED, states.UNTRIED], np.uint8)
    Chunk.objects.update(states=states.pack(whole), due_rows=7)

    assert _done(staff, "sync", sync.pk, "recount") == [
        "Corrected: due rows from 7 to 1, rejected rows from 0 to 1, rejected records from 0 to 1."
    ]
    chunk = Chunk.objects.get()
    assert (chunk.due_rows, chunk.rejected_rows, chunk.rejected_records) == (1, 1, 1)
    assert [who for who, _, _ in _written("recount_sync")] == ["ada"]


def test_a_schedule_is_paused_and_resumed(staff: Client, sync: Sync) -> None:
    assert _done(staff, "sync", sync.pk, "pause") == ["Its schedule is paused."]
    sync.refresh_from_db()
    assert sync.paused_at is not None

    assert _done(staff, "sync", sync.pk, "resume") == ["Its schedule goes on."]
    assert [w[0] for w in _written("pause_sync") + _written("resume_sync")] == ["ada", "ada"]


def test_files_that_wait_are_written_and_only_those(staff: Client, sync: Sync) -> None:
    run = filled.a_run(sync, **filled.closing(1), tracking="pending", store_url="s3://records/store")

    assert "The record files of 0 chunks wait for s3://records/store" in _asked(staff, "run", run.pk, "files")
    assert _done(staff, "run", run.pk, "files") == ["The record files of 0 chunks are written."]
    assert _written("write_record_files") == [("ada", f"run {run.pk}", {"chunks": 0})]


def test_sessions_of_a_person_end_everywhere_and_nobody_elses(staff: Client, sync: Sync) -> None:
    bob = filled.person("bob", sync.workspace)
    theirs, others = Client(), Client()
    theirs.force_login(bob)
    others.force_login(filled.person("carol", sync.workspace))

    assert _done(staff, "user", bob.pk, "sessions", "auth") == ["1 sessions of bob are ended."]

    assert (theirs.get("/syncs/").status_code, others.get("/syncs/").status_code) == (302, 200)
    assert _written("end_sessions") == [("ada", "bob", {"sessions": 1})]


def test_a_token_that_is_revoked_opens_nothing_any_more(staff: Client, sync: Sync) -> None:
    row, text = tokens.make(sync.workspace.organization, filled.person("bob", sync.workspace), "poller", ["read"])
    headers = {"authorization": f"Bearer {text}"}
    assert staff.get("/api/v1/syncs", headers=headers).status_code == 200

    assert "Whatever uses poller of bob" in _asked(staff, "apitoken", row.pk, "revoke")
    staff.post(f"/admin/ondatra_web/apitoken/{row.pk}/do/revoke/")

    assert staff.get("/api/v1/syncs", headers=headers).status_code == 401
    assert not ApiToken.objects.exists()
    assert _written("revoke_token") == [("ada", "poller", {"token": row.pk, "of": "bob"})]


def test_staff_that_may_only_look_is_offered_nothing_and_does_nothing(client: Client, sync: Sync) -> None:
    eve = User.objects.create_user("eve", password="eve-password", is_staff=True)
    eve.user_permissions.add(Permission.objects.get(codename="view_run"))
    client.force_login(eve)
    run = filled.a_run(sync, **filled.closing(1), staged=True)

    page = client.get(f"/admin/ondatra_web/run/{run.pk}/change/").content.decode()
    answers = [
        client.post(f"/admin/ondatra_web/run/{run.pk}/do/{deed}/").status_code
        for deed in ("release", "retry", "files", "expire", "recount")
    ]

    assert "/do/" not in page
    assert answers == [403] * 5
    assert AuditLog.objects.count() == 0


def test_whoever_is_no_staff_comes_in_by_the_one_way_to_sign_in_or_not_at_all(client: Client, sync: Sync) -> None:
    assert client.get("/admin/", follow=True).redirect_chain[-1] == ("/login/?next=/admin/", 302)
    client.force_login(filled.person("bob", sync.workspace))

    run = filled.a_run(sync, **filled.closing(1))
    assert client.get("/admin/", follow=True).status_code == 403
    assert client.post(f"/admin/ondatra_web/run/{run.pk}/do/expire/", follow=True).status_code == 403


def test_an_organization_that_has_nobody_gets_an_admin_who_stays_the_last(staff: Client, sync: Sync) -> None:
    bob, organization = filled.person("bob", None), sync.workspace.organization

    told = {"user": bob.pk, "organization": organization.pk, "role": "viewer"}
    staff.post("/admin/ondatra_web/membership/add/", told, follow=True)
    made = organization.membership_set.get()

    assert _done(staff, "membership", made.pk, "admin") == [f"bob is an admin of {organization}."]
    assert "bob is the last admin" in _done(staff, "membership", made.pk, "remove")[0]
    assert [(a.action, a.target, a.detail) for a in AuditLog.objects.order_by("pk")] == [
        ("join", "bob", {"role": "viewer"}),
        ("change_role", "bob", {"role": "admin"}),
    ]
