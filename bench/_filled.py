"""An install with a long history, written in bulk: rows of the database, and record files of one run."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

#: Rows that are written at once.
AT_ONCE = 5_000
#: Models read up to so many of those before them.
INPUTS = 2
STATUSES = ("completed",) * 16 + ("completed_with_rejects",) * 2 + ("failed", "skipped")


def fill(*, syncs: int, models: int, runs: int, longest: int, groups: int) -> dict[str, int]:
    """One organization with an admin `alice`, who is staff too. `longest` of the runs are of the first sync. Ids of
    what pages are of, by the name in their address."""
    from django.contrib.auth.models import User

    from ondatra_web.models import Membership, Organization, Workspace

    chance = random.Random(7)
    organization = Organization.objects.order_by("pk").first() or Organization.objects.create(name="Bench")
    place = Workspace.objects.create(organization=organization, slug="filled", project_dir="/nowhere")
    alice = User.objects.create_superuser("alice", "alice@example.com", "alice")
    Membership.objects.create(user=alice, organization=organization, role="admin")

    made = _syncs(place, syncs)
    states = _models(place, models, chance)
    of_first = _runs(made, runs, longest, chance)
    _left_behind(groups, chance)
    _people_saw(organization, alice, made, chance)
    return {
        "sync_id": made[0].pk,
        "run_id": of_first,
        "state_id": states[-1].pk,
        "organization_id": organization.pk,
        "workspace_id": place.pk,
    }


def _bulk(model: Any, rows: Iterable[Any]) -> list[Any]:
    return list(model.objects.bulk_create(rows, batch_size=AT_ONCE))


def _syncs(place: Any, n: int) -> list[Any]:
    from django.utils import timezone

    from ondatra_web.models import Destination, DestinationObject, Sync

    destination = Destination.objects.create(workspace=place, type="HubSpot")
    thing = DestinationObject.objects.create(destination=destination, name="Contact")
    return _bulk(
        Sync,
        [
            Sync(
                workspace=place,
                name=f"sync.number_{i:04}",
                kind="merge",
                key=["id"],
                function="crm",
                destination=thing,
                destination_type="HubSpot",
                destination_object="Contact",
                tags=[f"team-{i % 20}"],
                schedule="every 15m" if i % 3 else "",
                next_run_at=timezone.now() + timedelta(minutes=i % 15) if i % 3 else None,
                columns=[["id", "BIGINT", "bigint"], ["email", "VARCHAR", "string"]],
                mark=90,
                source_rows=1_000,
            )
            for i in range(n)
        ],
    )


def _models(place: Any, n: int, chance: random.Random) -> list[Any]:
    from django.utils import timezone

    from ondatra_web.models import ModelState, Sync

    names = [f"staging.table_{i:04}" for i in range(max(n - Sync.objects.count(), 1))]
    names += Sync.objects.order_by("name").values_list("name", flat=True)
    return _bulk(
        ModelState,
        [
            ModelState(
                workspace=place,
                name=name,
                kind="merge",
                key=["id"],
                columns=[["id", "BIGINT", "bigint"], ["email", "VARCHAR", "string"]],
                table_version=90,
                rows=1_000,
                last_action="unchanged",
                last_run_at=timezone.now(),
                file=f"models/{name.replace('.', '/')}.sql",
                sql_as_written="SELECT id, email FROM staging.table_0000",
                inputs=chance.sample(names[: min(i, 200)], min(i, INPUTS)),
            )
            for i, name in enumerate(names)
        ],
    )


def _runs(syncs: list[Any], n: int, longest: int, chance: random.Random) -> int:
    """The newest run of the first sync."""
    from django.utils import timezone

    from ondatra_web.models import Run

    now, told = timezone.now(), {"build": "2026-01-01T00:00:00+00:00", "push": "2026-01-01T00:00:10+00:00"}
    order = [syncs[0]] * longest + [syncs[1 + i % (len(syncs) - 1)] for i in range(n - longest)]
    chance.shuffle(order)

    def runs() -> Iterable[Run]:
        for i, sync in enumerate(order):
            began = now - timedelta(days=90) * (1 - i / n)
            status = chance.choice(STATUSES)
            refused = 40 if status == "completed_with_rejects" else 0
            yield Run(
                sync=sync,
                status=status,
                trigger="schedule",
                created_at=began,
                started_at=began,
                ended_at=began + timedelta(seconds=20),
                failed=status == "failed",
                error="the destination did not answer" if status == "failed" else "",
                step="push",
                step_times=told,
                staged=status != "skipped",
                tracking="written",
                source_count=1_000,
                unchanged=900,
                changed=100,
                planned=100,
                succeeded=100 - refused,
                rejected=refused,
                judged=True,
            )

    made = _bulk(Run, runs())
    return int(max(run.pk for run in made if run.sync_id == syncs[0].pk))


def _left_behind(groups: int, chance: random.Random) -> None:
    """Record files of every run that sent, groups of messages of the newest that were refused."""
    from django.utils import timezone

    from ondatra_web.models import ApiCallFile, Chunk, Delivery, Export, Job, MessageGroup, RecordFile, Run, RunLog

    now = timezone.now()
    sent = list(Run.objects.filter(staged=True).order_by("-pk").values_list("pk", "sync_id"))
    _bulk(
        RecordFile,
        (
            RecordFile(
                run_id=pk,
                batch_type="records_updated",
                number=0,
                url=f"file:///nowhere/{pk}.parquet",
                rows=100,
                counts={"succeeded": 60, "rejected": 40},
                operations={"succeeded|updated|update_postimage": 100},
                min_identifier="customer-000",
                max_identifier="customer-999",
                log_batch=1,
            )
            for pk, _ in sent
        ),
    )
    chunks = _bulk(
        Chunk,
        (
            Chunk(
                sync_id=sync,
                staged_by_id=pk,
                url=f"file:///nowhere/{pk}",
                rows=100,
                records=100,
                states=b"",
                due_rows=0,
            )
            for pk, sync in sent[: len(sent) // 5]
        ),
    )
    _bulk(
        Delivery,
        (
            Delivery(run_id=chunk.staged_by_id, chunk=chunk, ordinal=0, rows=100, records=100, status="closed")
            for chunk in chunks
        ),
    )
    _bulk(
        ApiCallFile, (ApiCallFile(run_id=pk, url=f"file:///nowhere/{pk}", calls=1) for pk, _ in sent[: len(sent) // 5])
    )
    _bulk(
        Job,
        (
            Job(sync_id=sync, run_id=pk, chunk=chunk, positions=b"", batch_number=1, ref="{}", ended_at=now)
            for (pk, sync), chunk in zip(sent[:200], chunks, strict=False)
        ),
    )
    _bulk(Export, (Export(run_id=pk, format="csv", status="removed") for pk, _ in sent[:2_000]))
    _bulk(RunLog, (RunLog(run_id=pk, level="print", text=f"page {i}") for pk, _ in sent[:5_000] for i in range(3)))
    refused = Run.objects.filter(status="completed_with_rejects").order_by("-pk").values_list("pk", flat=True)
    each = 10
    _bulk(
        MessageGroup,
        (
            MessageGroup(
                run_id=pk,
                status="rejected",
                pattern=f"email # is not valid ({i})",
                sample_message=f"email {pk} is not valid ({i})",
                sample_identifier=str(pk),
                rows=4,
                due=chance.randrange(4),
            )
            for pk in refused[: max(groups // each, 1)]
            for i in range(each)
        ),
    )


def _people_saw(organization: Any, alice: Any, syncs: list[Any], chance: random.Random) -> None:
    """The audit log, alerts and their messages."""
    from django.utils import timezone

    from ondatra_web.models import Alert, AlertChannel, AlertDelivery, AlertEvent, AuditLog

    now, n = timezone.now(), 20 * len(syncs)
    _bulk(
        AuditLog,
        (
            AuditLog(
                organization=organization,
                user=alice,
                who="alice",
                sync=chance.choice(syncs),
                action="start_run",
                target=f"run {i}",
                at=now - timedelta(minutes=n - i),
            )
            for i in range(n)
        ),
    )
    channel = AlertChannel.objects.create(
        organization=organization, name="people", kind="email", recipients=["a@example.com"]
    )
    alerts = _bulk(
        Alert,
        (
            Alert(
                sync=sync,
                kind="failure",
                level="warning",
                since=now,
                resolved_at=None if i == 0 and number % 20 == 0 else now,
                summary="3 runs failed",
            )
            for i in range(5)
            for number, sync in enumerate(syncs)
        ),
    )
    events = _bulk(
        AlertEvent,
        (AlertEvent(alert=alert, what="raised", level="warning", summary="3 runs failed") for alert in alerts),
    )
    _bulk(AlertDelivery, (AlertDelivery(channel=channel, event=event, status="sent", attempts=1) for event in events))


def records(run_id: int, folder: Path, rows: int) -> None:
    """Real record files of that run, below `folder`, in place of the ones that only have a row."""
    from ondatra_web.models import Chunk, RecordFile, Run

    Chunk.objects.filter(staged_by_id=run_id).delete()
    RecordFile.objects.filter(run_id=run_id).delete()
    from tests.web import filled

    run = Run.objects.get(pk=run_id)
    run.store_url = folder.as_uri()
    run.save(update_fields=["store_url"])
    filled.put_records(run, folder, [filled.record(str(i)) for i in range(rows)])
