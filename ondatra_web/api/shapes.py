"""What answers look like: Census's fields where it has them, ours beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from rest_framework import serializers

from ondatra_web.models import Export, MessageGroup, ModelState, Run, RunLog, Sync
from runtime.records.filter import SHOWN

#: Census has five words for the state of a run.
STATUS = {
    Run.Status.QUEUED: "queued",
    Run.Status.WORKING: "working",
    Run.Status.CANCELING: "working",
    Run.Status.HELD: "failed",
    Run.Status.COMPLETED: "completed",
    Run.Status.COMPLETED_WITH_REJECTS: "completed",
    Run.Status.FAILED: "failed",
    Run.Status.CANCELLED: "failed",
    Run.Status.SKIPPED: "skipped",
}
STEPS = {
    "build": "unloading from the warehouse",
    "changes": "checking configuration",
    "push": "loading into the destination",
    "finish": "committing at the destination",
}


class SyncShape(serializers.ModelSerializer[Sync]):
    label = serializers.CharField(source="name")  # type: ignore[assignment]  # a field leaves the class
    operation = serializers.CharField(source="kind")
    paused = serializers.SerializerMethodField()
    archived = serializers.SerializerMethodField()
    primary_identifier = serializers.ListField(source="key", child=serializers.CharField())
    workspace = serializers.CharField(source="workspace.slug")
    last_run_id = serializers.IntegerField(allow_null=True)
    last_run_status = serializers.CharField(allow_null=True)

    class Meta:
        model = Sync
        fields = (
            "id", "label", "description", "tags", "workspace", "operation", "primary_identifier", "function",
            "destination_type", "destination_object", "schedule", "next_run_at", "paused", "archived", "retention_days",
            "last_run_id", "last_run_status", "created_at",
        )  # fmt: skip

    def get_paused(self, sync: Sync) -> bool:
        return sync.paused_at is not None

    def get_archived(self, sync: Sync) -> bool:
        return sync.archived_at is not None


class RunShape(serializers.ModelSerializer[Run]):
    """Census's run: `status` in its five words, `run_status` in ours; counts are records."""

    status = serializers.ChoiceField(choices=sorted(set(STATUS.values())))
    run_status = serializers.ChoiceField(choices=Run.Status.choices)
    canceled = serializers.BooleanField()
    full_sync = serializers.BooleanField()
    current_step = serializers.CharField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True, help_text="when the first model was built for it")
    updated_at = serializers.DateTimeField()
    completed_at = serializers.DateTimeField(allow_null=True)
    scheduled_execution_time = serializers.DateTimeField(allow_null=True)
    source_record_count = serializers.IntegerField()
    source_record_updates = serializers.IntegerField()
    source_record_deletes = serializers.IntegerField()
    source_record_invalids = serializers.IntegerField()
    records_invalid = serializers.IntegerField()
    records_processed = serializers.IntegerField()
    records_updated = serializers.IntegerField()
    records_failed = serializers.IntegerField()
    error_code = serializers.CharField(allow_null=True)
    error_message = serializers.CharField(allow_null=True)
    error_detail = serializers.CharField(allow_null=True)
    counts = serializers.DictField(child=serializers.IntegerField())
    started_by = serializers.CharField(allow_null=True, help_text="The person, if it was one.")
    started_with = serializers.CharField(help_text="A token, a schedule's text, or the command line's user.")

    class Meta:
        model = Run
        fields = (
            "id", "sync_id", "status", "run_status", "canceled", "full_sync", "dry_run", "trigger", "current_step",
            "created_at", "started_at", "updated_at", "completed_at", "scheduled_execution_time", "source_record_count",
            "source_record_updates", "source_record_deletes", "source_record_invalids", "records_invalid",
            "records_processed", "records_updated", "records_failed", "error_code", "error_message", "error_detail",
            "counts", "tracking", "started_by", "started_with",
        )  # fmt: skip

    def to_representation(self, run: Run) -> dict[str, Any]:
        stopped = run.status in (Run.Status.HELD, Run.Status.CANCELLED, Run.Status.FAILED, Run.Status.SKIPPED)
        active = run.status in Run.ACTIVE
        return {
            "id": run.pk,
            "sync_id": run.sync_id,
            "status": STATUS[Run.Status(run.status)],
            "run_status": run.status,
            "canceled": run.status == Run.Status.CANCELLED,
            "full_sync": run.full,
            "dry_run": run.dry_run,
            "trigger": run.trigger,
            "current_step": STEPS.get(run.step) if active else None,
            "created_at": run.created_at,
            "started_at": run.started_at,
            "updated_at": run.ended_at or run.started_at or run.created_at,
            "completed_at": run.ended_at,
            "scheduled_execution_time": run.created_at if run.trigger == "schedule" else None,
            "source_record_count": run.source_count,
            "source_record_updates": run.changed,
            "source_record_deletes": run.deleted,
            "source_record_invalids": run.invalid,
            "records_invalid": run.invalid,
            "records_processed": run.planned,
            "records_updated": run.succeeded,
            "records_failed": run.rejected + run.retrying + run.not_tried,
            "error_code": run.status if stopped else None,
            "error_message": run.error.splitlines()[0] if run.error else None,
            "error_detail": run.error or None,
            "counts": run.counts,
            "tracking": run.tracking,
            "started_by": run.started_by.get_username() if run.started_by else None,
            "started_with": run.started_with,
        }


class RecordShape(serializers.Serializer[Mapping[str, Any]]):
    """One record; `place` is its address within the run."""

    place = serializers.CharField()
    identifier = serializers.CharField(allow_null=True)
    record_payload = serializers.JSONField()
    previous_payload = serializers.JSONField(help_text="null for a new row")
    operation = serializers.CharField()
    status = serializers.ChoiceField(choices=sorted(SHOWN))
    status_message = serializers.CharField(allow_null=True)
    outcome = serializers.CharField(allow_null=True)
    change_type = serializers.CharField(allow_null=True)
    attempt = serializers.IntegerField(allow_null=True)
    batch_number = serializers.IntegerField(allow_null=True)
    batch_started_at = serializers.DateTimeField(allow_null=True, help_text="null for what was not sent")
    batch_completed_at = serializers.DateTimeField(allow_null=True)
    sync_run_id = serializers.CharField(allow_null=True)


def record(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A row of a record file in the API's shape; payloads keep every digit because they are passed on as they stand."""
    return {
        "place": place,
        "identifier": row["identifier"],
        "record_payload": _json(row["record_payload"]),
        "previous_payload": _json(row["previous_payload"]),
        "operation": row["operation"],
        "status": row["status"],
        "status_message": row["status_message"],
        "outcome": row["outcome"],
        "change_type": row["change_type"],
        "attempt": row["attempt"],
        "batch_number": row["batch_number"],
        "batch_started_at": row["batch_started_at"],
        "batch_completed_at": row["batch_ended_at"],
        "sync_run_id": row["sync_run_id"],
    }


def _json(text: str | None) -> Any:
    return None if text is None else orjson.Fragment(text)


class GroupShape(serializers.ModelSerializer[MessageGroup]):
    first_run_id = serializers.IntegerField(allow_null=True)
    is_new = serializers.SerializerMethodField()

    class Meta:
        model = MessageGroup
        fields = ("id", "status", "pattern", "rows", "first_run_id", "is_new")

    def get_is_new(self, group: MessageGroup) -> bool:
        return group.first_run_id == group.run_id


class LineShape(serializers.ModelSerializer[RunLog]):
    class Meta:
        model = RunLog
        fields = ("at", "level", "text")


class ExportShape(serializers.ModelSerializer[Export]):
    sync_run_id = serializers.IntegerField(source="run_id")
    file = serializers.SerializerMethodField()

    class Meta:
        model = Export
        fields = (
            "id", "sync_run_id", "format", "filter", "status", "wanted", "rows", "size", "error", "file", "created_at",
            "ended_at",
        )  # fmt: skip

    def get_file(self, export: Export) -> str | None:
        return f"/api/v1/exports/{export.pk}/file" if export.status == Export.Status.DONE else None


class ModelShape(serializers.ModelSerializer[ModelState]):
    workspace = serializers.CharField(source="workspace.slug")
    inputs = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = ModelState
        fields = ("id", "name", "workspace", "inputs")


class RetryShape(serializers.Serializer[Mapping[str, Any]]):
    sync_run_id = serializers.IntegerField(allow_null=True)
    preview = serializers.BooleanField()
    record_count = serializers.IntegerField()
    said = serializers.ListField(child=serializers.CharField())


class HistoryShape(serializers.Serializer[Mapping[str, Any]]):
    sync_id = serializers.IntegerField()
    sync_run_id = serializers.IntegerField()
    place = serializers.CharField()
    identifier = serializers.CharField(allow_null=True)
    operation = serializers.CharField()
    status = serializers.CharField()
    status_message = serializers.CharField(allow_null=True)
    batch_completed_at = serializers.DateTimeField()


def history(sync: Sync, row: Mapping[str, Any]) -> dict[str, Any]:
    """One record of the history of a sync."""
    return {
        "sync_id": sync.pk,
        "sync_run_id": int(row["sync_run_id"]),
        "place": row["place"],
        "identifier": row["identifier"],
        "operation": row["operation"],
        "status": row["status"],
        "status_message": row["status_message"],
        "batch_completed_at": row["batch_ended_at"],
    }
