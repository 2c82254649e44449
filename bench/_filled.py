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
#: Where their files would be.
NOWHERE = "file:///nowhere"
#: Record files that the index of histories lacks: those of the last minutes.
NOT_INDEXED = 20
#: Its columns, of the n-th record of a run.
INDEXED = {
    "identifier": "CASE WHEN n < 50 THEN printf('customer-%03d', n) ELSE printf('customer-%03d-%d', n, sync) END",
    "sync_configuration_id": "CAST(sync AS VARCHAR)",
    "sync_run_id": "CAST(run AS VARCHAR)",
    "status": "CASE WHEN n % 5 < 3 THEN 'succeeded' ELSE 'rejected' END",
    "status_message": "CASE WHEN n % 5 > 2 THEN 'email ' || n || ' is not valid' END",
    "operation": "'upsert'",
    "change_type": "'update_postimage'",
    "outcome": "CASE WHEN n % 5 < 3 THEN 'ok' ELSE 'reject' END",
    "batch_ended_at": "TIMESTAMPTZ '2026-01-15 08:00:00Z' + to_seconds(run)",
    "place": "run || '/records_updated.0:' || n",
}
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
    _indexed(organization)
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
                store_url=NOWHERE,
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
                url=f"{NOWHERE}/sync_tracking_datasets/1/{sync}/{pk}/records_updated.0.parquet",
                rows=100,
                counts={"succeeded": 60, "rejected": 40},
                operations={"succeeded|updated|update_postimage": 100},
                min_identifier="customer-000",
                max_identifier="customer-999",
                log_batch=1,
            )
            for pk, sync in sent
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


def _indexed(organization: Any) -> None:
    """The index of what those files would hold: each thing in every run of its sync, half of them in every sync. The
    newest files are not in it yet."""
    import duckdb
    import orjson
    import pyarrow as pa

    from ondatra_web.models import RecordFile
    from ondatra_web.tracking import history
    from runtime.records import newest

    told = list(RecordFile.objects.order_by("pk").values_list("pk", "run_id", "run__sync_id"))[:-NOT_INDEXED]
    index = history.index_of(organization.pk)
    index.folder.mkdir(parents=True)
    covers = orjson.dumps([f"{run}/records_updated.0" for _, run, _ in told]).decode()
    runs = pa.table({"run": [run for _, run, _ in told], "sync": [sync for *_, sync in told]})
    with duckdb.connect(config={"temp_directory": str(index.folder / "spill")}) as one:
        one.register("runs", runs)
        picked = ", ".join(f"{INDEXED[name]} AS {name}" for name in newest.NAMES)
        one.execute(
            f"COPY (SELECT {picked} FROM runs, range(100) AS r(n) ORDER BY identifier) TO '{index.folder}/all.parquet' "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20_000, KV_METADATA {{'ondatra.covers': '{covers}'}})"
        )
    index.settle(history.Settled(upto=told[-1][0]))


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
