"""What is remembered of models' tables: where they lie, what they were built from, who may write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils import timezone

from ondatra_web.models import ModelState, Workspace
from ondatra_web.runs.claims import columns_of
from ondatra_web.runs.lake_tables import TableLocks, place_of
from ondatra_web.runs.patience import patiently
from runtime.pipeline.line import Remembered, Result


class ModelStates:
    """The states of a workspace's models, for one walk."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.known = {s.name: s for s in ModelState.objects.filter(workspace=workspace)}
        self._urls: dict[str, str] = {}
        self._locks = TableLocks(workspace.pk)
        self._same: list[int] = []  # states of models of which nothing changed, noted together at the end

    def url(self, model: str) -> str:
        """Where its table lies. Builders ask again, who have no database."""
        if model not in self._urls:
            self._urls[model] = f"{settings.ONDATRA.lake_url}/{self.workspace.pk}/{place_of(self.workspace.pk, model)}"
        return self._urls[model]

    def remembered(self, model: str) -> Remembered | None:
        state = self.known.get(model)
        if state is None:
            return None
        return Remembered(state.fingerprint, state.table_version, state.rows, columns_of(state.columns))

    def claim(self, model: str) -> bool:
        """Whether its table is ours to write; what is remembered is fresh then."""
        if not self._locks.take(model):
            return False
        self.known |= {s.name: s for s in ModelState.objects.filter(workspace=self.workspace, name=model)}
        return True

    def free(self, model: str) -> None:
        self._locks.free(model)

    def note(self, result: Result) -> None:
        """What came of a model."""
        name = result.model.name
        if (known := self.known.get(name)) is not None and _says_nothing_new(result, known):
            self._same.append(known.pk)
            return
        self.known[name], _ = ModelState.objects.update_or_create(
            workspace=self.workspace, name=name, defaults=self._told(result)
        )

    def _told(self, result: Result) -> Mapping[str, Any]:
        model = result.model
        told: dict[str, Any] = {
            "last_action": result.action,
            "last_error": result.error or "",
            "last_run_at": timezone.now(),
            "kind": model.kind,
            "key": list(model.key),
            "file": model.file,
            "sql_as_written": model.sql,
            "gone_at": None,
        }
        if result.action in ("built", "unchanged"):
            told |= {
                "table_version": result.version,
                "fingerprint": result.fingerprint,
                "rows": result.rows,
                "sql_as_run": result.sql,
                "columns": [[c.name, c.duckdb_type, c.spark_type] for c in result.columns],
                "inputs": list(result.inputs),
            }
        if result.action == "built":
            told["place"] = place_of(self.workspace.pk, model.name)
        return told

    def finish(self) -> None:
        """After the walk, however it ended."""
        self._locks.close()
        patiently(self._note_same)()

    def _note_same(self) -> None:
        ModelState.objects.filter(pk__in=self._same).update(
            last_action="unchanged", last_error="", last_run_at=timezone.now()
        )


def _says_nothing_new(result: Result, known: ModelState) -> bool:
    said = result.fingerprint, result.version, result.model.file, result.model.sql
    was = known.fingerprint, known.table_version, known.file, known.sql_as_written
    return result.action == "unchanged" and bool(result.fingerprint) and known.gone_at is None and said == was
