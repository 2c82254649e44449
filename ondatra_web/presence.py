"""A worker process is known from its first moment, so that a run is shared by all that live; and it takes no more
messages than it has threads, so that none waits behind a busy one while another process has nothing to do."""

from __future__ import annotations

import logging
import threading
import time

import dramatiq
from django.db import connection

from ondatra_web import workers

log = logging.getLogger("ondatra.workers")
AGAIN_SECONDS = 3.0
KINDS = ("pipeline", "push", "alerts")


class Presence(dramatiq.Middleware):
    """Of worker processes, by the first of their queues that says what they are."""

    def before_worker_boot(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        worker.queue_prefetch = worker.worker_threads

    def after_worker_boot(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        queues = worker.consumer_whitelist or set(KINDS)
        kind = next((k for k in ("push", *KINDS) if k in queues), "run")
        threading.Thread(target=_known, args=(kind,), name="presence", daemon=True).start()


def _known(kind: str) -> None:
    """Again and again until the database is there and has its tables."""
    while True:
        try:
            workers.me(kind)
            connection.close()
            return
        except Exception as error:
            log.warning("this worker is not known yet: %s", str(error).split("\n")[0])
            connection.close()
            time.sleep(AGAIN_SECONDS)
