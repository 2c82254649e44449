"""`manage.py check_models` and `manage.py workspace`, as a shell sees them."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from ondatra_web import projects
from ondatra_web.models import Workspace

pytestmark = pytest.mark.django_db


def command(name: str, *args: str) -> tuple[int, str, str]:
    out, err, code = StringIO(), StringIO(), 0
    try:
        call_command(name, *args, stdout=out, stderr=err)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "models/mart").mkdir(parents=True)
    (made / "models/mart/one.sql").write_text("SELECT 1 AS id")
    assert command("workspace", "trial", "--project", str(made)) == (0, f"workspace trial created: {made}\n", "")
    return made


def test_a_project_without_problems_is_ok_and_exits_0(folder: Path) -> None:
    assert command("check_models", "--workspace", "trial") == (0, "1 model(s) are fine\n", "")
    code, out, _ = command("check_models", "--workspace", "trial", "--json")
    assert (code, json.loads(out)) == (0, {"status": "ok", "problems": [], "warnings": []})


def test_problems_have_file_line_and_message_and_exit_2(folder: Path) -> None:
    (folder / "models/mart/two.sql").write_text("-- @kind: merge\nSELECT 1 AS id")
    message = "kind merge needs @unique_key: column"
    assert command("check_models", "--workspace", "trial") == (
        2,
        f"models/mart/two.sql:1: {message}\n1 problem(s)\n",
        "",
    )
    code, out, _ = command("check_models", "--workspace", "trial", "--json")
    assert (code, json.loads(out)["problems"]) == (2, [{"file": "models/mart/two.sql", "line": 1, "message": message}])


def test_a_folder_without_models_is_one_line(folder: Path) -> None:
    (folder / "models/mart/one.sql").unlink()
    code, out, err = command("check_models", "--workspace", "trial")
    assert (code, out, err.count("\n")) == (2, "", 1) and "create models/<folder>/<name>.sql" in err


def test_an_unknown_workspace_lists_those_there_are(folder: Path) -> None:
    code, _, err = command("check_models", "--workspace", "trail")
    assert code == 2 and "'trail'" in err and "trial" in err


def test_a_project_folder_that_is_gone_says_how_to_point_elsewhere(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    code, _, err = command("check_models", "--workspace", "trial")
    assert code == 2 and "manage.py workspace trial --project DIR" in err


# workspace


def test_a_second_call_points_the_workspace_elsewhere_and_keeps_its_id_and_key(folder: Path, tmp_path: Path) -> None:
    before = Workspace.objects.get(slug="trial")
    other, shared, env = tmp_path / "other", tmp_path / "shared", tmp_path / "secrets.env"
    other.mkdir()
    shared.mkdir()
    env.write_text("CRM_KEY=s3cr3t\n")
    assert command("workspace", "trial", "--project", str(other), "--env-file", str(env), "--allow-path", str(shared))[
        :2
    ] == (0, f"workspace trial now: {other}\n")
    now = Workspace.objects.get(slug="trial")
    assert (now.pk, now.mask_key, len(now.mask_key)) == (before.pk, before.mask_key, 64)
    assert (now.project_dir, now.env_file, now.allow_paths) == (str(other), str(env), [str(shared)])
    assert projects.secrets_of(now).get("CRM_KEY") == "s3cr3t"


@pytest.mark.parametrize(
    "args, word",
    [
        (["Bad Slug", "--project", "."], "'Bad Slug'"),
        (["x", "--project", "nowhere"], "nowhere"),
        (["x", "--project", ".", "--env-file", "nowhere.env"], "nowhere.env"),
        (["x", "--project", ".", "--env-file", "manage.py"], "outside"),
        (["x", "--project", ".", "--allow-path", "nowhere"], "nowhere"),
    ],
)
def test_a_wrong_argument_is_named_and_makes_nothing(args: list[str], word: str) -> None:
    code, _, err = command("workspace", *args)
    assert code == 2 and word in err and not Workspace.objects.filter(slug="x").exists()


def test_push_functions_see_neither_the_products_own_settings_nor_others_when_there_is_an_env_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CRM_KEY", "ONDATRA_X", "DJANGO_X", "AWS_X", "SPARK_X", "DATABASE_URL", "REDIS_URL"):
        monkeypatch.setenv(name, "value")
    names = ["CRM_KEY", "ONDATRA_X", "DJANGO_X", "AWS_X", "SPARK_X", "DATABASE_URL", "REDIS_URL"]
    workspace = Workspace.objects.get(slug="trial")
    assert [n for n in names if projects.secrets_of(workspace).get(n)] == ["CRM_KEY"]
    workspace.env_file = str(tmp_path / "secrets.env")
    Path(workspace.env_file).write_text("# a comment\n\nexport OTHER='quoted # text'\n")
    own = projects.secrets_of(workspace)
    assert ([n for n in [*names, "PATH"] if own.get(n)], own.get("OTHER")) == ([], "quoted # text")
    assert "quoted" not in repr(own)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_command_whose_reader_has_gone_ends_quietly(unbuffered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    root = Path(__file__).resolve().parents[2]
    started = subprocess.Popen(
        [sys.executable, "manage.py", "version"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout and started.stderr
    started.stdout.close()
    assert (started.stderr.read(), started.wait(60)) == ("", 141)
