"""A small install in every state that a page can show, for looks at pages in a browser: no Spark, no worker."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.contrib.auth.models import User
from django.utils import timezone

from ondatra_web import people, tokens
from ondatra_web.alerts import channels, judging, states
from ondatra_web.models import (
    Alert,
    AlertChannel,
    AlertDelivery,
    ModelState,
    Role,
    Run,
    RunLog,
    SavedFilter,
    Sync,
    Workspace,
)
from ondatra_web.tracking import exporting
from runtime.records.filter import Filter
from tests.web import filled
from tests.web.filled import a_run, closing, record

SQL = "-- @kind: merge\n-- @unique_key: tailnum\n-- @sink: assets\n-- @schedule: every 1h\nSELECT 'N1' AS tailnum\n"
STAR = 'API = {"base_url": "https://assets.example"}\n\ndef push(rows):\n    return {}\n'


def people_of(place: Workspace) -> dict[str, User]:
    """An admin, who also runs the install; who sees no records; who has an empty organization."""
    ada = filled.person("ada", place)
    User.objects.filter(pk=ada.pk).update(is_staff=True, is_superuser=True)
    vera = filled.person("vera", place, "metadata_viewer")
    return {"ada": ada, "vera": vera, "eve": filled.person("eve", filled.workspace("empty"))}


def project(place: Workspace, folder: Path) -> None:
    for file, text in {"models/sync/aircraft.sql": SQL, "lib/assets.star": STAR}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    Workspace.objects.filter(pk=place.pk).update(project_dir=str(folder))
    place.refresh_from_db()


def addresses(ada: User, place: Workspace, folder: Path) -> dict[str, str]:
    """Name of a page's state -> its address, for an admin."""
    runs = {**_runs_of_records(place, folder), **_runs_of_states(place)}
    sync = runs["refused"].sync
    pages = {f"run {name}": f"/runs/{run.pk}/" for name, run in runs.items()}
    for name in ("Broken", "Fleet of the day"):
        kept = {"state": "failed"} if name == "Broken" else {"tag": "fleet"}
        SavedFilter.objects.create(user=ada, organization=place.organization, name=name, chosen=kept)
    return {**pages, **_records(runs, ada), **_of_sync(sync), **_settings(ada, place), **_alerts(runs)}


def _runs_of_records(place: Workspace, folder: Path) -> dict[str, Run]:
    sync = filled.a_sync(place, schedule="every 1h", description="Aircraft that flew", tags=["fleet", "daily"])
    ModelState.objects.create(workspace=place, name=sync.name, file="models/sync/aircraft.sql")
    for n in range(12):
        a_run(sync, "failed" if n % 5 == 0 else "completed", ago=timedelta(hours=30 - n), **closing(90 + n))
    rows = [
        record("N1", payload={"tailnum": "N1", "owner": {"name": "Ada", "since": [1843, 1852]}}),
        record("N2", "rejected", '422: field "year" is required', "reject", row=1, previous={"seats": 1}),
        record("N3", "succeeded", "no owner", "warn", row=2),
        record(None, "NULL", "the key tailnum is NULL", "invalid", row=3, change_type=None),
    ]
    run = a_run(
        sync,
        "completed_with_rejects",
        warned=1,
        tracking="written",
        staged=True,
        **closing(5, invalid=1, rejected=1),
    )
    filled.put_records(run, folder / "store", rows)
    call = {"status": 422, "request_body": '{"tailnum":"N2"}', "response_text": '{"error":"field year"}'}
    filled.put_calls(run, folder / "store", [{**call, "attempt": 2}])
    for level, text in (("info", "began"), ("print", "N2 was refused"), ("warn", "a slow answer"), ("error", "broke")):
        RunLog.objects.create(run=run, level=level, text=text)
    judging.ended()
    return {"refused": run}


def _runs_of_states(place: Workspace) -> dict[str, Run]:
    told = {
        "failed": ("failed", {"error": "503: the destination is down", **closing(4, not_tried=3, retrying=1)}),
        "held": ("held", {"error": "12 records would be deleted, more than 10", **closing(12)}),
        "queued": ("queued", {}),
        "working": ("working", {"step": "push", "staged": True, **closing(4, not_tried=2)}),
        "canceling": ("canceling", {"step": "push", **closing(4)}),
        "cancelled": ("cancelled", {"error": "cancelled by ada", **closing(4, not_tried=4)}),
        "skipped": ("skipped", {}),
        "dry": ("completed", {"dry_run": True, **closing(4)}),
        "expired": ("completed", {"ago": timedelta(days=30), **closing(4)}),
        "unwritten": ("completed", {"tracking": "pending", **closing(4)}),
    }
    made = {name: a_run(filled.a_sync(place, f"sync.{name}"), state, **more) for name, (state, more) in told.items()}
    now = timezone.now()
    Sync.objects.filter(name="sync.skipped").update(paused_at=now, schedule="every 1h")
    Sync.objects.filter(name="sync.cancelled").update(archived_at=now)
    judging.ended()
    return made


def _records(runs: dict[str, Run], ada: User) -> dict[str, str]:
    window = f"/runs/{runs['refused'].pk}/records/"
    export = exporting.start(runs["refused"], Filter(), "csv", user=ada)
    return {
        "records": window,
        "record refused": f"{window}?record=records_updated.0:1",
        "record with a tree": f"{window}?record=records_updated.0:0",
        "record invalid": f"{window}?status=invalid&record=records_updated.0:3",
        "no such record": f"{window}?record=records_updated.0:99",
        "nothing matches": f"{window}?q=nobody",
        "records expired": f"/runs/{runs['expired'].pk}/records/",
        "records of nothing": f"/runs/{runs['unwritten'].pk}/records/",
        "send again": f"/runs/{runs['refused'].pk}/retry/?status=rejected",
        "export": f"/exports/{export.pk}/",
        "found": "/find/?q=N1",
        "find": "/find/",
        "history": f"/syncs/{runs['refused'].sync_id}/history/?q=N2",
    }


def _of_sync(sync: Sync) -> dict[str, str]:
    others = dict(Sync.objects.values_list("name", "pk"))
    return {
        "home": "/",
        "syncs": "/syncs/?sort=last",
        "saved filter": "/?state=failed",
        "filter to save": "/syncs/?q=sync&workspace=default",
        "no sync": "/syncs/?q=nothing-like-it",
        "sync": f"/syncs/{sync.pk}/",
        "sync paused": f"/syncs/{others['sync.skipped']}/",
        "sync archived": f"/syncs/{others['sync.cancelled']}/",
        "ask run": f"/syncs/{sync.pk}/ask/?how=run",
        "ask dry run": f"/syncs/{sync.pk}/ask/?how=dry_run",
        "ask full": f"/syncs/{sync.pk}/ask/?how=full",
        "ask baseline": f"/syncs/{sync.pk}/ask/?how=baseline",
        "ask limit": f"/syncs/{sync.pk}/ask/?how=limit",
        "discard": f"/syncs/{sync.pk}/discard/",
        "models": "/models/",
        "lineage": "/models/lineage/",
        "model": f"/models/{ModelState.objects.get().pk}/",
        "store": "/store/",
        "docs": "/docs/",
        "page of the docs": "/docs/alerts/",
        "not there": "/runs/999999/",
    }


def _settings(ada: User, place: Workspace) -> dict[str, str]:
    tokens.make(place.organization, ada, "nightly", ["read"])
    people.invite(place.organization, Role.VIEWER, user=ada)
    member = ada.membership_set.get().pk
    pages = ("account", "members", f"members/{member}", "tokens", "workspaces", "workspaces/new", "audit")
    pages += ("retention", "schedules", "environment")
    return {f"settings {page}": f"/settings/{page}/" for page in (*pages, f"workspaces/{place.pk}")}


def _alerts(runs: dict[str, Run]) -> dict[str, str]:
    sync = runs["refused"].sync
    organization = sync.workspace.organization
    mail = channels.save(organization, channels.Wanted("On call", "email", recipients=["a@example.com"]))[0]
    failed = {
        "status": "failed",
        "tries": [{"at": timezone.now().isoformat(), "seconds": 1, "status": 550, "said": ""}],
    }
    AlertDelivery.objects.create(channel=mail, **failed)
    AlertDelivery.objects.create(channel=mail)
    alert = Alert.objects.get(sync=sync, kind="rejected")
    seen = Alert.objects.get(sync=runs["held"].sync, kind="held")
    states.acknowledge(seen)
    over = Alert.objects.get(sync=runs["failed"].sync, kind="failure")
    states.resolve(over, "its sync is paused")
    rules = f"/settings/alert-rules/of/{sync.workspace_id}/"
    return {
        "alerts": "/alerts/",
        "alerts seen": "/alerts/?state=acknowledged",
        "alerts over": "/alerts/?state=resolved",
        "alert": f"/alerts/{alert.pk}/",
        "alert seen": f"/alerts/{seen.pk}/",
        "alert over": f"/alerts/{over.pk}/",
        "rules": rules,
        "rule": f"/settings/alert-rules/{alert.rule_id}/",
        "new rule": f"{rules}add/?kind=deviation",
        "channels": f"/settings/channels/of/{organization.pk}/",
        "channel": f"/settings/channels/{AlertChannel.objects.get().pk}/",
        "new channel": f"/settings/channels/of/{organization.pk}/add/?kind=webhook",
    }


#: What somebody sees whose organization has nothing yet.
EMPTY = (
    "/",
    "/syncs/",
    "/alerts/",
    "/models/",
    "/models/lineage/",
    "/store/",
    "/settings/channels/",
    "/settings/tokens/",
)
#: What nobody has to sign in for.
DOORS = ("/login/", "/password/lost/", "/invitations/none/")
