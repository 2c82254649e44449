"""The tables. One row per organization, sync, run, chunk or file; never one per record."""
from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone


def new_external_id() -> str:
    return f"ondatra-{uuid.uuid4().hex}"


class Organization(models.Model):
    """The tenant; its id is [ORG_ID] in the store's folders."""

    name = models.CharField(max_length=200)
    external_id = models.CharField(max_length=40, default=new_external_id, editable=False)     # what the trust policy of its bucket's role asks for
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """Who sees an organization, and what they may do there."""

    class Role(models.TextChoices):
        OWNER = "owner"
        MEMBER = "member"
        VIEWER = "viewer"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    organization = models.ForeignKey(Organization, models.CASCADE)
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "organization"], name="one_membership")]

    def __str__(self) -> str:
        return f"{self.user} in {self.organization}"


class Bucket(models.Model):
    """A bucket of an organization's own for the records of its runs, with the credentials that reach it. Runs name the one that they were written to."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    bucket = models.CharField(max_length=255)
    prefix = models.CharField(max_length=500, blank=True)
    region = models.CharField(max_length=50)
    endpoint = models.CharField(max_length=500, blank=True)         # empty: AWS
    role_arn = models.CharField(max_length=300, blank=True)
    access_key = models.CharField(max_length=200, blank=True)
    secret = models.TextField(blank=True, editable=False)           # the secret key, encrypted
    in_use = models.BooleanField(default=False)                     # new runs are written there
    retention_days = models.IntegerField(null=True, blank=True)     # null: nothing is ever removed
    saved_at = models.DateTimeField(default=timezone.now)
    checked_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True)                          # what the last check found

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "bucket"], name="one_owner_a_bucket"),
                       models.UniqueConstraint(fields=["organization"], condition=Q(in_use=True), name="one_bucket_in_use")]

    def __str__(self) -> str:
        return self.url

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


class Workspace(models.Model):
    """One project folder, its secrets and its part of the lake."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    slug = models.SlugField(unique=True)
    project_dir = models.CharField(max_length=1000)
    env_file = models.CharField(max_length=1000, blank=True)
    allow_paths = models.JSONField(default=list, blank=True)
    mask_key = models.CharField(max_length=64, editable=False)      # hex; key of @mask …:hash
    upkeep_at = models.DateTimeField(null=True, blank=True)         # when its lake is looked after next
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.slug


class Worker(models.Model):
    """A process. It holds an OS lock on `lock` for life: a free lock proves that it is dead."""

    kind = models.CharField(max_length=20)                          # run, pipeline, push, scheduler
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    lock = models.CharField(max_length=1000, blank=True)            # a file's path, or empty for a PostgreSQL advisory lock on the id
    started_at = models.DateTimeField(default=timezone.now)
    heartbeat_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.host}/{self.pid}"


class ModelState(models.Model):
    """What is remembered of a SQL model's table since it was last built."""

    workspace = models.ForeignKey(Workspace, models.CASCADE)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    key = models.JSONField(default=list)
    columns = models.JSONField(default=list)                        # [[name, duckdb type, spark type], …]
    table_version = models.BigIntegerField(null=True)               # Delta version that holds the result
    fingerprint = models.CharField(max_length=64, blank=True)       # of everything the result depends on; empty = always build
    rows = models.BigIntegerField(default=0)
    last_action = models.CharField(max_length=10, blank=True)       # built, unchanged, skipped, failed
    last_error = models.TextField(blank=True)
    last_run_at = models.DateTimeField(null=True)
    file = models.CharField(max_length=500, blank=True)             # relative to the project folder
    sql_as_written = models.TextField(blank=True)
    sql_as_run = models.TextField(blank=True)
    inputs = models.JSONField(default=list)                         # names of the models it reads
    gone_at = models.DateTimeField(null=True, blank=True)           # its file is no longer there
    place = models.CharField(max_length=250, blank=True)            # its table's folder; empty: not built yet, or as its name says

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_state_a_model")]

    def __str__(self) -> str:
        return self.name


class Destination(models.Model):
    """Where syncs of a workspace send to; its id joins `destination_id` of metadata.json and the fact tables."""

    workspace = models.ForeignKey(Workspace, models.CASCADE)
    type = models.CharField(max_length=200)                         # HubSpot

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "type"], name="one_destination_a_type")]

    def __str__(self) -> str:
        return self.type


class DestinationObject(models.Model):
    """What is kept there: `destination_object_id`."""

    destination = models.ForeignKey(Destination, models.CASCADE)
    name = models.CharField(max_length=200)                         # Contact

    class Meta:
        constraints = [models.UniqueConstraint(fields=["destination", "name"], name="one_destination_object_a_name")]

    def __str__(self) -> str:
        return f"{self.destination} / {self.name}"


class Sync(models.Model):
    """A SQL model that has a sink; its id is [SYNC_ID]."""

    workspace = models.ForeignKey(Workspace, models.CASCADE)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    key = models.JSONField(default=list)
    function = models.CharField(max_length=200)
    sink_args = models.JSONField(default=list)
    destination_type = models.CharField(max_length=200, blank=True)
    destination_object = models.CharField(max_length=200, blank=True)
    destination = models.ForeignKey(DestinationObject, models.SET_NULL, null=True, blank=True)
    description = models.TextField(blank=True)
    tags = models.JSONField(default=list, blank=True)
    schedule = models.CharField(max_length=100, blank=True)
    next_run_at = models.DateTimeField(null=True, blank=True, db_index=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    retention_days = models.IntegerField(default=14)
    columns = models.JSONField(default=list)                        # of the newest chunk: [[name, duckdb type, spark type], …]
    mark = models.BigIntegerField(null=True)                        # table version up to which changes became chunks
    source_rows = models.BigIntegerField(default=0)                 # of the last build; what `source` counts while nothing changed
    invalid_rows = models.BigIntegerField(default=0)
    invalid_digest = models.CharField(max_length=64, blank=True)
    invalid_run = models.ForeignKey("Run", models.SET_NULL, null=True, related_name="+")
    finalize_due = models.BooleanField(default=False)               # everything was delivered but finalize() has not ended well
    finalize_counts = models.JSONField(default=list)                # [succeeded, failed] that it is due for
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_sync_a_model")]

    def __str__(self) -> str:
        return self.name


COUNTS = ("source", "unchanged", "invalid", "changed", "deleted", "carried",
          "planned", "succeeded", "warned", "rejected", "retrying", "not_tried")


class Run(models.Model):
    """One execution of one sync; its id is [SYNC_RUN_ID]."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        WORKING = "working"
        HELD = "held"
        CANCELING = "canceling"
        COMPLETED = "completed"
        COMPLETED_WITH_REJECTS = "completed_with_rejects"
        FAILED = "failed"
        CANCELLED = "cancelled"
        SKIPPED = "skipped"

    ACTIVE = (Status.QUEUED, Status.WORKING, Status.CANCELING)

    sync = models.ForeignKey(Sync, models.CASCADE)
    status = models.CharField(max_length=30, choices=Status.choices, default=Status.QUEUED)
    trigger = models.CharField(max_length=20, default="command")    # command, page, schedule, api, retry, confirm
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    cancelled_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    step = models.CharField(max_length=10, blank=True)              # build, changes, push, finish
    step_times = models.JSONField(default=dict)                     # step -> [start, end] as ISO texts
    options = models.JSONField(default=dict)                        # full, baseline, dry_run, limit, rebuild, retry_of, …
    dry_run = models.BooleanField(default=False)
    full = models.BooleanField(default=False)
    staged = models.BooleanField(default=False)                     # the mark moved: its chunks stand in Delivery
    owner = models.ForeignKey(Worker, models.SET_NULL, null=True, blank=True, related_name="+")
    lease = models.IntegerField(default=0)                          # grows at each take-over; writes under an old one fail
    failed_in_row = models.IntegerField(default=0)
    finalized = models.BooleanField(default=False)
    tracking = models.CharField(max_length=10, blank=True)          # written, pending; empty while the run goes on
    store_url = models.CharField(max_length=1000, blank=True)
    bucket = models.ForeignKey(Bucket, models.RESTRICT, null=True, blank=True)      # null: the install's own store
    metadata = models.JSONField(default=dict)                       # what metadata.json holds
    table_version = models.BigIntegerField(null=True)
    source_version = models.CharField(max_length=200, blank=True)
    source_count = models.BigIntegerField(default=0)
    unchanged = models.BigIntegerField(default=0)
    invalid = models.BigIntegerField(default=0)
    changed = models.BigIntegerField(default=0)
    deleted = models.BigIntegerField(default=0)
    carried = models.BigIntegerField(default=0)
    planned = models.BigIntegerField(default=0)
    succeeded = models.BigIntegerField(default=0)
    warned = models.BigIntegerField(default=0)
    rejected = models.BigIntegerField(default=0)
    retrying = models.BigIntegerField(default=0)
    not_tried = models.BigIntegerField(default=0)
    companions_due = models.BigIntegerField(default=0)              # old images that ended in error: not counted, but the run is not complete
    push_ms = models.BigIntegerField(default=0)                     # time spent in push(), summed over calls
    http_ms = models.BigIntegerField(default=0)                     # of it waiting for the destination
    rows_expired_at = models.DateTimeField(null=True, blank=True)   # the retention removed its records

    class Meta:
        indexes = [models.Index(fields=["sync", "-id"]), models.Index(fields=["status"])]
        constraints = [
            # One run of a sync works at a time, whatever starts it.
            models.UniqueConstraint(fields=["sync"], condition=Q(status__in=["working", "canceling"]), name="one_working_run"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} of {self.sync}"

    @property
    def counts(self) -> dict[str, int]:
        return {name: getattr(self, "source_count" if name == "source" else name) for name in COUNTS}


#: Chunks of which something waits. Databases use the index of that condition only for questions that ask just so.
UNDELIVERED = Q(due_rows__gt=0) | Q(rejected_rows__gt=0) | Q(blocked_rows__gt=0)


class Chunk(models.Model):
    """An immutable staged file of changes, and what is still undelivered of it.

    `states` is zlib over one byte a row of the file, in its order; see `runtime.states`.
    """

    sync = models.ForeignKey(Sync, models.CASCADE)
    staged_by = models.ForeignKey(Run, models.SET_NULL, null=True)
    url = models.CharField(max_length=1000)
    rows = models.IntegerField()
    records = models.IntegerField()
    phase = models.SmallIntegerField(default=1)                     # 0: deletes that come before everything else
    change_counts = models.JSONField(default=dict)                  # change type -> rows
    columns = models.JSONField(default=list)
    table_version = models.BigIntegerField(null=True)
    states = models.BinaryField()
    runs_failed = models.BinaryField(null=True)                     # like states: runs in which the row ended in error, at most 255
    due_rows = models.IntegerField(default=0)                       # untried, refused or unknown
    blocked_rows = models.IntegerField(default=0)
    rejected_rows = models.IntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["sync", "id"], condition=UNDELIVERED, name="chunk_undelivered")]

    def __str__(self) -> str:
        return f"chunk {self.pk}"


class Delivery(models.Model):
    """What one run delivers of one chunk."""

    class Status(models.TextChoices):
        WAITING = "waiting"
        CLAIMED = "claimed"
        SEALED = "sealed"                                           # answers frozen, files not yet durable
        CLOSED = "closed"

    run = models.ForeignKey(Run, models.CASCADE)
    chunk = models.ForeignKey(Chunk, models.CASCADE)
    ordinal = models.IntegerField()                                 # order of sending within the run
    phase = models.SmallIntegerField(default=1)
    carried = models.BooleanField(default=False)
    positions = models.BinaryField(null=True)                       # zlib over a bit mask of the chunk's rows; null = all
    rows = models.IntegerField()
    records = models.IntegerField()
    first_call = models.IntegerField(default=1)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.WAITING)
    owner = models.ForeignKey(Worker, models.SET_NULL, null=True, related_name="+")
    lease = models.IntegerField(default=0)
    counts = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, blank=True)            # of the sealed answers
    files = models.JSONField(default=dict)                          # batch type -> number, reserved at the seal
    sealed = models.JSONField(default=dict)                         # what the record files follow: record_rows.rules_of

    class Meta:
        indexes = [models.Index(fields=["run", "status", "ordinal"])]
        constraints = [models.UniqueConstraint(fields=["run", "chunk"], name="one_delivery_a_run_and_chunk")]

    def __str__(self) -> str:
        return f"delivery {self.pk}"


class Answer(models.Model):
    """The answers of some push calls, kept until the record file is durable."""

    delivery = models.ForeignKey(Delivery, models.CASCADE)
    blob = models.BinaryField()                                     # see `runtime.answers`
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"answers {self.pk}"


class Job(models.Model):
    """An asynchronous job at the destination."""

    sync = models.ForeignKey(Sync, models.CASCADE)
    run = models.ForeignKey(Run, models.CASCADE)
    delivery = models.ForeignKey(Delivery, models.SET_NULL, null=True)
    chunk = models.ForeignKey(Chunk, models.CASCADE)
    positions = models.BinaryField()
    batch_number = models.IntegerField()
    ref = models.TextField()                                        # JSON, as push() answered it
    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"job {self.pk}"


class RecordFile(models.Model):
    """One file of records in the store; named here so that no query lists a bucket."""

    run = models.ForeignKey(Run, models.CASCADE)
    delivery = models.ForeignKey(Delivery, models.SET_NULL, null=True)
    batch_type = models.CharField(max_length=20)                    # records_updated, records_deleted, records_invalid
    number = models.IntegerField()
    url = models.CharField(max_length=1000)
    rows = models.IntegerField()
    size = models.BigIntegerField(default=0)
    counts = models.JSONField(default=dict)                         # status -> rows
    operations = models.JSONField(default=dict)                     # "status|operation|change_type" -> rows
    min_identifier = models.TextField(null=True)
    max_identifier = models.TextField(null=True)
    written_at = models.DateTimeField(default=timezone.now)
    log_batch = models.IntegerField(null=True, db_index=True)       # the commit of sync_log that it is in, or will be

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "batch_type", "number"], name="one_record_file")]

    def __str__(self) -> str:
        return f"{self.batch_type}.{self.number}"


class SyncLog(models.Model):
    """How far the table `sync_log` of an organization has got."""

    organization = models.OneToOneField(Organization, models.CASCADE)
    begun = models.IntegerField(default=0)                          # the last batch of record files that was given a number
    done = models.IntegerField(default=0)                           # the last one that was committed
    owner = models.ForeignKey(Worker, models.SET_NULL, null=True, related_name="+")

    def __str__(self) -> str:
        return f"sync log of {self.organization}"


class MessageGroup(models.Model):
    """Records of a run that say the same but for numbers, ids, quoted text and addresses."""

    run = models.ForeignKey(Run, models.CASCADE)
    status = models.CharField(max_length=10)                        # as in the files
    pattern = models.CharField(max_length=500)
    sample_message = models.TextField()
    sample_identifier = models.TextField(null=True)
    rows = models.BigIntegerField()
    first_run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "status", "pattern"], name="one_group")]

    def __str__(self) -> str:
        return self.pattern


class ApiCallFile(models.Model):
    """One file of requests and answers in the store."""

    run = models.ForeignKey(Run, models.CASCADE)
    delivery = models.ForeignKey(Delivery, models.SET_NULL, null=True)
    url = models.CharField(max_length=1000)
    calls = models.IntegerField()

    def __str__(self) -> str:
        return self.url


class Export(models.Model):
    """Records of a run on their way into one file to fetch."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        WORKING = "working"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"
        REMOVED = "removed"                                         # its time is over

    OPEN = (Status.QUEUED, Status.WORKING)

    run = models.ForeignKey(Run, models.CASCADE)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    format = models.CharField(max_length=10)
    filter = models.JSONField(default=dict)                         # of runtime.records.Filter, what is not None
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    wanted = models.BigIntegerField(null=True)                      # rows that match
    rows = models.BigIntegerField(default=0)                        # written so far
    size = models.BigIntegerField(default=0)
    error = models.TextField(blank=True)                            # why it failed, or which files are missing from a file that is done
    owner = models.ForeignKey(Worker, models.SET_NULL, null=True, related_name="+")
    lease = models.IntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"export {self.pk}"

    @property
    def percent(self) -> int:
        return min(99, 100 * self.rows // self.wanted) if self.wanted else 0


class RunLog(models.Model):
    """Lines that a run said: print() of push functions, warnings."""

    run = models.ForeignKey(Run, models.CASCADE)
    at = models.DateTimeField(default=timezone.now)
    level = models.CharField(max_length=10, default="info")
    text = models.TextField()

    def __str__(self) -> str:
        return self.text


class AuditLog(models.Model):
    """What people did."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    action = models.CharField(max_length=50)
    target = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.action} {self.target}"


class ApiToken(models.Model):
    """A bearer token of the HTTP API; only its SHA-256 is kept."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class RateLimitHit(models.Model):
    """One HTTP request counted against a rate limit, where there is no Redis."""

    key = models.CharField(max_length=200)
    at = models.FloatField()                                        # Unix seconds

    class Meta:
        indexes = [models.Index(fields=["key", "at"])]

    def __str__(self) -> str:
        return self.key

