"""What tests share: in each process one Spark session, one server of each kind, three people. See early.py for the
folders."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from layers import CONFORMANCE, Layer, layer_of, nothing_dear, refused
from tables import Tables, of_the_session

ROOT = Path(__file__).resolve().parent.parent
#: As many quick tests as one that is marked slow takes, about.
SLOW = 8


@pytest.fixture(scope="session")
def config() -> Any:
    """The places of the product under test: temporary folders."""
    from django.conf import settings

    return settings.ONDATRA


@pytest.fixture(scope="session")
def spark() -> Any:
    from runtime.lake.spark import session

    return session()


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """A file, as in an install: SQLite in memory has one lock for all threads and no WAL."""
    from django.conf import settings

    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database.setdefault("TEST", {})["NAME"] = str(settings.ONDATRA.data_dir / "test.sqlite3")


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return of_the_session(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_modify_db_settings: None, tables: Tables) -> bool:
    """True where the tables are there by now."""
    from django.conf import settings

    place = settings.DATABASES["default"].get("TEST", {}).get("NAME")
    return bool(place) and tables.taken(Path(place))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any, tables: Tables) -> None:
    from django.db import connection

    with django_db_blocker.unblock():
        tables.given(connection)


@pytest.fixture(scope="session")
def fresh_tables(django_db_setup: None, tables: Tables) -> Path:
    """A database of SQLite to copy, for a process that needs one and not its making."""
    return tables.file


@pytest.fixture(autouse=True)
def stub_broker() -> Iterator[Any]:
    """Messages stay in this process, and none is left for the next test."""
    from dramatiq.brokers.stub import StubBroker

    from ondatra_web import queue

    broker = queue.broker()
    yield broker
    if isinstance(broker, StubBroker):
        broker.flush_all()


@pytest.fixture(scope="session")
def duckdb_of_the_tests() -> Any:
    import duckdb

    return duckdb.connect()


@pytest.fixture(autouse=True)
def duckdb_of_its_own(duckdb_of_the_tests: Any) -> None:
    """Tests ask DuckDB's shared connection, and may leave a result open there. A cursor costs nothing, a database 16 ms
    of a processor."""
    import duckdb

    duckdb.set_default_connection(duckdb_of_the_tests.cursor())


@pytest.fixture(autouse=True, scope="module")
def no_records_left() -> Iterator[None]:
    """Ids begin anew where a file's tests are rolled back or empty the tables: whatever follows must not meet their
    record files."""
    yield
    from django.conf import settings

    shutil.rmtree(settings.ONDATRA.data_dir / "store" / "sync_tracking_datasets", ignore_errors=True)


@pytest.fixture(autouse=True)
def no_worker_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """The row of this process is gone with a test's transaction; who believes in it later cannot begin a run."""
    yield
    if request.node.get_closest_marker("django_db") or "db" in request.fixturenames:
        from ondatra_web import workers

        workers._mine.clear()


@pytest.fixture
def organization(db: None) -> Any:
    from ondatra_web.models import Organization

    return Organization.objects.order_by("pk").first() or Organization.objects.create(name="Default")


def _person(name: str, organization: Any, role: str) -> Any:
    from django.contrib.auth.models import User

    from ondatra_web.models import Membership

    user = User.objects.create_user(name, password=f"{name}-password")
    Membership.objects.create(user=user, organization=organization, role=role)
    return user


@pytest.fixture
def alice(organization: Any) -> Any:
    """An admin."""
    return _person("alice", organization, "admin")


@pytest.fixture
def bob(organization: Any) -> Any:
    """A teammate of alice."""
    return _person("bob", organization, "operator")


@pytest.fixture
def charlie(db: None) -> Any:
    """A stranger: admin of another organization."""
    from ondatra_web.models import Organization

    return _person("charlie", Organization.objects.create(name="Elsewhere"), "admin")


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from services import redis

    with redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from services import s3

    with s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    from services import postgres

    with postgres() as url:
        yield url


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The machine's Chromium; nothing is downloaded."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        raise RuntimeError(
            "chromium was not found: install it (Debian: apt-get install chromium), or run bin/test, which does"
        )
    flags = [
        "--no-sandbox",
        "--headless",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    return {**browser_type_launch_args, "executable_path": found, "args": flags}


def pytest_configure() -> None:
    """Passwords of tests need no million rounds, and no answer of a live server waits 40 ms for its second half."""
    from django.conf import settings
    from django.core.servers.basehttp import WSGIRequestHandler

    WSGIRequestHandler.disable_nagle_algorithm = True

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    _look_through_static_files_once()


def _look_through_static_files_once() -> None:
    """And not for each test's client, 15 ms of a processor."""
    from whitenoise.middleware import WhiteNoiseMiddleware

    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    look = WhiteNoiseMiddleware.add_files_from_finders

    def add(self: Any) -> None:
        asked = self.static_prefix, self.max_age
        if asked not in found:
            look(self)
            found[asked] = dict(self.files)
        self.files.update(found[asked])

    WhiteNoiseMiddleware.add_files_from_finders = add


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with nothing_dear() if layer_of(item) is Layer.FAST else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    yield
    assert not refused(), refused()


def not_yet() -> dict[str, str]:
    """Cases of the suite that the product does not satisfy yet: node id -> reason, from a list that people read."""
    lines = (CONFORMANCE / "not_yet.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("  ") for line in lines if line.strip() and not line.startswith("#"))
    return {node.strip(): reason.strip() for node, _, reason in pairs}


def _waits(item: pytest.Item, waiting: dict[str, str]) -> bool:
    """Whether the list names the case, or its file or folder."""
    name = item.nodeid.partition("[")[0].removeprefix("tests/")
    return any(
        name in (node, f"conformance/{node}") or name.startswith((f"{node}::", f"{node}/", f"conformance/{node}::"))
        for node in waiting
    )


def _empties_tables(item: pytest.Item) -> bool:
    """Whether the tables are empty after the test, also of what migrations made."""
    marker = item.get_closest_marker("django_db")
    return bool(marker and marker.kwargs.get("transaction")) or bool(
        {"transactional_db", "live_server"} & set(getattr(item, "fixturenames", ()))
    )


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What one process runs together: a file, so that its fixtures are set up once.

    `--dist loadgroup` of pytest-xdist 3.8 forms no groups under pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("::")[0]

    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)  # before -m chooses by the marker that is given here
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    waiting = not_yet()
    left_out = [item for item in items if _waits(item, waiting)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    for item in items:
        if layer_of(item) is Layer.FAST:
            item.add_marker("fast")
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if item not in left_out:
            files.setdefault(item.path, []).append(item)
    items[:] = [item for file in sorted(files.values(), key=_place) for item in file]


def _place(file: list[pytest.Item]) -> tuple[int, bool, int]:
    """When a file's turn comes: by layer, those that empty tables behind those that need what migrations put there,
    then the longest first, so that all processes end at about the same time; of the fast ones, which tell mistakes
    soon, only those with slow tests are."""
    layer = max(map(layer_of, file))
    slow = sum(1 for item in file if item.get_closest_marker("slow"))
    length = slow * SLOW + len(file) - slow
    return layer, any(map(_empties_tables, file)), -length if layer else -slow
