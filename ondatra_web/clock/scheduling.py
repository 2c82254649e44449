"""What happens by the clock. Everything here may be done twice without harm: leases and conditional updates decide."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db.models import Min, Q
from django.utils import timezone

from ondatra_web import actions, people, queue, workers
from ondatra_web.clock import calling, folders, staged
from ondatra_web.clock.throttle import Throttle
from ondatra_web.models import Delivery, Organization, Run, Sync, Worker, Workspace
from ondatra_web.runs import claims, pending
from ondatra_web.tracking import exporting, facts, history, retention, sync_log
from runtime.errors import OndatraError
from runtime.project import schedules

log = logging.getLogger("ondatra.scheduler")
EVERY_SECONDS = 5.0
#: A time that came so lately (seconds) may have come during the round; an older one could not be begun.
LATELY, SOONEST = 1.0, 0.1
# Times that pass within this process are monotonic seconds: a clock that is set must not stop the scheduler for an
# hour.
FACTS_EVERY = 6 * 3600.0
#: A store that is down is asked again after so many seconds.
FILES_AGAIN = 30.0
#: A message older than this (seconds) without a claim is taken for lost, and sent again no more often.
LOST_MESSAGE = 20.0
#: Records that are not in the index of histories yet were written within so many seconds.
INDEX_EVERY = 300.0
facts_written, files_asked, messages_sent = Throttle(FACTS_EVERY), Throttle(FILES_AGAIN), Throttle(LOST_MESSAGE)
records_indexed = Throttle(INDEX_EVERY)


def leads(me: Worker) -> bool:
    """Whether this scheduler is the oldest living one; the others wait."""
    older = Worker.objects.filter(kind="scheduler", ended_at=None, pk__lt=me.pk)
    return all(workers.is_dead(w) for w in older)


def round() -> None:
    """One look at everything."""
    folders.read()
    start_scheduled()
    resume_dead()
    calling.round()
    exporting.resume()
    exporting.remove_old()
    write_waiting_files()
    retention.expire()
    start_upkeep()
    if facts_written.passes("facts"):
        staged.remove_old()
        people.forget_old()
        write_facts()
        write_sync_log()
    if records_indexed.passes("records"):
        index_new_records()


def pause() -> float:
    """Seconds until the next look: a sync whose time comes meanwhile begins at its time."""
    now = timezone.now()
    due = Sync.objects.filter(_scheduled(), next_run_at__gt=now - timedelta(seconds=LATELY))
    following = due.aggregate(soonest=Min("next_run_at"))["soonest"]
    return min(max((following - now).total_seconds(), SOONEST), EVERY_SECONDS) if following else EVERY_SECONDS


def write_facts() -> None:
    """The fact tables of every organization, and all of the index that answers what happened over runs."""
    for organization in Organization.objects.all():
        try:
            facts.write_fact_tables(organization)
        except OndatraError as error:
            log.warning("the fact tables of organization %s wait: %s", organization.pk, error)
        _index(organization, history.refresh)


def index_new_records() -> None:
    """What was written since stands in the index soon, so that a search opens few record files."""
    for organization in Organization.objects.all():
        _index(organization, history.add_new)


def _index(organization: Organization, how: Callable[[Organization], int]) -> None:
    try:
        how(organization)
    except OndatraError as error:
        log.warning("histories of organization %s are answered without their index: %s", organization.pk, error)


def write_sync_log() -> None:
    """Wakes the pipeline worker for each organization with records that its table `sync_log` lacks."""
    for organization in Organization.objects.all() if settings.ONDATRA.keeps_sync_log else ():
        if sync_log.waiting(organization):
            queue.send("sync_log", organization.pk, queue="pipeline")


def _scheduled() -> Q:
    return ~Q(schedule="") & Q(archived_at=None, paused_at=None)


def start_scheduled() -> None:
    """Queues the syncs whose time has come; missed times are made up for once."""
    now = timezone.now()
    for sync in Sync.objects.filter(_scheduled()):
        try:
            following = schedules.next_time(sync.schedule, now)
        except OndatraError as error:
            log.warning("%s: %s", sync.name, error)
            continue
        if sync.next_run_at is None or sync.next_run_at > following:  # new, or the clock or the schedule was set
            Sync.objects.filter(pk=sync.pk, next_run_at=sync.next_run_at).update(next_run_at=following)
            continue
        due = sync.next_run_at <= now and Sync.objects.filter(pk=sync.pk, next_run_at=sync.next_run_at).update(
            next_run_at=following
        )
        if due:
            _start(sync)


def _start(sync: Sync) -> None:
    """A time that comes while a run works is skipped, which the history shows: once for each run that works."""
    working = Run.objects.filter(sync=sync, status__in=Run.ACTIVE).order_by("-pk").first()
    if working is None:
        actions.start_run(sync, trigger="schedule", by=sync.schedule)
    elif not Run.objects.filter(sync=sync, status=Run.Status.SKIPPED, trigger="schedule", pk__gt=working.pk).exists():
        actions.skip_run(sync, working)


def start_upkeep() -> None:
    """Wakes a worker for each workspace whose lake is to be looked after; a message that is lost costs one round."""
    now = timezone.now()
    told = settings.ONDATRA.upkeep
    if told == "off":
        return
    following = schedules.next_time(told, now)  # a wrong one was refused at the start
    Workspace.objects.filter(Q(upkeep_at=None) | Q(upkeep_at__gt=following)).update(
        upkeep_at=following
    )  # new, or the clock or the setting was set
    for workspace in Workspace.objects.filter(upkeep_at__lte=now):
        if Workspace.objects.filter(pk=workspace.pk, upkeep_at=workspace.upkeep_at).update(upkeep_at=following):
            queue.send("upkeep", workspace.pk, queue="pipeline")


def resume_dead() -> None:
    """Runs that nobody works on: their workers died, or their message was lost."""
    for run in Run.objects.filter(status__in=Run.ACTIVE).select_related("sync", "owner"):
        if run.status == Run.Status.QUEUED:
            if not 0 <= (timezone.now() - run.created_at).total_seconds() <= LOST_MESSAGE:
                _send_again("pipeline", run.pk)
        elif run.owner is not None and not workers.is_dead(run.owner):
            continue
        elif not run.staged:  # whoever takes it says who was lost
            _send_again("pipeline", run.pk)
        elif run.owner is not None or not _worked_on(run):
            Run.objects.filter(pk=run.pk, owner=run.owner).update(owner=None)
            _send_again("push", run.pk, 1)


def _worked_on(run: Run) -> bool:
    """Whether somebody delivers it and nobody who did has died. That other workers live says nothing: no message may be
    left for them."""
    claimed = claims.open_deliveries(run).exclude(status=Delivery.Status.WAITING).select_related("owner")
    owners = [d.owner for d in claimed]
    return bool(owners) and not any(map(workers.is_dead, owners))


def _send_again(actor: str, run_id: int, *args: int) -> None:
    """A message for workers that may all be busy: not with every round."""
    if messages_sent.passes((actor, run_id)):
        queue.send(actor, run_id, *args)


def write_waiting_files() -> None:
    """Record files of runs that ended while their store was down."""
    for workspace in Workspace.objects.filter(pk__in=Run.objects.filter(tracking="pending").values("sync__workspace")):
        if not files_asked.passes(workspace.pk):
            continue
        try:
            pending.write(workspace)
        except OndatraError as error:
            log.warning("record files of workspace %s still wait: %s", workspace.slug, error)
