"""`ondatra`: the commands from anywhere, and where it finds its project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ondatra_web import command_line
from ondatra_web.management.commands import init
from runtime.config import from_env
from runtime.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = ROOT / "ondatra_web/management/commands"
NEITHER = "no project here: neither {} nor a folder above it has models/ and lib/. `ondatra init DIR` makes one;"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    init.make(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ONDATRA_PROJECT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)


def _ondatra(folder: Path, *arguments: str, **more: str) -> tuple[int, str, str]:
    environment = {k: v for k, v in os.environ.items() if k != "ONDATRA_DATA_DIR"}
    done = subprocess.run(
        [sys.executable, "-m", "ondatra_web", *arguments],
        cwd=folder, env={**environment, "PYTHONPATH": str(ROOT), **more}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def test_the_help_has_a_line_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    command_line._ondatra(["--help"])
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    ours = {p.stem for p in COMMANDS.glob("[a-z]*.py")} - {"demo"}  # whose models a clone alone has
    assert sorted(listed) == sorted(ours - {"check_models"} | {"check", "migrate", "changepassword"})


def test_an_unknown_command_is_told() -> None:
    with pytest.raises(SystemExit, match="ondatra has no command runn: `ondatra --help` lists them"):
        command_line._ondatra(["runn"])


def test_a_command_outside_of_a_project_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line._ondatra(["runs"])
    assert ended.value.code == 2 and capsys.readouterr().err.startswith(NEITHER.format(tmp_path))


def test_the_project_is_the_nearest_folder_with_models_and_lib(shop: Path) -> None:
    assert command_line.project_of(shop / "models/sync") == shop


def test_a_named_project_goes_before_the_folder(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONDATRA_PROJECT_DIR", str(shop))
    assert command_line.project_of(ROOT) == shop


def test_a_named_folder_that_is_no_project_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ONDATRA_PROJECT_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=f"ONDATRA_PROJECT_DIR is {tmp_path}, which has no models/ and lib/"):
        command_line.project_of(ROOT)


def test_a_setting_of_the_wrong_form_is_one_line(shop: Path) -> None:
    said = "ondatra.E022 ONDATRA_WEB_PORT is 'eighty': a whole number from 1 on is expected"
    assert _ondatra(shop, "runs", ONDATRA_WEB_PORT="eighty") == (2, "", said)


def test_data_lie_in_the_project_unless_a_folder_is_named() -> None:
    named = {"ONDATRA_PROJECT_DIR": "/srv/shop", "ONDATRA_DATA_DIR": "/var/shop"}
    assert from_env({"ONDATRA_PROJECT_DIR": "/srv/shop"}).data_dir == Path("/srv/shop/data")
    assert from_env(named).data_dir == Path("/var/shop")


def test_messages_name_the_command_that_works_here() -> None:
    here, elsewhere = from_env({}), from_env({"ONDATRA_PROJECT_DIR": "/srv/shop"})
    assert [here.command("runs"), here.command("up")] == [".venv/bin/python manage.py runs", "bin/up"]
    assert [elsewhere.command("runs"), elsewhere.command("up")] == ["ondatra runs", "ondatra up"]


def test_init_leaves_a_folder_alone_that_holds_something(shop: Path) -> None:
    before = sorted(shop.rglob("*"))
    assert _ondatra(shop.parent, "init", "shop") == (2, "", "shop is there already and not empty: name a new folder")
    assert sorted(shop.rglob("*")) == before


def test_the_help_of_a_command_needs_no_project_and_leaves_nothing(tmp_path: Path) -> None:
    code, said, _ = _ondatra(tmp_path, "check", "--help")
    assert (code, said.startswith("usage: ondatra check_models"), list(tmp_path.iterdir())) == (0, True, [])


def test_data_of_another_project_are_not_used(shop: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    init.make(other)
    shared = {"ONDATRA_DATA_DIR": str(tmp_path / "data")}
    assert _ondatra(shop, "check", **shared) == (0, "2 model(s) are fine", "")
    code, _, said = _ondatra(other, "check", **shared)
    assert (code, said.split(":")[0]) == (
        2,
        f"workspace default in {tmp_path}/data is the project {shop}, not {other}",
    )


def test_what_serves_a_project_elsewhere_finds_the_program(tmp_path: Path) -> None:
    (tmp_path / "Procfile").write_text("web: python -c 'import ondatra_web'\n")
    begun = (
        "import os; from pathlib import Path; from ondatra_web.serving import processes; "
        "processes.PROCFILE = Path('{0}/Procfile'); raise SystemExit(processes.serve(Path('{0}'), os.environ))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", begun.format(tmp_path)], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
