"""What the benches of delivery share: a fast server in a process of its own, a project with one sync, a staged run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _product import workspace

SERVER = """
import asyncio, re, sys

ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 2\\r\\n\\r\\n{}"
LENGTH = re.compile(rb"content-length: *(\\d+)", re.I)
DELAY = float(sys.argv[1])

class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.data, self.left = transport, b"", 0

    def data_received(self, data):
        if self.left > len(data):
            self.left -= len(data)
            return
        if self.left:
            self.left = 0
            return self.answer()
        self.data += data
        head = self.data.find(b"\\r\\n\\r\\n")
        if head < 0:
            return
        found = LENGTH.search(self.data, 0, head)
        self.left = head + 4 + (int(found[1]) if found else 0) - len(self.data)
        self.data = b""
        if self.left <= 0:
            self.left = 0
            self.answer()

    def answer(self):
        if DELAY:
            asyncio.get_running_loop().call_later(DELAY, self.transport.write, ANSWER)
        else:
            self.transport.write(ANSWER)

async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
MODEL = """-- @kind: append
-- @sink: out
SELECT i AS id, 'name ' || i AS name, 'p' || i || '@example.com' AS email, i / 7 AS score, i % 2 = 0 AS active
FROM read_parquet('rows.parquet')
"""


@contextmanager
def served(delay: float = 0.0) -> Iterator[str]:
    """The URL of a server that answers every POST with {} after `delay` seconds."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(delay)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()


def project(folder: Path, rows: int, url: str, push: str, *, slug: str = "bench", **settings: Any) -> None:
    """A workspace whose sync sends so many rows through `push`; `settings` are those of the API dict's push."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in ("models/sync", "lib"):
        (folder / slug / name).mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"i": pa.array(range(rows), pa.int64())}), folder / slug / "rows.parquet")
    (folder / slug / "models/sync/out.sql").write_text(MODEL)
    (folder / slug / "lib/out.star").write_text(
        f"API = { ({'base_url': url, 'api_calls': 'failures', 'push': settings})!r}\n{push}"
    )
    workspace(folder / slug, slug)


def staged(slug: str = "bench") -> tuple[Any, Any]:
    """The walk and the run of that workspace's rows, built and staged."""
    from ondatra_web import projects
    from ondatra_web.runs import execution
    from ondatra_web.runs.walk import prepare

    walk = prepare(projects.workspace_of(slug))
    execution.run_line(walk, {}, trigger="command")
    (run,) = walk.runs.values()
    return walk, run


def check(run: Any, rows: int) -> None:
    run.refresh_from_db()
    assert (run.status, run.succeeded) == ("completed", rows), (run.status, run.error, run.counts)


def bare_client() -> Callable[[str, bytes], tuple[int, bytes]]:
    """POSTs JSON with the product's client and nothing else: one handle that keeps its connection."""
    from io import BytesIO

    import pycurl

    curl = pycurl.Curl()
    curl.setopt(pycurl.HTTPHEADER, ["Content-Type: application/json", "Expect:"])

    def post(url: str, body: bytes) -> tuple[int, bytes]:
        answer = BytesIO()
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.POSTFIELDS, body)
        curl.setopt(pycurl.WRITEFUNCTION, answer.write)
        curl.perform()
        return curl.getinfo(pycurl.RESPONSE_CODE), answer.getvalue()

    return post


def staged_rows() -> list[dict[str, Any]]:
    """All staged rows as push() gets them."""
    from runtime.staging.chunks import read_chunk
    from runtime.staging.values import to_rows

    files = sorted(path.as_uri() for path in Path(os.environ["ONDATRA_DATA_DIR"], "staging").rglob("*.parquet"))
    return [row for u in files for row in to_rows(read_chunk(u, None))]
