"""Workers hear of a message when it is there, and not only when they look anyhow."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import dramatiq
import pytest

from ondatra_web.queue import Broker

#: Between two looks of an idle worker, in milliseconds; a test that waits for one has failed.
LOOK_EVERY = 60_000
SOON = 20.0


@pytest.fixture
def broker(redis_url: str) -> Iterator[Broker]:
    made = Broker(redis_url)
    made.declare_queue("push")
    yield made
    made.flush_all()


def message(run: int) -> dramatiq.Message[None]:
    return dramatiq.Message(queue_name="push", actor_name="push", args=(run,), kwargs={}, options={})


def test_an_idle_worker_takes_a_message_of_another_process_at_once(broker: Broker, redis_url: str) -> None:
    taken: list[int] = []
    worker = threading.Thread(target=_take, args=(broker.consume("push", timeout=LOOK_EVERY), taken), daemon=True)
    worker.start()
    time.sleep(0.5)  # it looked by now, and waits
    Broker(redis_url).enqueue(message(7))
    worker.join(SOON)
    assert taken == [7]


def test_a_worker_that_has_room_again_takes_the_next_message_at_once(broker: Broker) -> None:
    consumer, taken = broker.consume("push", prefetch=1, timeout=LOOK_EVERY), list[int]()
    for run in (1, 2):
        broker.enqueue(message(run))
    first = next(consumer)
    assert first is not None
    worker = threading.Thread(target=_take, args=(consumer, taken), daemon=True)
    worker.start()
    time.sleep(0.5)
    consumer.ack(first)
    worker.join(SOON)
    assert (first.args, taken) == ((1,), [2])


def _take(consumer: dramatiq.Consumer, taken: list[int]) -> None:
    while (found := next(consumer)) is None:
        pass
    taken.append(found.args[0])
