"""Steps of set-up: side by side, each with a line when it is done and lines on the way; packages by uv, or by pip."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def setup() -> Any:
    spec = importlib.util.spec_from_file_location("bin_setup", ROOT / "bin" / "_setup.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def venv(setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A virtual environment whose programs write down what they are asked for; its folder."""
    said = "global.index-url='https://mirror.example/simple'\n:env:.find-links='/wheels'\nglobal.timeout=5"
    pip = f'case "$*" in *"config list"*) printf "%s" "{said}";; *) echo "pip $*" >> {tmp_path}/asked;; esac'
    python = program(tmp_path / "bin" / "python", pip)
    monkeypatch.setattr(setup, "VENV", tmp_path)
    monkeypatch.setattr(setup, "PYTHON", python)
    monkeypatch.setattr(setup, "PIP", (python, "-m", "pip"))
    for name in setup.UV.values():
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def asked(venv: Path) -> list[str]:
    return [line.replace(str(ROOT), "").replace(str(venv), "") for line in (venv / "asked").read_text().splitlines()]


def test_packages_are_installed_by_uv_from_where_pip_looks(setup: Any, venv: Path) -> None:
    program(venv / "bin" / "uv", f'echo "uv $UV_DEFAULT_INDEX $UV_FIND_LINKS $UV_HTTP_TIMEOUT $*" >> {venv}/asked')
    assert setup.python_ready("requirements.lock") == "installed"
    assert asked(venv) == [
        "pip -m pip install -q --only-binary :all: --require-hashes -r /requirements-uv.lock",
        "uv https://mirror.example/simple /wheels 5 pip install -q --no-config --python /bin/python --no-deps "
        "--require-hashes -r /requirements.lock",
    ]
    assert setup.python_ready("requirements.lock") == "as locked"


def test_where_uv_cannot_pip_installs_the_same_lock(setup: Any, venv: Path) -> None:
    program(venv / "bin" / "uv", "exit 2")
    assert setup.python_ready("requirements.lock") == "installed"
    assert asked(venv)[-1] == "pip -m pip install -q --require-hashes -r /requirements.lock"


def test_steps_run_at_the_same_time_and_a_long_one_says_what_it_waits_for(
    setup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    met, told = threading.Barrier(2, timeout=20), threading.Event()

    def show(line: str, **_: Any) -> None:
        said.append(re.sub(r" +", " ", re.sub(r"\([\d.]+ s", "(s", line)))
        if "…" in line:
            told.set()

    def packages() -> str:
        met.wait()
        told.wait(20)
        return "installed"

    def java() -> str:
        met.wait()
        return "Java 17"

    monkeypatch.setattr(setup, "SOON", 0.5)
    monkeypatch.setattr(setup, "print", show, raising=False)
    setup.side_by_side(("Packages", packages, "the package index"), ("Java", java, ""))
    assert said == [
        " Java Java 17 (s)",
        " Packages … the package index (s so far)",
        " Packages installed (s)",
    ]


def test_whatever_fails_is_told_once_the_others_are_done(setup: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> str:
        setup.quiet(sys.executable, "-c", "print('no such index'); raise SystemExit(3)")
        return "never"

    def misses() -> str:
        raise setup.Missing("install Java")

    with pytest.raises(SystemExit):
        setup.side_by_side(("Packages", fails, ""), ("Java", misses, ""), ("data folder", lambda: "/data", ""))
    said = capsys.readouterr()
    assert said.err.splitlines()[1:] == ["no such index", "", "Java: install Java"]
    assert "ended with 3" in said.err.splitlines()[0] and "data folder" in said.out


def test_debians_packages_are_asked_for_one_after_another(
    setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    busy = f"mkdir {tmp_path}/busy || exit 1; /bin/sleep 0.05; rmdir {tmp_path}/busy"
    program(tmp_path / "apt-get", f"PATH=/bin:/usr/bin; {busy}")
    monkeypatch.setattr(setup.os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))

    def installs() -> str:
        setup._apt("some-package", "install it")
        return "installed"

    setup.side_by_side(("one", installs, ""), ("other", installs, ""))


def test_an_install_that_pip_refuses_too_is_an_error(setup: Any, venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.time, "sleep", lambda _: None)
    program(venv / "bin" / "python", "echo no matching hashes; exit 1")
    with pytest.raises(subprocess.CalledProcessError):
        setup.python_ready("requirements.lock")
