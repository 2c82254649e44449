"""Runs and syncs as pages show them: words, colours, shares and times computed once, so that templates only place
them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.core.paginator import Page, Paginator
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest
from django.utils import timezone

from ondatra_web.access import Person, runs_of, syncs_of
from ondatra_web.models import Chunk, MessageGroup, Run, Sync
from ondatra_web.runs import waiting
from runtime.records.query import SHOWN

STEPS = (("build", "Plan and build"), ("changes", "Find changes"), ("push", "Push"), ("finish", "Finish"))
RECENT = 20
_SETTLED = Q(dry_run=False) & ~Q(status__in=[*Run.ACTIVE, Run.Status.SKIPPED])


class SignedIn(HttpRequest):
    """A request behind login_required."""

    user: AbstractBaseUser  # type: ignore[assignment]


@dataclass(frozen=True)
class Step:
    name: str
    state: str  # done, now, todo, failed
    took: timedelta | None
    note: str = ""
    percent: int = 0


def progress(run: Run) -> int | None:
    """Percent of the records that have an answer, while a run pushes."""
    if run.status not in Run.ACTIVE or not run.planned or run.step not in ("push", "finish"):
        return None
    return min(99, 100 * answered(run) // run.planned)


def answered(run: Run) -> int:
    return run.succeeded + run.rejected + run.retrying


def records_visible(run: Run, retention_days: int | None = None) -> str:
    """`shown`, `expired`, or empty where a run has no records."""
    days = run.sync.retention_days if retention_days is None else retention_days
    if run.rows_expired_at or run.created_at < timezone.now() - timedelta(days=days):
        return "expired" if run.planned or run.invalid else ""
    return "shown" if run.planned or run.invalid else ""


def record_status(record: Mapping[str, Any]) -> str:
    """`Due again` marks a rejected record that the next run sends by itself."""
    if record["status"] == "rejected" and record.get("outcome") == "error":
        return "Due again"
    return SHOWN.get(record["status"], record["status"])


def kept_until(run: Run) -> datetime:
    return run.created_at + timedelta(days=run.sync.retention_days)


def steps(run: Run) -> list[Step]:
    began = {name: at for name, _ in STEPS if (at := _instant(run.step_times.get(name)))}
    if not began and run.status not in Run.ACTIVE:
        return []
    now = timezone.now()
    active = run.status in Run.ACTIVE
    found = []
    for position, (name, label) in enumerate(STEPS):
        start = began.get(name)
        end = next((began[later] for later, _ in STEPS[position + 1 :] if later in began), None)
        if start is None:
            found.append(Step(label, "todo", None))
            continue
        current = end is None and active
        took = (end or (now if active else run.ended_at or now)) - start
        broken = end is None and run.status == Run.Status.FAILED
        note = push_note(run, took) if name == "push" else ""
        found.append(
            Step(
                label,
                "now" if current else "failed" if broken else "done",
                took,
                note,
                progress(run) or 0 if name == "push" else 50,
            )
        )
    return found


def push_note(run: Run, took: timedelta) -> str:
    """Rows per second, time left, and how much of the time went into waiting for the destination."""
    done, seconds = answered(run), took.total_seconds()
    parts = []
    if done and seconds > 0:
        rate = done / seconds
        parts.append(f"{rate:,.1f} rows/s" if rate < 100 else f"{rate:,.0f} rows/s")
        if run.status in Run.ACTIVE and run.planned > done:
            parts.append(f"{duration(timedelta(seconds=(run.planned - done) / rate))} left")
    if run.push_ms and run.http_ms:
        parts.append(f"{min(100, 100 * run.http_ms // run.push_ms)} % waiting for the destination")
    return ", ".join(parts)


def _instant(told: Any) -> datetime | None:
    text = told[0] if isinstance(told, list) and told else told
    return datetime.fromisoformat(text) if isinstance(text, str) and text else None


def duration(took: timedelta | None) -> str:
    """`2 min 41 s`: two units at most."""
    if took is None:
        return ""
    seconds = max(0.0, took.total_seconds())
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    days, hours, minutes = whole // 86_400, whole // 3_600 % 24, whole // 60 % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (whole % 60, "s")]
    first = next(i for i, (n, _) in enumerate(parts) if n)
    return " ".join(f"{n} {unit}" for n, unit in parts[first : first + 2] if n)


def run_took(run: Run) -> timedelta | None:
    if not run.started_at:
        return None
    return (run.ended_at or timezone.now()) - run.started_at


@dataclass(frozen=True)
class Sums:
    """The equations of a run's counts, written out, and whether they hold."""

    closes: bool
    lines: tuple[str, ...]


def sums(run: Run) -> Sums:
    c = run.counts
    lines = (
        f"{c['source']:,} source rows = {c['unchanged']:,} unchanged + {c['invalid']:,} invalid + {c['changed']:,} "
        f"changed",
        f"{c['planned']:,} to send = {c['changed']:,} changed + {c['deleted']:,} deleted + {c['carried']:,} carried "
        f"over",
        f"{c['planned']:,} = {c['succeeded']:,} succeeded + {c['rejected']:,} rejected + {c['retrying']:,} due again "
        f"+ {c['not_tried']:,} not tried",
    )
    closes = (
        c["source"] == c["unchanged"] + c["invalid"] + c["changed"]
        and c["planned"] == c["changed"] + c["deleted"] + c["carried"]
        and c["planned"] == c["succeeded"] + c["rejected"] + c["retrying"] + c["not_tried"]
    )
    return Sums(closes, lines)


@dataclass(frozen=True)
class Bar:
    height: int
    tone: str  # ok, p (partly), f (failed), n (nothing to do)
    title: str


@dataclass(frozen=True)
class Listed:
    """One sync in a list, with what its last runs did."""

    sync: Sync
    last: Run | None
    bars: tuple[Bar, ...]
    due: int
    refused: int  # records that are not at the destination, over all runs

    @property
    def bars_label(self) -> str:
        bad = sum(b.tone == "f" for b in self.bars)
        part = sum(b.tone == "p" for b in self.bars)
        return (
            f"Last {len(self.bars)} runs: {len(self.bars) - bad - part} went through, {part} with rejects, {bad} failed"
        )


def listed(syncs: Sequence[Sync]) -> list[Listed]:
    """Three queries, however many syncs and runs there are."""
    ids = [s.pk for s in syncs]
    number = Window(RowNumber(), partition_by=[F("sync_id")], order_by=F("id").desc())
    recent = (
        Run.objects.filter(sync_id__in=ids, dry_run=False)
        .exclude(status=Run.Status.SKIPPED)
        .defer("metadata", "options")
        .annotate(number=number)
        .filter(number__lte=RECENT)
        .order_by("id")
    )
    runs: defaultdict[int, list[Run]] = defaultdict(list)
    for run in recent:
        runs[run.sync_id].append(run)
    due = dict(Chunk.objects.filter(sync_id__in=ids, due_rows__gt=0).values_list("sync_id").annotate(Sum("due_rows")))
    refused = waiting.refused(syncs)
    return [
        Listed(s, runs[s.pk][-1] if runs[s.pk] else None, _bars(runs[s.pk]), due.get(s.pk, 0), refused.get(s.pk, 0))
        for s in syncs
    ]


def _bars(runs: Iterable[Run]) -> tuple[Bar, ...]:
    settled = [r for r in runs if r.status not in Run.ACTIVE]
    most = max((r.planned for r in settled), default=0) or 1
    tones = {
        Run.Status.FAILED: "f",
        Run.Status.HELD: "p",
        Run.Status.COMPLETED_WITH_REJECTS: "p",
        Run.Status.CANCELLED: "n",
    }
    return tuple(
        Bar(
            4 + round(14 * (r.planned / most) ** 0.5),
            tones.get(Run.Status(r.status), "ok" if r.planned else "n"),
            f"run {r.pk}: {r.get_status_display()}, {r.planned:,} to send",
        )
        for r in settled
    )


def needing(user: Person) -> QuerySet[Run]:
    """The last settled run of each sync, where it failed, is held, or says something that no run said before."""
    last = Run.objects.filter(_SETTLED, sync=OuterRef("pk")).order_by("-id").values("pk")[:1]
    newest = syncs_of(user).filter(archived_at=None).annotate(last=Subquery(last)).values("last")
    new = MessageGroup.objects.filter(run=OuterRef("pk"), first_run=OuterRef("pk")).exclude(status="succeeded")
    return (
        runs_of(user)
        .filter(pk__in=newest)
        .annotate(has_new=Exists(new))
        .filter(
            Q(status__in=[Run.Status.FAILED, Run.Status.HELD])
            | Q(has_new=True, status=Run.Status.COMPLETED_WITH_REJECTS)
        )
        .select_related("sync")
        .order_by("-id")
    )


def failing_since(runs: Sequence[Run]) -> dict[int, datetime]:
    """Sync id -> when the row of failures began that each of these runs ends."""
    good = (
        Run.objects.filter(_SETTLED, sync=OuterRef(OuterRef("sync_id")))
        .exclude(status=Run.Status.FAILED)
        .order_by("-id")
        .values("pk")[:1]
    )
    first = (
        Run.objects.filter(_SETTLED, sync=OuterRef("sync_id"), status=Run.Status.FAILED)
        .exclude(pk__lt=Subquery(good))
        .order_by("id")
    )
    found = Run.objects.filter(pk__in=[r.pk for r in runs if r.status == Run.Status.FAILED]).annotate(
        since=Subquery(first.values("created_at")[:1])
    )
    return dict(found.values_list("sync_id", "since"))


def page_of(rows: QuerySet[Any], number: int, size: int) -> Page[Any]:
    return Paginator(rows, size).get_page(number)
