"""Whether the install has what it needs: each part green or with what to do, and no question that hangs."""

from __future__ import annotations

import re
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from ondatra_web import workers
from ondatra_web.environment import machine
from ondatra_web.environment.findings import BAD, OK, WARNING, Finding, side_by_side
from ondatra_web.environment.looking import look
from ondatra_web.models import Worker
from runtime.lake import proof
from tests.web.filled import person, workspace

pytestmark = pytest.mark.django_db
PARTS = [
    "Database",
    "Redis",
    "Pipeline workers",
    "Push workers",
    "Alert workers",
    "Scheduler",
    "Spark",
    "Store",
    "Disk",
    "Versions",
]


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Path) -> None:
    settings.ONDATRA = replace(settings.ONDATRA, data_dir=tmp_path, tracking_url=(tmp_path / "store").as_uri())


def of(part: str) -> Finding:
    return next(found for found in look() if found.part == part)


def test_each_part_works_or_says_what_to_do() -> None:
    found = look()

    assert [one.part for one in found] == PARTS
    assert [one.part for one in found if (one.state == OK) != (not one.todo)] == []
    assert {one.part: one.state for one in found if one.part in ("Database", "Store")} == {
        "Database": OK,
        "Store": OK,
    }


def test_workers_are_told_with_their_last_sign(settings: Any) -> None:
    sign = timezone.now()
    Worker.objects.create(kind="push", host="gone", pid=1, heartbeat_at=sign, ended_at=sign)
    nobody = of("Push workers")
    mine = Worker.objects.create(kind="scheduler", host="here", pid=2, lock="", heartbeat_at=sign)

    assert (nobody.state, nobody.said) == (BAD, "none lives")
    assert "nothing is delivered" in nobody.todo and settings.ONDATRA.command("up") in nobody.todo
    assert nobody.seen == sign and not workers.is_dead(mine)
    assert of("Scheduler") == Finding("Scheduler", OK, "1 lives", "", "here/2", sign)


def test_a_store_that_takes_no_file_is_bad_with_the_reason_for_who_runs_the_install(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where a folder should be")

    found = of("Store")

    assert (found.state, found.said) == (BAD, "does not answer")
    assert str(tmp_path) in found.detail and str(tmp_path) not in found.said + found.todo


def test_a_part_that_is_silent_holds_up_neither_the_others_nor_the_page(settings: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections and never says a word
        settings.ONDATRA = replace(settings.ONDATRA, redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        began = time.monotonic()
        found = {one.part: one.state for one in look()}

    assert time.monotonic() - began < 20
    assert (found["Redis"], found["Store"]) == (BAD, OK)


def test_a_question_without_an_answer_is_left_behind() -> None:
    began = time.monotonic()
    found = side_by_side(
        {
            "Slow": (lambda: time.sleep(30) or Finding("Slow", OK, ""), "wait"),
            "Quick": (lambda: Finding("Quick", OK, "there"), ""),
        },
        0.2,
    )

    assert found == [Finding("Slow", BAD, "no answer within 0.2 s", "wait"), Finding("Quick", OK, "there")]
    assert time.monotonic() - began < 20


def test_spark_needs_java_its_jars_and_a_master_that_listens(settings: Any, tmp_path: Path, monkeypatch: Any) -> None:
    there = settings.ONDATRA.jars_dir
    settings.ONDATRA = replace(settings.ONDATRA, jars_dir=tmp_path)
    without_jars = machine.spark()
    settings.ONDATRA = replace(settings.ONDATRA, jars_dir=there, spark_master="spark://127.0.0.1:1")
    without_master = machine.spark()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("runtime.lake.java.JVMS", tmp_path)
    without_java = machine.spark()

    states = [(found.state, found.said) for found in (without_jars, without_master, without_java)]
    assert states == [
        (WARNING, "its jars are not there yet"),
        (BAD, "its master takes no connection"),
        (BAD, "Java 17 was not found"),
    ]


def test_the_versions_that_builds_were_tried_with_are_those_of_the_proof() -> None:
    assert tuple(machine.KNOWN.values()) in proof.PROVEN
    assert machine.versions().state == OK


def test_little_room_is_told_before_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEW", 1 << 60)
    few = machine.disk()
    monkeypatch.setattr(machine, "LITTLE", 1 << 60)

    assert (few.state, machine.disk().state) == (WARNING, BAD)


def test_the_page_keeps_addresses_and_folders_for_who_runs_the_install(client: Client, tmp_path: Path) -> None:
    admin = person("alice", workspace())
    client.force_login(admin)
    page = client.get("/settings/environment/").content.decode()
    admin.is_superuser = True
    admin.save()
    full = client.get("/settings/environment/").content.decode()

    assert re.findall(r'<td class="lead nowrap">(.*?)</td>', page) == PARTS
    assert (
        page.count("<b>To do:</b>") == len(re.findall(r'<span class="tag (?:bad|warn)">', page.split("<main")[1])) > 0
    )
    assert (str(tmp_path) in page, str(tmp_path) in full) == (False, True)
    assert re.search(r"<title>\d to look at · Environment · Ondatra</title>", page)


def test_the_command_says_the_same_and_ends_with_1_where_something_is_bad(capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("environment")

    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 1
    assert [line.split(":")[0].split(maxsplit=1)[1] for line in lines if not line.startswith(" ")] == PARTS
