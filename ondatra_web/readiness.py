"""What a worker's first message would wait for is begun when the worker begins: the engine of a pipeline worker, the
process beside a push worker. That it lives is known from then on as well, and it looks often whether there is one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial

import dramatiq
from django.db import connection

from ondatra_web import workers
from ondatra_web.runs.handover import Listening
from runtime.lake import spark
from runtime.push import sandbox

log = logging.getLogger("ondatra.workers")
#: The kinds of workers, each with a queue of its name.
QUEUES = ("pipeline", "push", "alerts")
#: Milliseconds between two looks at an idle queue, at most; Dramatiq's own second would be waited for twice in a run.
LOOK_EVERY = 100


class Readiness(dramatiq.Middleware):
    """Of worker processes, by the queues that they take messages from; without a choice that is all of them."""

    def __init__(self) -> None:
        self.listening = Listening()

    def before_worker_boot(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        worker.worker_timeout = LOOK_EVERY

    def after_worker_boot(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        queues = worker.consumer_whitelist or QUEUES
        kind = " ".join(queue for queue in QUEUES if queue in queues)
        threading.Thread(target=_begun, args=("sign", partial(_sign, kind)), name="sign", daemon=True).start()
        for queue, begin in (("pipeline", self._engine), ("push", sandbox.sandbox)):
            if queue in queues:
                threading.Thread(
                    target=_begun, args=(begin.__name__.strip("_"), begin), name="readiness", daemon=True
                ).start()

    def before_worker_shutdown(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        self.listening.end()

    def _engine(self) -> None:
        spark.isolated().range(1).count()
        log.info("Spark is ready")
        self.listening.begin()


def _sign(kind: str) -> None:
    """The first sign of life, which people look for before there is work."""
    workers.me(kind)
    connection.close()


def _begun(name: str, begin: Callable[[], object]) -> None:
    try:
        begin()
    except Exception as error:  # the first message tries it again, and says what is wrong where a person looks
        log.warning("%s did not begin: %s", name, error)
