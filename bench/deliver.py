"""Rows per second of delivery (chunk in, records written) against a bare loop. Usage: python bench/deliver.py [--rows 100000] [--batch 1000]

Both call the seed's batch function over the same rows, server and HTTP client. The bare loop hands it ready dicts and
writes nothing down; ours reads chunk files, records every answer in the database and writes the record files.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SERVER = """
import http.server, socketserver
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def log_message(self, *_): pass
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200); self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", "2"); self.end_headers()
        self.wfile.write(b"{}")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
PUSH = """
def push(rows):
    payload = [{k: v for k, v in r.items() if not k.startswith("_")} for r in rows]
    resp = http.post("/api/batch", json=payload)
    if not resp.ok:
        return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: "error: " + resp.text for r in rows}
    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: "ok" for r in rows}
"""
MODEL = """-- @kind: append
-- @sink: batch
SELECT i AS id, 'name ' || i AS name, 'p' || i || '@example.com' AS email, i / 7 AS score, i % 2 = 0 AS active FROM read_parquet('rows.parquet')
"""


def project(folder: Path, url: str, rows: int, batch: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "models/sync").mkdir(parents=True)
    (folder / "lib").mkdir()
    pq.write_table(pa.table({"i": pa.array(range(rows), pa.int64())}), folder / "rows.parquet")
    (folder / "models/sync/out.sql").write_text(MODEL)
    (folder / "lib/batch.star").write_text(f"API = {{'base_url': '{url}', 'api_calls': 'failures', 'push': {{'batch_size': {batch}}}}}\n{PUSH}")


def ours(folder: Path, rows: int) -> float:
    """Rows per second from the first claim to the closed run."""
    from django.core.management import call_command

    from ondatra_web import execution, projects
    from ondatra_web.models import Run

    call_command("migrate", verbosity=0)
    call_command("workspace", "bench", "--project", str(folder))
    walk = execution.prepare(projects.workspace_of("bench"))
    execution.run_line(walk, {}, trigger="command")
    (name, run), = walk.runs.items()
    began = time.perf_counter()
    execution.deliver_run(walk, name, run)
    took = time.perf_counter() - began
    done = Run.objects.get(pk=run.pk)
    assert (done.status, done.succeeded) == ("completed", rows), (done.status, done.error, done.counts)
    return rows / took


def bare(folder: Path, url: str, rows: int, batch: int) -> float:
    """Rows per second of the same function and client in a loop over ready dicts."""
    import orjson
    import starlark as sl
    from pyreqwest.client import SyncClientBuilder

    from runtime.chunk_files import read_chunk
    from runtime.values import to_rows

    client = SyncClientBuilder().runtime_multithreaded(True).build()

    def post(path: str, json: Any = None) -> dict[str, Any]:
        answer = client.post(url + path).headers([("content-type", "application/json")]).body_bytes(orjson.dumps(json)).build().send()
        body = bytes(answer.bytes())
        return {"ok": answer.status < 300, "status_code": answer.status, "text": body.decode(), "json": orjson.loads(body), "headers": {}}

    dialect, built_ins, module = sl.Dialect.extended(), sl.Globals.extended_by([sl.LibraryExtension.StructType]), sl.Module()
    module.add_callable("_post", post)
    sl.eval(module, sl.parse("http", "def _p(url, json=None): return struct(**_post(url, json))\nhttp = struct(post=_p)\n", dialect), built_ins)
    sl.eval(module, sl.parse("batch", PUSH, dialect), built_ins)
    frozen = module.freeze()
    staging = Path(os.environ["ONDATRA_DATA_DIR"], "staging")
    files = sorted(path.as_uri() for path in staging.rglob("*.parquet"))
    given = [row for u in files for row in to_rows(read_chunk(u, None))]
    assert len(given) == rows, (len(given), files)
    began = time.perf_counter()
    for start in range(0, rows, batch):
        frozen.call("push", given[start:start + batch])
    return rows / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=1_000)
    told = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-deliver-"))
    os.environ |= {"ONDATRA_DATA_DIR": str(folder / "data"), "DJANGO_SETTINGS_MODULE": "ondatra_web.settings"}
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        project(folder / "project", url, told.rows, told.batch)
        mine = ours(folder / "project", told.rows)
        other = bare(folder / "project", url, told.rows, told.batch)
    finally:
        server.kill()
    print(f"deliver: ratio {mine / other:.2f} (ours {mine:,.0f} rows/s, other {other:,.0f} rows/s)")


if __name__ == "__main__":
    main()
