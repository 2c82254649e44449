"""One look at the whole install."""

from __future__ import annotations

from django.conf import settings
from django.db import DatabaseError

from ondatra_web.environment import machine, processes
from ondatra_web.environment.findings import BAD, Ask, Finding, side_by_side
from ondatra_web.tracking import stores
from runtime.errors import OndatraError

#: So long a part may take before it counts as silent.
SECONDS = 2.0


def look(organization_id: int | None = None) -> list[Finding]:
    """Every part in the order of its need; the store is that of the organization, without one the install's own. Takes
    SECONDS at most beside the database's own answers."""
    try:
        first = [processes.database(), *processes.processes()]
    except DatabaseError as error:
        todo = "start it, or name another one by DATABASE_URL"
        first = [Finding("Database", BAD, "does not answer", todo, str(error))]

    asked: dict[str, tuple[Ask, str]] = {
        "Redis": (processes.redis, "start it, or name another one by REDIS_URL"),
        "Spark": (machine.spark, f"{settings.ONDATRA.command('check')} says what is wrong with its settings"),
        "Store": (
            _store(organization_id),
            "its records wait meanwhile and none is lost; the page Store checks a bucket again",
        ),
        "Disk": (machine.disk, "look whether the data folder’s disk is there"),
        "Versions": (machine.versions, "install what requirements.lock names"),
    }
    redis, *others = side_by_side(asked, SECONDS)
    return [first[0], redis, *first[1:], *others]


def _store(organization_id: int | None) -> Ask:
    """Where it lies is asked here, so that no other thread asks the database."""
    try:
        opened = stores.of_organization(organization_id) if organization_id else stores.at("", None)
    except (OndatraError, DatabaseError) as error:
        return _failing(error)
    return lambda: machine.store(opened)


def _failing(error: Exception) -> Ask:
    def ask() -> Finding:
        raise error

    return ask
