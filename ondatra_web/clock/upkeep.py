"""The lake's upkeep for a workspace: each table that no run is at work on, with the marks that its sync still needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from ondatra_web.models import ModelState, Run, Sync, Workspace
from ondatra_web.runs.lake_tables import place_of
from runtime.lake import upkeep
from runtime.lake.commits import commit_of
from runtime.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("ondatra.upkeep")
BUSY = (Run.Status.WORKING, Run.Status.CANCELING)


def keep_lake(
    workspace: Workspace, session: Callable[[], SparkSession], begins: Callable[[str], None] = lambda name: None
) -> Iterator[tuple[str, upkeep.Kept]]:
    """Looks after every table that was built; each model with what was found. A table that fails is logged, and the
    next one follows."""
    for state in ModelState.objects.filter(workspace=workspace).exclude(table_version=None).order_by("name"):
        begins(state.name)
        try:
            kept = _keep(workspace, state.name, session)
        except Exception as error:  # another writer, a store that is down: the next round comes
            log.warning("the table of %s was left as it is: %s", state.name, str(error).split("\n")[0])
            continue
        if kept is not None:
            log.info("the table of %s was looked after: version %s, was %s", state.name, kept.after, kept.before)
            yield state.name, kept


def _keep(workspace: Workspace, name: str, session: Callable[[], SparkSession]) -> upkeep.Kept | None:
    # asked again for each: the tables before took their time
    if Run.objects.filter(sync__workspace=workspace, status__in=BUSY).exists():
        log.info("the table of %s waits: a run is working", name)
        return None
    spark, table = session(), LakeTable(f"{settings.ONDATRA.lake_url}/{workspace.pk}/{place_of(workspace.pk, name)}")
    if not table.exists(spark):
        return None
    state = ModelState.objects.get(workspace=workspace, name=name)
    sync = Sync.objects.filter(workspace=workspace, name=name).first()
    read = [state.table_version, *([sync.mark] if sync else [])]  # by other models, and by the sync
    kept = upkeep.keep(spark, table, None if None in read else min(v for v in read if v is not None))
    if kept.after != kept.before:
        commit = commit_of(table, kept.after, lambda: spark)
        told = commit.id if commit else ""
        with transaction.atomic():  # the same rows: nothing is built or sent anew because of it
            ModelState.objects.filter(workspace=workspace, name=name, table_version=kept.before).update(
                table_version=kept.after, table_commit=told
            )
            Sync.objects.filter(workspace=workspace, name=name, mark=kept.before).update(
                mark=kept.after, mark_commit=told
            )
    return kept
