"""Messages for the workers. They carry ids only; the database is the truth, and the scheduler sends again what was
lost."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import dramatiq
from django.conf import settings
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker
from redis.exceptions import RedisError

log = logging.getLogger("ondatra.queue")
#: Where the name of a queue is called out that has a new message.
CHANNEL = "ondatra:messages"
#: Seconds for which a call is waited for, and after which Redis is asked again where it was away.
LISTEN, AGAIN = 30.0, 1.0


class Broker(RedisBroker):
    """Dramatiq's, whose consumers only look at an idle queue from time to time: these are called when a message is
    there. A call that is lost costs the time until the next look."""

    def __init__(self, url: str) -> None:
        super().__init__(url=url)
        self._bells: defaultdict[str, threading.Event] = defaultdict(threading.Event)
        self._listening = threading.Lock()

    def enqueue(self, message: dramatiq.Message[Any], *, delay: int | None = None) -> dramatiq.Message[Any]:
        sent = super().enqueue(message, delay=delay)
        with suppress(RedisError):
            self.client.publish(CHANNEL, sent.queue_name)
        return sent

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> dramatiq.Consumer:
        if self._listening.acquire(blocking=False):  # once a process
            threading.Thread(target=self._listen, name="messages", daemon=True).start()
        return Called(super().consume(queue_name, prefetch, timeout=1), self._bells[queue_name], timeout / 1000)

    def _listen(self) -> None:
        while True:
            with suppress(RedisError), self.client.pubsub(ignore_subscribe_messages=True) as calls:
                calls.subscribe(CHANNEL)
                while True:
                    if called := calls.get_message(timeout=LISTEN):
                        self._bells[called["data"].decode()].set()
            time.sleep(AGAIN)


class Called(dramatiq.Consumer):
    """Looks into a queue when the bell rings, when a message of it is done, and after so many seconds."""

    def __init__(self, asked: dramatiq.Consumer, bell: threading.Event, seconds: float) -> None:
        self._asked, self._bell, self._seconds = asked, bell, seconds

    def __next__(self) -> dramatiq.MessageProxy | None:
        self._bell.clear()
        message = next(self._asked)
        if message is None:
            self._bell.wait(self._seconds)
        return message

    def ack(self, message: dramatiq.MessageProxy) -> None:
        self._asked.ack(message)
        self._bell.set()

    def nack(self, message: dramatiq.MessageProxy) -> None:
        self._asked.nack(message)
        self._bell.set()

    def requeue(self, messages: Iterable[dramatiq.MessageProxy]) -> None:
        self._asked.requeue(messages)

    def close(self) -> None:
        self._asked.close()


def broker() -> dramatiq.Broker:
    """The process's broker: Redis where REDIS_URL is set, else one that only remembers (a run in one process needs
    none)."""
    global _broker
    if _broker is None:
        _broker = Broker(settings.ONDATRA.redis_url) if settings.ONDATRA.redis_url else StubBroker()
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
