"""The harness: a pytest fixture `case`, one project folder and one workspace for each test. See README.md.

The product is driven only through its commands, its files and the requests it sends; nothing of its code is imported but
`django.core.management`. Run from the product's root.
"""
import contextlib
import csv
import io
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from destination import Destination  # noqa: E402

OK_STATUS = '"ok" if resp.ok else "error: " + resp.text'


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than a few seconds")


class Result:
    def __init__(self, exit, stdout, stderr):
        self.exit, self.stdout, self.stderr = exit, stdout, stderr
        self.json = _find_json(stdout)

    @property
    def text(self):
        """All that was printed, for messages."""
        return self.stdout + self.stderr

    def sync(self, name):
        """That sync's object of `run --json`."""
        found = [s for s in (self.json or {}).get("syncs", []) if s["sync"] == name]
        assert len(found) == 1, f"{len(found)} syncs named {name}; exit {self.exit}: {self.text[-3000:]}"
        return found[0]

    def counts(self, name):
        return self.sync(name)["counts"]

    def model(self, name):
        """That model's object of `run --json`."""
        found = [m for m in (self.json or {}).get("models", []) if m["model"] == name]
        assert len(found) == 1, f"{len(found)} models named {name}; exit {self.exit}: {self.text[-3000:]}"
        return found[0]

    @property
    def problems(self):
        """The problems of `check_models --json`, each with file, line and message."""
        assert self.json is not None, f"no JSON; exit {self.exit}: {self.text[-3000:]}"
        return self.json["problems"]

    def problem(self, file, line=None):
        """What is said about that file (and line)."""
        found = [p["message"] for p in self.problems if p["file"] == file and line in (None, p["line"])]
        assert found, f"no problem at {file}:{line}: {self.problems}"
        return "\n".join(found)

    def __repr__(self):
        return f"Result(exit={self.exit}, json={self.json}, stdout={self.stdout[-2000:]!r}, stderr={self.stderr[-2000:]!r})"


def _find_json(text):
    for start in re.finditer(r"^\s*[\[{]", text, re.M):
        with contextlib.suppress(ValueError):
            return json.loads(text[start.start():])
    return None


class Product:
    """The product in this process: Django is set up once, so that one Spark session serves all cases."""

    def __init__(self, data):
        self.data, self.root = data, Path.cwd()
        os.environ["ONDATRA_DATA_DIR"] = str(data)
        os.environ["DJANGO_SETTINGS_MODULE"] = "ondatra_web.settings"
        sys.path.insert(0, str(self.root))
        import django
        django.setup()
        self.command("migrate", "--verbosity", "0")

    def command(self, name, *args):
        from django.core.management import CommandError, call_command
        out, err, code = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                answer = call_command(name, *args)
                if isinstance(answer, int):
                    code = answer
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
            except CommandError as error:
                # the command line turns the parser's own errors into exit code 2
                code = 2 if str(error).startswith("Error: ") else error.returncode
                err.write(str(error))
        return Result(code, out.getvalue(), err.getvalue())

    def argv(self, name, *args):
        return [sys.executable, "manage.py", name, *args], self.root


class Spawned:
    """A real subprocess in its own process group."""

    def __init__(self, argv, cwd, env, remember):
        self._remember = remember
        self.process = subprocess.Popen(argv, cwd=cwd, env=env, text=True, start_new_session=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def kill(self):
        """SIGKILL for the whole process group: nothing can be tidied up."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def wait(self, timeout=180):
        out, err = self.process.communicate(timeout=timeout)
        return self._remember(Result(self.process.returncode, out, err))


class Case:
    def __init__(self, engine, slug, project, dest):
        self.engine, self.slug, self.project, self.dest = engine, slug, project, dest
        self.store = engine.data / "store"
        self._env, self._ids, self._spawned = {}, {}, []
        (project / "models").mkdir(parents=True)
        (project / "lib").mkdir()
        made = self.engine.command("workspace", slug, "--project", str(project))
        assert made.exit == 0, made

    # the project folder
    def write(self, relpath, text):
        path = self.project / relpath
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n").replace("{{URL}}", self.dest.url), encoding="utf-8")
        return path

    def delete(self, relpath):
        path = self.project / relpath
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def model(self, relpath, sql):
        """case.model("sync/contacts", "…") writes models/sync/contacts.sql."""
        return self.write(f"models/{relpath.removesuffix('.sql')}.sql", sql)

    def lib(self, name, text):
        return self.write(f"lib/{name}.star", text)

    def csv(self, relpath, rows, columns=None):
        """None is an empty field. `columns` is needed for an empty table only."""
        path = self.project / relpath
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, columns or list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return path

    def parquet(self, relpath, rows, schema=None):
        import pyarrow as pa
        import pyarrow.parquet as pq
        path = self.project / relpath
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
        return path

    def echo(self, name="echo", **push):
        """A push function that POSTs each call's rows to /rows, whole, and answers ok (or the destination's error)."""
        return self.lib(name, f"""
            API = {{"base_url": "{{{{URL}}}}", "push": {push!r}}}

            def push(rows):
                resp = http.post("/rows", json=rows)
                return {{str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: {OK_STATUS} for r in rows}}
            """)

    def setenv(self, name, value):
        self._env.setdefault(name, os.environ.get(name))
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value

    # commands
    def run(self, *models, full=False, baseline=False, dry_run=False):
        flags = [flag for flag, on in (("--full", full), ("--baseline", baseline), ("--dry-run", dry_run)) if on]
        return self._remember(self.engine.command("run", *models, "--workspace", self.slug, "--json", *flags))

    def check(self):
        return self.engine.command("check_models", "--workspace", self.slug, "--json")

    def command(self, name, *args):
        return self._remember(self.engine.command(name, *map(str, args)))

    def spawn(self, *models, env=None, flags=()):
        argv, cwd = self.engine.argv("run", *models, "--workspace", self.slug, "--json", *flags)
        spawned = Spawned(argv, cwd, {**os.environ, **(env or {})}, self._remember)
        self._spawned.append(spawned)
        return spawned

    def _remember(self, result):
        if isinstance(result.json, dict):
            for sync in result.json.get("syncs") or []:
                self._ids[sync["sync"]] = (sync["sync_id"], sync["run_id"])
        return result

    # what the destination got
    def sent(self, clear=True):
        """All rows that the echo function has sent since the last look, in order."""
        rows = [row for call in list(self.dest.calls) if call.path == "/rows" for row in call.json]
        if clear:
            self.dest.clear()
        return rows

    def changes(self, *columns, clear=True):
        """The sent rows as tuples (change type, columns…), in order."""
        return [(r["__ondatra_change_type"], *(r[c] for c in columns)) for r in self.sent(clear)]

    # what the store holds (section 4.3)
    def run_folder(self, sync, run_id=None):
        sync_id, last = self._ids[sync]
        found = list((self.store / "sync_tracking_datasets").glob(f"*/{sync_id}/{run_id or last}"))
        assert len(found) == 1, f"folders of {sync} run {run_id or last}: {found}"
        return found[0]

    def files(self, sync, run_id=None):
        return sorted(p.name for p in self.run_folder(sync, run_id).glob("*.parquet"))

    def metadata(self, sync, run_id=None):
        return json.loads((self.run_folder(sync, run_id) / "metadata.json").read_text(encoding="utf-8"))

    def records(self, sync, run_id=None):
        """The records of a run (the last one seen) as dicts, sorted by identifier; [] if it wrote none."""
        if sync not in self._ids:
            return []
        sync_id, last = self._ids[sync]
        pattern = str(self.store / "sync_tracking_datasets" / "*" / str(sync_id) / str(run_id or last) / "*.parquet")
        return _read(pattern, "ORDER BY identifier NULLS FIRST, row_id")

    def api_calls(self, sync, run_id=None):
        folder = self.run_folder(sync, run_id)
        return _read(str(self.store / "api_calls" / folder.relative_to(self.store / "sync_tracking_datasets") / "*.parquet"))

    def close(self):
        for spawned in self._spawned:
            if spawned.process.poll() is None:
                spawned.kill()
        for name, value in self._env.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.dest.close()


def _read(pattern, order=""):
    try:
        cursor = duckdb.connect().execute(f"SELECT * FROM read_parquet($p, union_by_name = true) {order}", {"p": pattern})
    except duckdb.IOException:          # no file matches
        return []
    names = [d[0] for d in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


class Attached(Product):
    """The suite's own, but that its subprocesses use the Spark of this process, unless told otherwise: see attached.py."""

    own_spark = False

    def argv(self, name, *args):
        if self.own_spark:
            return super().argv(name, *args)
        from runtime.lake.spark import session
        gateway = session().sparkContext._gateway.gateway_parameters
        return [sys.executable, str(Path(__file__).with_name("attached.py")), str(gateway.port), gateway.auth_token, name, *args], self.root


@pytest.fixture(scope="session")
def engine(request):
    """The suite's own, but for the folder and the database: in one process with the product's tests, Django has settings already."""
    from django.conf import settings
    from django.db import connections
    request.getfixturevalue("django_db_setup")
    request.getfixturevalue("django_db_blocker").unblock()       # pytest-django bars the database
    connections.close_all()
    database = connections["default"]
    tests, database.settings_dict["NAME"] = database.settings_dict["NAME"], str(settings.ONDATRA.data_dir / "ondatra.sqlite3")
    made = Attached(settings.ONDATRA.data_dir)
    with connections["default"].cursor() as cursor:  # whose tables the other tests left in the same folder are not theirs
        cursor.execute("DELETE FROM sqlite_sequence WHERE name = 'ondatra_web_workspace'")
        cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('ondatra_web_workspace', 1000000)")
    yield made
    connections.close_all()
    database.settings_dict["NAME"] = tests


_number = itertools.count(1)


@pytest.fixture
def case(engine, tmp_path):
    made = Case(engine, f"case-{next(_number)}", tmp_path / "project", Destination())
    yield made
    made.close()
