"""Alerts by the clock: runs that nobody judged, what time alone brings about, messages that were lost or wait."""

from __future__ import annotations

import logging

from ondatra_web import queue
from ondatra_web.alerts import judging, sending, states
from ondatra_web.clock.throttle import Throttle

log = logging.getLogger("ondatra.scheduler")
#: Seconds between looks at lateness and the like.
LOOK_EVERY = 60.0
#: A message without a claim is taken for lost, and sent again no more often.
LOST_MESSAGE = 20.0
looked, messages_sent = Throttle(LOOK_EVERY), Throttle(LOST_MESSAGE)


def round() -> None:
    """What goes wrong here keeps no schedule from starting."""
    try:
        judging.judge()
        if looked.passes("alerts"):
            judging.look()
            sending.remove_old()
    except Exception:
        log.exception("alerts are looked at again in the next round")
    for pk in sending.waiting():
        if messages_sent.passes(pk):
            queue.send("alert", pk, queue=states.QUEUE)
