"""One story, told on one machine and on a cluster: every kind of sync, records, retries, cancels, exports, upkeep, and
what dies or is slow in the middle. Nothing is lost, every run ends, and the page says what happened."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.installs import PIPELINE, PUSHES, Install, cluster, embedded, until

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.slow]
KINDS = {
    "table": "",
    "append": "-- @unique_key: id\n",
    "merge": "-- @unique_key: id\n-- @on_missing: delete\n",
    "tracked": "-- @group_key: team\n",
    "scd2": "-- @unique_key: id\n",
    "partition": "-- @partitioned_by: team\n",
}
#: Rows of two chunks.
MANY = 60_000
MODELS = {
    "staging.people": "SELECT id, upper(name) AS name, team, amount FROM read_csv('people.csv')",
    "sync.few": "-- @kind: merge\n-- @unique_key: id\n-- @sink: few('few')\nSELECT id + 0 AS id FROM staging.people",
    "sync.many": "-- @kind: merge\n-- @unique_key: id\n-- @sink: wide('many')\n-- @dialect: spark\n"
    f"SELECT id, id % 7 AS n FROM range({MANY})",
    "sync.held": "-- @kind: merge\n-- @unique_key: id\n-- @sink: wide('held')\nSELECT id, n FROM shop.public.held",
    **{
        f"sync.{kind}": f"-- @kind: {kind}\n{keys}-- @sink: dest('{kind}')\nSELECT * FROM staging.people"
        for kind, keys in KINDS.items()
    },
}
#: What each kind sends when one row has changed, one is gone and one is new; the destination never had the row that it
#: refused.
LATER = {
    "table": {"delete": 29, "insert": 30},
    "append": {"insert": 1},
    "merge": {"delete": 1, "insert": 1, "update_postimage": 1, "update_preimage": 1},
    "tracked": {"delete": 20, "insert": 20},
    "scd2": {"insert": 2, "update_postimage": 1, "update_preimage": 1},
    "partition": {"delete": 20, "insert": 20},
}


def people(project: Path, ids: Iterator[int] | range | list[int], raised: int = 0) -> None:
    lines = [f"{i},n{i},t{i % 3},{i + (i == raised)}" for i in ids]
    (project / "people.csv").write_text("id,name,team,amount\n" + "\n".join(lines) + "\n")


def write(project: Path) -> None:
    people(project, range(1, 31))
    for name, text in MODELS.items():
        path = project / "models" / f"{name.replace('.', '/')}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


@pytest.fixture(scope="module", params=["embedded", "cluster"])
def install(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Install]:
    begun = time.monotonic()
    with {"embedded": embedded, "cluster": cluster}[request.param](tmp_path_factory.mktemp("story"), write) as made:
        print(f"{request.param}: up after {time.monotonic() - begun:.0f} s")
        yield made


#: One machine has one Spark, which is lost with its pipeline worker; and its S3 would be a folder.
ON_A_CLUSTER = pytest.mark.parametrize("install", ["cluster"], indirect=True)


def ids(install: Install, name: str) -> list[int]:
    """What came of a sync, each row as often as it was sent."""
    return sorted(row["id"] for row in install.destination.rows(name))


def test_every_kind_sends_what_is_new_and_later_what_changed(install: Install) -> None:
    install.destination.refuses = {5}
    first = [install.trigger(f"sync.{kind}") for kind in KINDS]
    ended = [install.ended(run) for run in first]
    assert {run["run_status"] for run in ended} == {"completed_with_rejects"}, ended
    assert {kind: dict(install.destination.changes(kind)) for kind in KINDS} == dict.fromkeys(KINDS, {"insert": 30})

    install.destination.refuses = set()
    people(install.project, [*range(1, 30), 31], raised=1)
    later = [install.trigger(f"sync.{kind}") for kind in KINDS]
    ended = [install.ended(run) for run in later]
    assert {run["run_status"] for run in ended} == {"completed"}, ended
    assert {kind: dict(install.destination.changes(kind)) for kind in KINDS} == LATER


def test_a_reject_is_found_exported_and_sent_again(install: Install) -> None:
    run = install.api("GET", f"syncs/{install.syncs['sync.merge']}/sync_runs?per_page=9")[-1]["id"]
    records = install.api("GET", f"sync_runs/{run}/records?status=rejected")
    assert [(r["identifier"], r["status_message"]) for r in records] == [("5", "422: no such id")]
    assert "422: no such id" in install.page(f"runs/{run}/")

    export = install.api("POST", f"sync_runs/{run}/exports", {"format": "csv"})["id"]
    until(lambda: install.api("GET", f"exports/{export}")["status"] == "done", "the export is done")
    assert install.api("GET", f"exports/{export}/file").count(b"\r\n") == 31

    again = install.api("POST", f"sync_runs/{run}/retry?status=rejected", {})["sync_run_id"]
    assert (install.ended(again)["run_status"], ids(install, "merge")) == ("completed", [5])


def test_a_cancelled_run_leaves_the_rest_for_the_next(install: Install) -> None:
    install.destination.holds("few", after=2)
    run = install.trigger("sync.few")
    until(lambda: install.destination.waiting["few"], "the third call has come")
    install.api("POST", f"sync_runs/{run}/cancel", {})
    install.destination.seconds["few"] = 1
    install.destination.goes_on("few")
    assert install.ended(run)["run_status"] == "cancelled"
    early = ids(install, "few")

    install.destination.seconds.clear()
    assert install.ended_run("sync.few")["run_status"] == "completed"
    assert len(early) < 30
    assert ids(install, "few") == [*range(1, 30), 31], "each row goes once"


def test_a_push_host_that_is_lost_in_the_middle_loses_nothing(install: Install) -> None:
    install.destination.holds("many", after=8)
    run = install.trigger("sync.many")
    until(lambda: install.destination.waiting["many"], "the delivery is under way")
    host = install.at_work(f"Delivery.objects.filter(run={run}, status='claimed').latest('ordinal')")
    install.host(host).dies()
    install.destination.goes_on("many")
    install.starts_again(host, "push", PUSHES)

    ended, sent = install.ended(run, 120), ids(install, "many")
    assert (ended["run_status"], ended["records_updated"]) == ("completed", MANY)
    assert sorted(set(sent)) == list(range(MANY))
    assert len(sent) <= MANY + 6_000, "only calls that were under way go again"
    assert "was lost: chunk" in install.page(f"runs/{run}/")


def test_a_pipeline_host_that_is_lost_in_a_build_is_replaced(install: Install) -> None:
    with install.shop.held():
        run = install.trigger("sync.held")
        first = until(install.shop.reading, "the build is under way")
        host = install.at_work(f"Run.objects.get(pk={run})")
        install.host(host).end()
        install.starts_again(host, "pipeline", PIPELINE)
        until(lambda: install.shop.reading() - first, "another one builds it")

    assert (install.ended(run)["run_status"], ids(install, "held")) == ("completed", list(range(1, 41)))
    assert re.search(
        r"pipeline \S+ was lost while it built the run: pipeline \S+ begins anew", install.page(f"runs/{run}/")
    )


@ON_A_CLUSTER
def test_a_spark_worker_that_is_lost_in_a_build_costs_time_and_no_row(install: Install) -> None:
    install.destination.changes("held")
    install.shop.raises()
    with install.shop.held():
        run = install.trigger("sync.held")
        (speaker,) = until(install.shop.readers, "an executor reads")
        first = install.shop.reading()
        install.network.host_from(*speaker).end()
        until(lambda: install.shop.reading() - first, "another one reads it")

    ended = install.ended(run)
    assert (ended["run_status"], ended["error_message"]) == ("completed", None), install.page(f"runs/{run}/")
    assert set(ids(install, "held")) == set(range(1, 41))
    assert re.search(r"Spark's executor \S+:\d+ was lost while the table was built", install.page(f"runs/{run}/"))


@ON_A_CLUSTER
def test_a_slow_bucket_costs_time_and_no_row(install: Install) -> None:
    install.host("s3").slows("4mbit")
    people(install.project, range(1, 33))
    ended = install.ended_run("sync.merge")
    install.host("s3").is_quick_again()

    assert (ended["run_status"], ended["error_message"]) == ("completed", None)
    records = install.api("GET", f"sync_runs/{ended['id']}/records?per_page=100")
    assert sorted(int(record["identifier"]) for record in records) == [1, 30, 32]


def test_the_lake_is_looked_after_and_nothing_is_sent_because_of_it(install: Install) -> None:
    install.destination.changes("merge")
    install.sends("upkeep", "Workspace")
    for name in MODELS:
        until(lambda: install.says(f"the table of {name} was looked after"), f"{name} is looked after")  # noqa: B023

    ended = install.ended_run("sync.merge")
    assert (ended["run_status"], ended["records_updated"], ids(install, "merge")) == ("completed", 0, [])


def test_the_records_become_a_table(install: Install) -> None:
    install.sends("sync_log", "Organization")
    waiting = "[sync_log.waiting(o) for o in Organization.objects.all()] + [not SyncLog.objects.exists()]"
    until(lambda: not any(install.told(waiting)), "the records are in the table")
