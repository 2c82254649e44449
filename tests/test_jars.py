"""Spark's jars come beside the pages: one process fetches them, the others wait, and what goes wrong is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ondatra_web.environment import machine
from ondatra_web.models import Run
from ondatra_web.serving.fetching import Fetching
from runtime.errors import ConfigError
from runtime.lake import jars, packages
from tests.web.filled import a_run, a_sync, person, workspace

JAR = "io.delta_delta-spark_4.2_2.13-4.4.0.jar"
COULD_NOT = (
    "the jars for Spark could not be fetched (io.delta:delta-spark_4.2_2.13:4.4.0 could not be fetched: is Maven "
    "Central reachable?): the next run tries again; offline, fetch them elsewhere (.venv/bin/python -m "
    "runtime.lake.jars delta FOLDER) and set ONDATRA_JARS_DIR"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jars").mkdir()
    return tmp_path / "jars"


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No JVM starts, so nothing is fetched."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


def put(folder: Path) -> None:
    (folder / JAR).touch()
    (folder / "complete").write_text("\n".join(packages.PACKAGES["delta"]))


def test_whoever_waits_is_told_until_they_are_there(folder: Path) -> None:
    before = packages.why_missing(folder, "delta")
    with jars._alone(folder):
        meanwhile = packages.why_missing(folder, "delta")
    put(folder)
    assert (before, meanwhile, packages.why_missing(folder, "delta")) == ("", packages.COMING, "")


@pytest.mark.server
def test_a_fetch_that_failed_is_told_with_the_way_out_until_one_succeeds(folder: Path, offline: None) -> None:
    with pytest.raises(SystemExit, match="is Maven Central reachable"):
        jars.main(["--beside", "delta", str(folder)])
    assert packages.why_missing(folder, "delta") == COULD_NOT
    put(folder)
    assert packages.why_missing(folder, "delta") == ""


def test_a_second_process_waits_for_the_first_and_fetches_nothing(folder: Path, offline: None) -> None:
    ended: list[int] = []
    second = threading.Thread(target=lambda: ended.append(jars.main(["--beside", "delta", str(folder)])))
    with jars._alone(folder):
        second.start()
        second.join(0.3)
        waits = second.is_alive()
        put(folder)
    second.join(20)
    assert (waits, ended) == (True, [0])


def test_an_engine_that_begins_meanwhile_waits_and_then_goes_on(folder: Path, offline: None) -> None:
    found: list[Path] = []
    engine = threading.Thread(target=lambda: found.extend(jars.ready(folder, "delta")))
    with jars._alone(folder):
        engine.start()
        engine.join(0.3)
        waits = engine.is_alive()
        put(folder)
    engine.join(20)
    assert (waits, found) == (True, [folder / JAR])


def test_what_went_wrong_beside_the_pages_is_told_to_whoever_waits() -> None:
    def fails() -> None:
        raise ConfigError("the jars could not be fetched")

    fetching = Fetching(fails)
    with pytest.raises(ConfigError, match="could not be fetched"):
        fetching.wait()
    assert not fetching.goes_on


@pytest.fixture
def install(settings: Any, folder: Path) -> Iterator[Path]:
    """Its jars are being fetched."""
    settings.ONDATRA = replace(settings.ONDATRA, jars_dir=folder)
    with jars._alone(folder):
        yield folder


@pytest.mark.django_db
def test_home_and_a_run_say_that_runs_wait_for_the_jars(client: Client, install: Path) -> None:
    sync = a_sync(workspace())
    queued, ended = a_run(sync, "queued"), a_run(sync, "completed")
    client.force_login(person("alice", sync.workspace))

    said = {
        address: packages.COMING in client.get(address).content.decode().replace("&#x27;", "'")
        for address in ("/", f"/runs/{queued.pk}/", f"/runs/{ended.pk}/")
    }
    assert list(said.values()) == [True, True, False]
    assert machine.spark().todo == packages.COMING

    put(install)
    assert "a pipeline worker" in client.get(f"/runs/{queued.pk}/").content.decode()


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_run_started_by_a_click_meanwhile_says_why_it_waits_and_a_worker_hears_of_it(
    client: Client, install: Path, stub_broker: Any
) -> None:
    sync = a_sync(workspace())
    client.force_login(person("alice", sync.workspace, role="operator"))

    page = client.post(f"/syncs/{sync.pk}/start/", follow=True)
    run = Run.objects.get()

    assert page.redirect_chain == [(f"/runs/{run.pk}/", 302)]
    assert (run.status, packages.COMING in unescape(page.content.decode())) == ("queued", True)
    assert stub_broker.queues["pipeline"].qsize() == 1
