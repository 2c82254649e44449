"""Points at which a test can have the process killed, to prove what a crash there leaves behind.

`ONDATRA_FAULT=name` kills the process with SIGKILL when it reaches that point; without it a point costs one look.
"""

from __future__ import annotations

import os
import signal

from runtime.config import from_env

POINTS = ("after_commit", "before_mark", "after_mark", "after_answers", "after_seal", "after_files", "before_finalize")


def point(name: str) -> None:
    """Dies here if a test asked for it."""
    if from_env().fault == name:
        os.kill(os.getpid(), signal.SIGKILL)
