"""Set-up on a machine that lacks something: one line that names it and the way out."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from layers import FOLDERS, Layer

from ondatra_web.serving import ports, processes
from runtime.errors import ConfigError
from runtime.lake import jars

ROOT = Path(__file__).resolve().parent.parent


def _script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"bin{name}", ROOT / "bin" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup() -> Any:
    return _script("_setup")


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Any:
    """bin/test."""
    monkeypatch.syspath_prepend(ROOT / "bin")
    return _script("_test")


def test_a_machine_without_java_and_without_root_is_told_what_to_install(
    setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup.java, "JVMS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SystemExit):
        setup.step("Java", setup.java_ready)
    assert (
        capsys.readouterr().err.strip()
        == "Java: Java 17 was not found: install it (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    )


def test_a_java_that_is_too_old_is_not_taken(setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setattr(setup.java, "JVMS", tmp_path / "none")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=rf"Java 17 was not found \({old} is Java 11\): install it "):
        setup.java.find()


def test_a_java_outside_of_path_is_found_and_used(setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "jvm" / "java-21" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setattr(setup.java, "JVMS", tmp_path / "jvm")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setattr(setup.java.subprocess, "run", _with_path(os.defpath))
    assert (setup.java.find(), os.environ["JAVA_HOME"]) == (21, str(tmp_path / "jvm" / "java-21"))


def _with_path(path: str) -> Any:
    run = subprocess.run
    return lambda argv, **more: run(argv, **{**more, "env": {"PATH": path}})


LIBRARY_MISSING = "node: error while loading shared libraries: libatomic.so.1: cannot open shared object file"
WAY_OUT = (
    f"Playwright's Node does not start ({LIBRARY_MISSING}): install libatomic1 (Debian: apt-get install libatomic1)"
)


def _program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine whose Node lacks a library, with nothing on PATH; root's, as far as set-up can see. Its folder."""
    starts = f'[ -e {tmp_path}/installed ] || {{ echo "{LIBRARY_MISSING}" >&2; exit 127; }}'
    monkeypatch.setattr(setup, "PYTHON", _program(tmp_path / "python", starts))
    monkeypatch.setattr(setup.os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_the_library_that_playwrights_node_lacks_is_installed(setup: Any, bare: Path) -> None:
    _program(bare / "apt-get", f'echo "$@" >> {bare}/asked; [ "$1" = update ] || : > {bare}/installed')
    assert setup.browser_driver_ready() == "libatomic1 installed"
    assert (bare / "asked").read_text().splitlines() == [
        "update -q",
        "install -qy --no-install-recommends libatomic1",
    ]


def test_a_node_that_starts_needs_nothing(setup: Any, bare: Path) -> None:
    (bare / "installed").touch()
    assert setup.browser_driver_ready() == "starts"


def test_a_machine_that_cannot_install_the_library_is_told_its_package(
    setup: Any, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        setup.step("Playwright's Node", setup.browser_driver_ready)
    assert capsys.readouterr().err.strip() == f"Playwright's Node: {WAY_OUT}"


def test_a_package_that_apt_get_does_not_find_is_told_with_what_it_said(setup: Any, bare: Path) -> None:
    _program(bare / "apt-get", 'echo "E: Unable to locate package"; exit 100')
    with pytest.raises(setup.Missing) as told:
        setup.browser_driver_ready()
    assert str(told.value) == f"{WAY_OUT}; apt-get said: E: Unable to locate package"


def test_a_node_that_fails_for_another_reason_installs_nothing(setup: Any, bare: Path) -> None:
    _program(bare / "python", "echo 'node: Exec format error' >&2; exit 126")
    with pytest.raises(setup.Missing) as told:
        setup.browser_driver_ready()
    assert str(told.value) == "Playwright's Node does not start (node: Exec format error): install what it names"


@pytest.mark.parametrize("command", [[sys.executable, "manage.py", "runs"], [sys.executable, "bin/_up.py", "--once"]])
def test_a_data_folder_that_cannot_be_written_is_one_line(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where the folder should be: root may write anywhere else")
    folder = tmp_path / "file" / "data"
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "ONDATRA_DATA_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    line = done.stderr.strip()
    assert done.returncode in (1, 2) and "\n" not in line and str(folder) in line and "set ONDATRA_DATA_DIR" in line, (
        done.stderr
    )


def _told(tmp_path: Path, *command: str, **more: str) -> tuple[int, str]:
    environment = {
        **os.environ,
        "ONDATRA_DATA_DIR": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3?timeout=1",
        **more,
    }
    done = subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr.strip()


@pytest.mark.django_db  # its tables, which are made for those that say so
def test_a_database_that_another_process_holds_is_one_line_with_the_way_out(fresh_tables: Path, tmp_path: Path) -> None:
    shutil.copy(fresh_tables, tmp_path / "db.sqlite3")
    with closing(sqlite3.connect(tmp_path / "db.sqlite3", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        assert _told(tmp_path, "workspace", "w", "--project", ".") == (
            1,
            f"the database cannot be used: database is locked. Another process has held {tmp_path}/db.sqlite3 for 1 "
            f"s: end it, or set DATABASE_URL to a "
            "PostgreSQL server. What was not sent stays due.",
        )


def test_a_database_that_is_empty_or_away_is_one_line_without_its_password(tmp_path: Path) -> None:
    assert _told(tmp_path, "runs") == (
        1,
        "the database cannot be used: no such table: ondatra_web_run. Run `.venv/bin/python manage.py migrate` (bin/up "
        "does). What was not sent stays due.",
    )
    code, said = _told(tmp_path, "runs", DATABASE_URL="postgres://ondatra:very-secret@127.0.0.1:9/ondatra")
    assert (code, "127.0.0.1" in said, "very-secret" in said, "\n" in said) == (1, True, False, False), said


def test_the_fast_layer_is_chosen_by_its_marker_and_takes_further_arguments(check: Any) -> None:
    fast = ["-n", "3", *check.BY_FILE, *check.WITHOUT, "-m", "fast"]
    assert check.chosen(["fast", "tests/web"]) == [*fast, "tests/web"]


def test_the_folders_that_the_fast_layer_leaves_out_hold_no_fast_test(check: Any) -> None:
    assert set(check.DEAR_FOLDERS) == set(FOLDERS) and Layer.FAST not in FOLDERS.values()


def test_without_arguments_everything_runs_in_two_processes(check: Any) -> None:
    assert check.chosen([]) == ["-n", "2", *check.BY_FILE]


def test_any_other_arguments_are_pytests_alone(check: Any) -> None:
    assert check.chosen(["tests/web", "-x"]) == ["tests/web", "-x"]


def test_checks_run_at_the_same_time_and_a_failed_one_is_shown_whole(
    check: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # each waits for the other: one after the other, time would run out
    meet = f"mkfifo {tmp_path}/met; echo here > {tmp_path}/met"
    wait = f"while [ ! -p {tmp_path}/met ]; do sleep 0.01; done; cat {tmp_path}/met; echo line 7 is wrong >&2; exit 3"
    monkeypatch.setattr(
        check,
        "CHECKS",
        {name: ["timeout", "20", "sh", "-c", does] for name, does in (("types", meet), ("style", wait))},
    )

    with check.checks(os.environ) as failed:
        names = failed()

    said = re.sub(r"\(.*\)", "(s)", capsys.readouterr().out)
    assert (names, said) == (["style"], "types: ok  (s)\nstyle: failed  (s)\nhere\nline 7 is wrong\n\n")


def test_a_taken_port_is_named_and_stepped_over(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        found = ports.free(port, "the pages")
    assert found > port and capsys.readouterr().out == f"  port {port} is taken: the pages uses {found}\n"


def test_a_second_start_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with ExitStack() as first, ExitStack() as second:
        processes.only_one(first, tmp_path)
        with pytest.raises(ConfigError, match=rf"{tmp_path} is served already \(process {os.getpid()}\)"):
            processes.only_one(second, tmp_path)


def test_the_first_user_is_an_admin_and_the_password_is_shown_once(db: None) -> None:
    from django.contrib.auth import authenticate

    from ondatra_web.management.commands.first_user import make
    from ondatra_web.models import Membership

    name, password = make("admin")
    assert password and authenticate(username=name, password=password)
    assert list(Membership.objects.values_list("user__username", "organization__name", "role")) == [
        ("admin", "Default", "admin")
    ]
    assert make("admin") == ("admin", None)


def test_a_fresh_install_has_an_organization_and_a_workspace_for_this_folder(db: None) -> None:
    from ondatra_web.models import Workspace

    assert list(Workspace.objects.values_list("organization__name", "slug", "project_dir")) == [
        ("Default", "default", str(ROOT))
    ]


def test_jars_that_spark_ships_itself_are_left_out() -> None:
    from runtime.lake.packages import artifact

    named = [
        "org.slf4j_slf4j-api-2.0.13.jar",
        "slf4j-api-2.0.17.jar",
        "io.delta_delta-spark_4.2_2.13-4.4.0.jar",
        "scala-library_2.13-1.0.jar",
        "commons-codec_commons-codec-1.17.1.jar",
    ]
    names = ["slf4j-api", "slf4j-api", "delta-spark_4.2_2.13", "scala-library_2.13", "commons-codec"]
    assert [artifact(n) for n in named] == names


def test_jars_that_are_there_are_taken_without_a_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = ["io.delta_delta-spark_4.2_2.13-4.4.0.jar", "org.postgresql_postgresql-42.7.8.jar"]
    for name in names:
        (tmp_path / name).touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    assert jars.ready(tmp_path, "delta") == [tmp_path / name for name in names]


def test_jars_that_cannot_be_fetched_are_one_line_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fails = tmp_path / "python"
    fails.write_text("#!/bin/sh\necho starting\necho 'is Maven Central reachable?'\nexit 1\n")
    fails.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fails))
    with pytest.raises(ConfigError) as told:
        jars.ready(tmp_path / "jars", "delta")
    assert str(told.value) == (
        "the jars for Spark could not be fetched (is Maven Central reachable?): the next run tries again; offline, "
        "fetch them elsewhere (.venv/bin/python -m runtime.lake.jars delta FOLDER) and set ONDATRA_JARS_DIR"
    )


def test_a_folder_for_jars_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=f"the jars for Spark cannot be kept in {tmp_path}/file/jars"):
        jars.ready(tmp_path / "file" / "jars", "delta")
