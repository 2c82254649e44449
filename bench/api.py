"""Requests per second of delivery that makes one request a row. Usage: python bench/api.py [--rows 20000]

First against the bare HTTP client in a loop over ready dicts; then with answers that take 50 ms and 16 calls at a time,
against what such a server can give (16 / 0.05 s = 320 a second). A small delivery comes before: a worker lives long,
and the first one of a process loads what the others find loaded, 0.1 s.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from typing import Any

from _delivery import bare_client, check, project, served, staged, staged_rows
from _product import install

PUSH = """
def push(rows):
    statuses = {}
    for r in rows:
        resp = http.post("/contacts", json={k: v for k, v in r.items() if not k.startswith("_")})
        key = str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]
        statuses[key] = "ok" if resp.ok else "error: " + resp.text
    return statuses
"""
SLOW, AT_ONCE = 0.05, 16
WARM = 500
Client = Callable[[str, bytes], tuple[int, bytes]]


def ours(rows: int, slug: str = "bench") -> float:
    """Requests per second from the first claim to the closed run."""
    from ondatra_web.runs import execution

    walk, run = staged(slug)
    began = time.perf_counter()
    execution.deliver_run(walk, run)
    took = time.perf_counter() - began
    check(run, rows)
    return rows / took


def own_client() -> Client:
    """The product's client and nothing else."""
    from runtime.push.http.client import POOL

    headers = {"Content-Type": "application/json"}

    def post(url: str, body: bytes) -> tuple[int, bytes]:
        answer = POOL.send("POST", url, headers, body, 30)
        return answer.status, answer.body

    return post


def bare(url: str, rows: int, at_once: int = 1, client: Callable[[], Client] = bare_client) -> float:
    """Requests per second of a client and the same bodies in a loop, or in so many loops at once."""
    import orjson

    given = staged_rows()[:rows]
    assert len(given) == rows

    def loop(mine: list[dict[str, Any]]) -> None:
        post = client()
        for row in mine:
            body = orjson.dumps({k: v for k, v in row.items() if not k.startswith("_")})
            status, answer = post(url + "/contacts", body)
            assert status == 200 and answer

    threads = [threading.Thread(target=loop, args=(given[i::at_once],)) for i in range(at_once)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rows / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=20_000)
    told = parser.parse_args()
    folder = install("api")
    with served() as url:
        project(folder, told.rows, url, PUSH, batch_size=100)
        project(folder, WARM, url, PUSH, slug="warm", batch_size=100)
        ours(WARM, "warm")
        mine, other = ours(told.rows), bare(url, told.rows)
        own = bare(url, told.rows, client=own_client)
    slow_rows = 3_200
    with served(SLOW) as url:
        project(folder, slow_rows, url, PUSH, slug="slow", batch_size=10, max_concurrent=AT_ONCE)
        slow, without = ours(slow_rows, "slow"), bare(url, slow_rows, AT_ONCE)
    print(f"the bare client in {AT_ONCE} threads: {without:,.0f} requests/s with answers of {SLOW * 1000:g} ms")
    print(f"the product's client alone, without answers that take time: {own:,.0f} requests/s")
    most = AT_ONCE / SLOW
    print(f"api-slow: ratio {slow / most:.2f} (ours {slow:,.0f} requests/s, other {most:,.0f} requests/s)")
    print(f"api: ratio {mine / other:.2f} (ours {mine:,.0f} requests/s, other {other:,.0f} requests/s)")


if __name__ == "__main__":
    main()
