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
from runtime.custody.redact import everywhere
from runtime.lake.commits import disagrees
from runtime.lake.table import LakeTable
from runtime.pipeline.building import Remembered, Result


class ModelStates:
    """The states of a workspace's models, for one walk."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.known = {s.name: s for s in ModelState.objects.filter(workspace=workspace)}
        self._urls: dict[str, str] = {}
        self._locks = TableLocks(workspace.pk)
        self._stood: dict[str, tuple[int, str]] = {}  # what was found to be true, by model
        self._same: list[int] = []  # states of models of which nothing changed, noted together at the end

    def url(self, model: str) -> str:
        """Where its table lies. Builders ask again, who have no database."""
        if model not in self._urls:
            state = self.known.get(model)
            place = (state and state.place) or place_of(self.workspace.pk, model)
            self._urls[model] = f"{settings.ONDATRA.lake_url}/{self.workspace.pk}/{place}"
        return self._urls[model]

    def remembered(self, model: str) -> Remembered | None:
        """With no version where the table is not the one that was built: it is built again."""
        state = self.known.get(model)
        if state is None:
            return None
        columns = columns_of(state.columns)
        if not self._stands(state):
            return Remembered("", None, state.rows, columns)
        return Remembered(state.fingerprint, state.table_version, state.rows, columns, state.table_commit)

    def _stands(self, state: ModelState) -> bool:
        """Asked of local tables, which takes microseconds; one on S3 is asked when its sync begins."""
        table = LakeTable(self.url(state.name))
        if state.table_version is None or not table.is_local:
            return True
        told = state.table_version, state.table_commit
        if self._stood.get(state.name) != told and disagrees(table, *told, session=_no_session):
            return False
        self._stood[state.name] = told
        return True

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
            "last_error": everywhere.text(result.error or ""),
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
                "table_commit": result.commit,
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


def _no_session() -> Any:
    raise RuntimeError("a local table is read without Spark")


def _says_nothing_new(result: Result, known: ModelState) -> bool:
    said = result.fingerprint, result.version, result.commit, result.model.file, result.model.sql
    was = known.fingerprint, known.table_version, known.table_commit, known.file, known.sql_as_written
    return result.action == "unchanged" and bool(result.fingerprint) and known.gone_at is None and said == was
