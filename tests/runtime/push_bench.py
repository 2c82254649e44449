"""One push function in a folder, called with a few rows: what the tests of the push layer share."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runtime.custody.secrets import Secrets
from runtime.errors import Problem
from runtime.push.call import CallContext, CallResult, PushCall
from runtime.push.function import PushFunction
from runtime.push.http.rate_limits import Limiter, MemoryLimiter
from runtime.push.load import check_push, load_push

KEY = """
def key(r):
    return str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]
"""


def row(number: int, change: str = "insert", **cells: Any) -> dict[str, Any]:
    return {"id": number, **cells, "__ondatra_rowid": number, "__ondatra_change_type": change}


ROWS = [row(1, email="a@x"), row(2, email="b@x"), row(3, email="c@x")]


DOCS = Path(__file__).resolve().parents[2] / "docs/push-functions.md"


class Bench:
    """Writes lib/crm.star and calls it."""

    def __init__(self, folder: Path, base_url: str = "http://127.0.0.1:9") -> None:
        self.folder, self.base_url = folder, base_url
        self.secrets: dict[str, str] = {}
        self.limiter: Limiter = MemoryLimiter()
        self.cancelled: Callable[[], bool] = lambda: False
        self.shown: list[Any] = []
        (folder / "lib").mkdir(exist_ok=True)

    def lib(self, text: str, name: str = "crm", **api: Any) -> None:
        """The API dict on line 1, then the text."""
        (self.folder / f"lib/{name}.star").write_text(f"API = { ({'base_url': self.base_url} | api)!r}\n{text}")

    def example(self, name: str, *, backoff: float = 0.1) -> PushFunction:
        """The one of the docs as it stands there, but for its address and how long it waits."""
        (text,) = re.findall(rf"```python\n# lib/{name}\.star\n(.*?)```", DOCS.read_text(), re.DOTALL)
        text = text.replace('"backoff": 0.1', f'"backoff": {backoff}')
        (self.folder / "lib/crm.star").write_text(re.sub(r"https://\w+\.example\.com", self.base_url, text))
        return self.load()

    def load(self) -> PushFunction:
        return load_push(self.folder, "crm", secrets=Secrets(self.secrets, "the environment"))

    def check(self, *args: str, kind: str = "merge") -> list[Problem]:
        return check_push(
            self.folder, "crm", kind=kind, sink_args=args, secrets=Secrets(self.secrets, "the environment")
        )

    def messages(self, *args: str) -> str:
        return "\n".join(p.message for p in self.check(*args))

    @property
    def context(self) -> CallContext:
        return CallContext(
            secrets=Secrets(self.secrets, "the environment"), limiter=self.limiter, cancelled=lambda: self.cancelled()
        )

    def push(
        self, text: str, rows: Sequence[Mapping[str, Any]] = ROWS, *, call: Mapping[str, Any] | None = None, **api: Any
    ) -> CallResult:
        self.lib(text, **api)
        return self.load().push(PushCall([dict(r) for r in rows], **dict(call or {})), self.context)

    def see(self, *lines: str, rows: Sequence[Mapping[str, Any]] = ROWS, **api: Any) -> list[Any]:
        """Runs the lines in push(), which call show(value); the values as Python gets them back."""
        body = "\n".join("    " + line for line in "\n".join(lines).splitlines())
        text = (
            f'def push(rows):\n    shown = []\n    show = shown.append\n{body}\n    return {{"shown": '
            f"shown}}\n\ndef poll(job_ref):\n    return None\n"
        )
        result = self.push(text, rows, **{"push": {"batch_mode": "async"}, **api})
        assert result.job_ref is not None, result.outcomes[0]
        return list(result.job_ref["shown"])


def outcomes(result: CallResult) -> list[tuple[str, str | None, bool]]:
    return [(o.kind, o.message, o.known) for o in result.outcomes]


def returning(expression: str) -> str:
    return f"{KEY}\ndef push(rows):\n    return {expression}\n"


def seconds(work: Callable[[], Any]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def run(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
