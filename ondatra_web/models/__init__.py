"""The tables. One row per organization, sync, run, chunk or file; never one per record."""

from __future__ import annotations

from ondatra_web.models.alerts import (
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertEvent,
    AlertKind,
    AlertLevel,
    AlertRule,
    SyncUsual,
)
from ondatra_web.models.buckets import Bucket
from ondatra_web.models.columns import ShownColumns
from ondatra_web.models.filters import SavedFilter
from ondatra_web.models.organizations import (
    ApiToken,
    AuditLog,
    Invitation,
    Membership,
    Organization,
    Role,
    WorkspaceRole,
    new_external_id,
)
from ondatra_web.models.outbox import UNDELIVERED, Answer, Chunk, Delivery, Job
from ondatra_web.models.processes import RateLimitHit, Worker
from ondatra_web.models.records import ApiCallFile, Export, MessageGroup, RecordFile, SyncLog
from ondatra_web.models.runs import COUNTS, Run, RunLog
from ondatra_web.models.syncs import Destination, DestinationObject, Sync
from ondatra_web.models.workspaces import ModelState, Workspace

__all__ = [
    "COUNTS",
    "UNDELIVERED",
    "Alert",
    "AlertChannel",
    "AlertDelivery",
    "AlertEvent",
    "AlertKind",
    "AlertLevel",
    "AlertRule",
    "Answer",
    "ApiCallFile",
    "ApiToken",
    "AuditLog",
    "Bucket",
    "Chunk",
    "Delivery",
    "Destination",
    "DestinationObject",
    "Export",
    "Invitation",
    "Job",
    "Membership",
    "MessageGroup",
    "ModelState",
    "Organization",
    "RateLimitHit",
    "RecordFile",
    "Role",
    "Run",
    "RunLog",
    "SavedFilter",
    "ShownColumns",
    "Sync",
    "SyncLog",
    "SyncUsual",
    "Worker",
    "Workspace",
    "WorkspaceRole",
    "new_external_id",
]
