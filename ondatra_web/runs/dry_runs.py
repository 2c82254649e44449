"""A dry run walks the same line over shallow clones of the lake's tables, in a transaction that is rolled back.

Nothing is sent, no table, mark or count of the sync changes, nothing is written under the store; what would be sent
is kept as records with the status `planned`, and the first requests, apart from Sync Tracking.
"""

from __future__ import annotations

import itertools
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from ondatra_web import projects
from ondatra_web.models import Run
from ondatra_web.runs import marks
from ondatra_web.runs.claims import claim_of
from ondatra_web.runs.ledger import DatabaseLedger
from ondatra_web.tracking.records import planned_folder
from runtime.custody.masks import Masker
from runtime.delivery.calls import cut_calls
from runtime.delivery.first_requests import first_requests
from runtime.lake.table import LakeTable
from runtime.model import Model
from runtime.pipeline.building import Result, SyncWork
from runtime.staging import chunks, values
from runtime.staging.request import Staged
from runtime.staging.units import unit_starts
from runtime.tracking import files
from runtime.tracking.info import with_columns

#: So many calls of push() are made to see the first requests.
MOST_CALLS = 10


class DryLedger(DatabaseLedger):
    """The memory of a walk that leaves no trace but its runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cloned: set[str] = set()

    def scratch(self) -> Path:
        return Path(settings.ONDATRA.data_dir) / "dry_runs" / f"lake-{id(self)}"

    def table_url(self, model: str) -> str:
        if model in self.cloned:
            return (self.scratch() / model.replace(".", "/")).as_uri()
        return super().table_url(model)

    def writable(self, model: Model, spark: Any) -> None:
        """From here on the model's table is a clone that may be written."""
        real = LakeTable(super().table_url(model.name))
        self.cloned.add(model.name)
        if real.exists(spark):
            LakeTable(self.table_url(model.name)).clone_from(spark, real)

    def mark(self, work: SyncWork, result: Result) -> int | None:
        """A clone's feed begins after the commit that made it."""
        if result.model.name in self.cloned and work.mark is not None and not work.fresh:
            return result.own_from
        return super().mark(work, result)

    def claim(self, model: Model) -> bool:
        """It writes clones of its own."""
        return True

    def remember(self, result: Result) -> None:
        """A dry run teaches nothing."""

    def staged(self, work: SyncWork, result: Result, staged: Staged | None) -> None:
        run = Run.objects.select_related("sync").get(pk=work.run_id)
        _, info = self.store_of(run)
        info = with_columns(info, result.columns)
        with transaction.atomic():
            marks.move(run, work, result, staged, self.pushes[result.model.name])
            run = Run.objects.get(pk=run.pk)
            counts = {name: value for name, value in run.counts.items() if name != "source"}
            source = run.source_count
            first: list[list[dict[str, Any]]] = []
            for delivery in run.delivery_set.select_related("chunk").order_by("ordinal"):
                claim = claim_of(delivery)
                table = chunks.read_chunk(claim.url, claim.selected)
                rows = values.to_rows(table, result.columns)
                files.write_planned(planned_folder(run.pk) / f"planned.{delivery.ordinal}.parquet", info, rows, table)
                first += self._first_calls(result.model, table, rows, MOST_CALLS - len(first))
            transaction.set_rollback(True)
        self._sample(run, result, first)
        Run.objects.filter(pk=run.pk).update(
            **{**counts, "not_tried": counts["planned"]},
            source_count=source,
            status=Run.Status.COMPLETED,
            ended_at=timezone.now(),
            owner=None,
            store_url="",
        )

    def _first_calls(
        self, model: Model, table: Any, rows: list[dict[str, Any]], most: int
    ) -> list[list[dict[str, Any]]]:
        """The rows of the first calls, cut as delivery cuts them."""
        starts = unit_starts(table, model.kind)
        ends = np.append(starts[1:], len(rows))
        calls = cut_calls(
            starts, len(rows), np.ones(len(starts), dtype=bool), self.pushes[model.name].api.push.batch_size
        )
        return [rows[starts[units[0]] : ends[units[-1]]] for units in itertools.islice(calls, max(most, 0))]

    def _sample(self, run: Run, result: Result, calls: list[list[dict[str, Any]]]) -> None:
        """Keeps the first requests that the push function would make."""
        model = result.model
        assert model.sink is not None
        said = first_requests(
            Path(self.workspace.project_dir),
            model.sink.function,
            calls,
            secrets=projects.secrets_of(self.workspace),
            kind=model.kind,
            masker=Masker(model.masks, self.workspace.mask_key),
            key_columns=list(model.key),
            columns=result.columns,
            run_id=run.pk,
            args=model.sink.args,
        )
        folder = planned_folder(run.pk)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "requests.json").write_text(json.dumps(said, ensure_ascii=False, default=str), encoding="utf-8")

    def finish(self) -> None:
        """Removes the clones and the staged chunks."""
        super().finish()
        shutil.rmtree(self.scratch(), ignore_errors=True)
        for run in self.runs.values():
            with suppress(OSError):
                chunks.remove(f"{settings.ONDATRA.staging_url}/{self.workspace.pk}/{run.sync_id}/{run.pk}")
