"""Delivers one claimed chunk: sent (`sending`), sealed (`sealing`), and left to the files and the close (`filing`)."""

from __future__ import annotations

from runtime import faults
from runtime.delivery.filing import Filing
from runtime.delivery.outbox import Claim, Outbox
from runtime.delivery.run import DeliveryRun, Progress
from runtime.delivery.sealing import seal
from runtime.delivery.sending import Sending, as_recorded


def deliver(claim: Claim, run: DeliveryRun, outbox: Outbox, filing: Filing) -> Progress:
    """Delivers what is selected of a chunk and leaves it to `filing`, which writes its files and closes it. Raises
    LeaseLost, and what went wrong with the chunk before at its close."""
    if claim.sealed_digest:
        sent = as_recorded(claim, run.model.kind)
    else:
        sent = Sending(claim, run, outbox).run(meanwhile=filing.look)
        faults.point("after_answers")

    filing.add(seal(sent, run, outbox))
    return sent.progress


def close_dead(claim: Claim, run: DeliveryRun, outbox: Outbox) -> None:
    """Closes the chunk of a process that died: its recorded answers become records, calls in flight may have been
    taken."""
    seal(as_recorded(claim, run.model.kind), run, outbox).close(outbox)
