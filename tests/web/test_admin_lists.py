"""Lists of the admin site: what they cost does not grow with the tables, and they hold nothing of the records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ondatra_web import models
from ondatra_web.admin_site import GROUPS
from tests.web import filled

pytestmark = pytest.mark.django_db
FEW, DOUBLED = 400, 6  # to 25,600
COPIED = (models.Run, models.Chunk, models.Delivery)
OF_A_DELIVERY = (
    models.Job,
    models.RecordFile,
    models.ApiCallFile,
    models.MessageGroup,
    models.Export,
    models.AuditLog,
)
MARK = "payload-of-somebody"
LARGE = ["run", "chunk", "delivery", "job", "recordfile", "apicallfile", "messagegroup", "export", "auditlog"]
ADDRESSES = [f"/admin/ondatra_web/{name}/" for name in LARGE] + [
    "/admin/",
    "/admin/ondatra_web/run/?p=3",
    "/admin/ondatra_web/run/?q=7",
    "/admin/ondatra_web/run/?q=sync.aircraft",
    "/admin/ondatra_web/run/?status__exact=failed",
    "/admin/ondatra_web/run/?sync__id__exact={sync}",
    "/admin/ondatra_web/delivery/?run__id__exact={run}",
    "/admin/ondatra_web/recordfile/?q={run}",
    "/admin/ondatra_web/job/?run__id__exact={run}",
    "/admin/ondatra_web/auditlog/?q=ada",
    "/admin/ondatra_web/run/{run}/change/",
]


@pytest.fixture
def staff(client: Client) -> Client:
    User.objects.create_superuser("ada", password="ada-password")
    client.force_login(User.objects.get(username="ada"))
    return client


def _fill(sync: models.Sync, number: int) -> None:
    """So many runs with a row of each kind, all of which hold the mark where records may stand."""
    ada, now = User.objects.get(username="ada"), timezone.now()
    made = models.Run.objects.bulk_create(
        models.Run(
            sync=sync,
            status="failed" if n % 4 == 0 else "completed",
            ended_at=now,
            planned=1,
            options={"chosen": {"identifier": MARK}},
            metadata={"columns": MARK},
        )
        for n in range(number)
    )
    chunks = models.Chunk.objects.bulk_create(
        models.Chunk(sync=sync, staged_by=run, url="s3://b/c", rows=1, records=1, states=b"") for run in made
    )
    pairs = list(zip(made, chunks, strict=True))
    deliveries = models.Delivery.objects.bulk_create(
        models.Delivery(run=run, chunk=chunk, ordinal=1, rows=1, records=1, status="closed") for run, chunk in pairs
    )
    models.Job.objects.bulk_create(
        models.Job(sync=sync, run=run, chunk=chunk, positions=b"", batch_number=1, ref=f'"{MARK}"')
        for run, chunk in pairs
    )
    models.RecordFile.objects.bulk_create(
        models.RecordFile(
            run=d.run,
            delivery=d,
            batch_type="records_updated",
            number=0,
            url="s3://b/r",
            rows=1,
            min_identifier=MARK,
            max_identifier=MARK,
        )
        for d in deliveries
    )
    models.ApiCallFile.objects.bulk_create(
        models.ApiCallFile(run=d.run, delivery=d, url="s3://b/a", calls=1) for d in deliveries
    )
    models.MessageGroup.objects.bulk_create(
        models.MessageGroup(
            run=run,
            status="rejected",
            pattern="‹n›: year is required",
            sample_message=MARK,
            sample_identifier=MARK,
            rows=1,
            first_run=run,
        )
        for run in made
    )
    models.Export.objects.bulk_create(
        models.Export(run=run, format="csv", filter={"identifier": MARK}, created_by=ada) for run in made
    )
    models.AuditLog.objects.bulk_create(
        models.AuditLog(
            organization=sync.workspace.organization,
            user=ada,
            who="ada",
            action="read_records",
            target=f"run {run.pk}",
            detail={"identifier": MARK},
        )
        for run in made
    )


def _double() -> None:
    """Every row once more, of the copies of the rows that it names: by the database, which takes no time for it."""
    number = models.Run.objects.count()
    for table in (models.Run, models.Chunk, models.Delivery, *OF_A_DELIVERY):
        names, values = [], []
        for field in table._meta.concrete_fields:
            if not field.primary_key:
                names.append(f'"{field.column}"')
                values.append(f'"{field.column}" + {number}' if field.related_model in COPIED else f'"{field.column}"')
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {table._meta.db_table} ({', '.join(names)}) "
                f"SELECT {', '.join(values)} FROM {table._meta.db_table} ORDER BY id"
            )


class Work:
    """What the database does: statements, and steps of SQLite's machine, by the hundred."""

    def __init__(self) -> None:
        self.queries = self.steps = 0
        self.statements: list[str] = []

    def __enter__(self) -> Work:
        connection.ensure_connection()
        connection.connection.set_progress_handler(self._step, 100)
        self._captured = CaptureQueriesContext(connection)
        self._captured.__enter__()
        return self

    def _step(self) -> int:
        self.steps += 1
        return 0

    def __exit__(self, *error: Any) -> None:
        self._captured.__exit__(*error)
        connection.connection.set_progress_handler(None, 100)
        self.statements = [q["sql"] for q in self._captured.captured_queries]
        self.queries = len(self.statements)


def _work(staff: Client, address: str) -> Work:
    with Work() as work:
        answer = staff.get(address)
    assert answer.status_code == 200, (address, answer.status_code, answer.get("Location"))
    assert MARK not in answer.content.decode(), address
    return work


def _addresses(sync: models.Sync, run: models.Run) -> Iterator[tuple[str, str]]:
    for address in ADDRESSES:
        yield address, address.format(sync=sync.pk, run=run.pk)


def test_a_list_costs_the_same_however_many_rows_there_are_and_shows_no_record(staff: Client) -> None:
    sync = filled.a_sync(filled.workspace())
    _fill(sync, FEW)
    run = models.Run.objects.all()[5]
    before = {name: _work(staff, address) for name, address in _addresses(sync, run)}

    for _ in range(DOUBLED):
        _double()
    after = {name: _work(staff, address) for name, address in _addresses(sync, run)}

    counted = {n: [s for s in w.statements if re.search(r"(?i)count\(", s)] for n, w in after.items()}
    assert {n: found for n, found in counted.items() if found} == {}
    assert {n: w.queries for n, w in after.items() if w.queries > before[n].queries} == {}
    assert {n: w.queries for n, w in after.items() if w.queries > 12} == {}
    assert models.Run.objects.count() == models.RecordFile.objects.count() == 25_600
    grown = {n: (before[n].steps, w.steps) for n, w in after.items() if w.steps > 2 * before[n].steps + 20}
    assert grown == {}


def test_every_table_of_the_site_has_its_group_and_a_list_with_its_heads_in_words(staff: Client) -> None:
    tables = {table.__name__: page for table, page in admin.site._registry.items()}
    index = staff.get("/admin/").content.decode()

    assert sorted(tables) == sorted(name for names in GROUPS.values() for name in names)
    assert [title for title in GROUPS if title not in index] == []
    assert "Deliverys" not in index and "Deliveries" in index
    assert [e for page in admin.site._registry.values() for e in page.check()] == []


def test_no_page_of_a_row_shows_a_record_or_a_secret(staff: Client) -> None:
    place = filled.workspace()
    sync = filled.a_sync(place)
    _fill(sync, 1)
    organization, ada = place.organization, User.objects.get()
    models.Workspace.objects.update(mask_key="5ec7e7" * 10)
    models.Bucket.objects.create(organization=organization, bucket="b", region="r", access_key=MARK, secret=MARK)
    models.ApiToken.objects.create(organization=organization, user=ada, name="t", digest=MARK)
    models.RunLog.objects.create(run=models.Run.objects.get(), text=MARK)
    rows = [(table._meta, row.pk) for table in admin.site._registry for row in table._default_manager.all()[:1]]

    pages = {}
    for kind, key in rows:
        answer = staff.get(f"/admin/{kind.app_label}/{kind.model_name}/{key}/change/")
        assert answer.status_code == 200, kind.model_name
        pages[kind.model_name] = answer.content.decode()

    assert len(pages) >= 14
    assert [name for name, page in pages.items() if MARK in page or "5ec7e7" in page] == []


def test_support_goes_by_links_from_an_organization_down_to_a_job(staff: Client) -> None:
    sync = filled.a_sync(filled.workspace())
    _fill(sync, 2)
    here = f"/admin/ondatra_web/organization/{sync.workspace.organization_id}/change/"

    for title in ("Workspaces", "Syncs", "Runs", "Deliveries", "Jobs"):
        listed = _linked(staff, here, f'<a href="([^"]+)">{title}</a>')
        here = _linked(staff, listed, '<th class="field-[^"]+"><a href="([^"?]+)')

    assert re.fullmatch(r"/admin/ondatra_web/job/\d+/change/", here)


def _linked(staff: Client, address: str, pattern: str) -> str:
    found = re.search(pattern, staff.get(address).content.decode())
    assert found, f"{address} has no link {pattern}"
    return unescape(found[1])
