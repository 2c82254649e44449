"""What a worker's first message would wait for is begun when the worker begins: the engine of a pipeline worker, the
process beside a push worker."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import dramatiq

from runtime.lake import spark
from runtime.push import sandbox

log = logging.getLogger("ondatra.workers")


class Readiness(dramatiq.Middleware):
    """Of worker processes, by the queues that they take messages from; without a choice that is all of them."""

    def after_worker_boot(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        queues = worker.consumer_whitelist or {"pipeline", "push"}
        for queue, begin in (("pipeline", _engine), ("push", sandbox.sandbox)):
            if queue in queues:
                threading.Thread(target=_begun, args=(begin,), name="readiness", daemon=True).start()


def _engine() -> None:
    spark.isolated().range(1).count()
    log.info("Spark is ready")


def _begun(begin: Callable[[], object]) -> None:
    try:
        begin()
    except Exception as error:  # the first message tries it again, and says what is wrong where a person looks
        log.warning("%s did not begin: %s", begin.__name__.strip("_"), error)
