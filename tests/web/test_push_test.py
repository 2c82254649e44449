"""`manage.py push_test`: tries a push function without sending anything."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from ondatra_web.models import Organization, Workspace

pytestmark = pytest.mark.django_db

LIB = """API = {"base_url": "https://crm.example.com", "auth": {"env": "CRM_TOKEN"}, "push": {"args": ["object"]}}

def push(rows, object):
    print("rows", len(rows))
    resp = http.post("/" + object, json=[r["id"] for r in rows])
    said = "ok" if resp.ok else "reject: " + resp.json["why"]
    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: said for r in rows}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/crm.star").write_text(LIB)
    (tmp_path / "rows.csv").write_text("id\n7\n")
    organization = Organization.objects.first() or Organization.objects.create(name="Test")
    Workspace.objects.create(organization=organization, slug="trial", project_dir=str(tmp_path))
    return tmp_path


def push_test(folder: Path, *more: str) -> tuple[object, str, str]:
    out, err = StringIO(), StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(
            "push_test",
            "crm",
            "--rows",
            str(folder / "rows.csv"),
            "--workspace",
            "trial",
            *more,
            stdout=out,
            stderr=err,
        )
    return ended.value.code, out.getvalue(), err.getvalue()


def test_it_prints_requests_prints_and_statuses(folder: Path) -> None:
    assert push_test(folder, "--args", "contacts") == (
        0,
        "\n".join(
            [
                "call 1: 1 rows, 1 requests",
                "  POST https://crm.example.com/contacts",
                "    Content-Type: application/json",
                "    Authorization: ***",
                "    [7]",
                "    -> 200",
                "  print: rows 1",
                "  1:insert ok",
                "",
            ]
        ),
        "",
    )


def test_the_answer_of_the_stub_can_be_chosen(folder: Path) -> None:
    code, out, _ = push_test(folder, "--args", "contacts", "--status", "422", "--answer", '{"why": "bad"}')
    assert code == 1 and out.splitlines()[-1] == "  1:insert reject: bad"


def test_what_is_wrong_with_the_function_is_said_and_exits_2(folder: Path) -> None:
    assert push_test(folder) == (2, "", "lib/crm.star: push.args names object; 0 given\n")
