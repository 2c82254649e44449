"""Messages for the workers. They carry ids only; the database is the truth, and the scheduler sends again what was
lost."""

from __future__ import annotations

import logging

import dramatiq
from django.conf import settings
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker

log = logging.getLogger("ondatra.queue")


def broker() -> dramatiq.Broker:
    """The process's broker: Redis where REDIS_URL is set, else one that only remembers (a run in one process needs
    none)."""
    global _broker
    if _broker is None:
        _broker = RedisBroker(url=settings.ONDATRA.redis_url) if settings.ONDATRA.redis_url else StubBroker()
        dramatiq.set_broker(_broker)
    return _broker


_broker: dramatiq.Broker | None = None


def send(actor: str, *args: int, queue: str = "", after: float = 0) -> None:
    """Wakes a worker, so many seconds from now. A broker that is down is logged, not raised: the scheduler sends
    again."""
    queue = queue or actor  # an actor has a queue of its own name unless another kind of worker takes it
    try:
        broker().declare_queue(queue)
        message = dramatiq.Message(queue_name=queue, actor_name=actor, args=args, kwargs={}, options={})
        broker().enqueue(message, delay=round(after * 1000) or None)
    except Exception as error:
        log.warning("no message for %s %s: %s; the scheduler sends it again", actor, args, error)
