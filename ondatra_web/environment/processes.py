"""The database, and the processes that it knows of."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Max
from redis import Redis

from ondatra_web import workers
from ondatra_web.environment.findings import BAD, OK, WARNING, Finding
from ondatra_web.models import Worker

#: What each kind of process is for, as a sentence that begins with what does not happen without it.
KINDS = {
    "pipeline": "runs that pages, schedules and the API start wait",
    "push": "nothing is delivered, and no export is written",
    "alerts": "no alert is sent",
    "scheduler": "no schedule is followed, and nothing is taken over from processes that died",
}
#: Of so many processes, newest sign first, it is asked whether they live.
MOST = 100


def database() -> Finding:
    executor = MigrationExecutor(connection)
    missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))

    said = f"{connection.display_name} answers"
    if missing:
        todo = f"bring its tables up to date: {settings.ONDATRA.command('migrate')}"
        return Finding("Database", BAD, f"{said}, but its tables are {missing} steps behind", todo, _place())
    return Finding("Database", OK, f"{said}, and its tables are up to date", detail=_place())


def _place() -> str:
    told = connection.settings_dict
    return f"{told['HOST']}/{told['NAME']}" if told.get("HOST") else str(told["NAME"])


def processes() -> list[Finding]:
    """Each kind of process: how many live, and their last sign. One that takes the messages of several counts in
    each."""
    alive: dict[str, list[Worker]] = {kind: [] for kind in KINDS}
    for worker in Worker.objects.filter(ended_at=None).exclude(kind="run").order_by("-heartbeat_at")[:MOST]:
        if not workers.is_dead(worker):
            for kind in KINDS.keys() & worker.kind.split():
                alive[kind].append(worker)
    last: dict[str, datetime] = {}
    for kinds, at in Worker.objects.order_by().values_list("kind").annotate(Max("heartbeat_at")):
        for kind in kinds.split():
            last[kind] = max(at, last.get(kind, at))
    return [_of_kind(kind, alive[kind], last.get(kind)) for kind in KINDS]


def _of_kind(kind: str, alive: list[Worker], last: datetime | None) -> Finding:
    part = kind.capitalize() if kind == "scheduler" else f"{kind.capitalize().removesuffix('s')} workers"
    if not alive:
        todo = f"start it: {settings.ONDATRA.command('up')} starts all of them; until then {KINDS[kind]}"
        return Finding(part, BAD, "none lives" if last else "none lives, and none did before", todo, seen=last)

    newest = max(worker.heartbeat_at for worker in alive)
    said = f"{len(alive)} {'lives' if len(alive) == 1 else 'live'}"
    return Finding(part, OK, said, detail=", ".join(f"{w.host}/{w.pid}" for w in alive), seen=newest)


def redis() -> Finding:
    """The queue. Without it only commands run anything."""
    url = settings.ONDATRA.redis_url
    if not url:
        todo = f"name one by REDIS_URL, or let {settings.ONDATRA.command('up')} start one"
        return Finding("Redis", WARNING, "none is named: what pages start waits until a command runs it", todo)
    with Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1) as server:
        told = server.info("server")
    return Finding("Redis", OK, f"version {told['redis_version']} answers")
