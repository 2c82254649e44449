"""What stands in compose.yaml starts as it stands there, each service on a host of its own, and goes on when one of
them is gone; the story's cluster starts the workers of Spark the same way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import composed
from cluster.installs import ROOT, Install, cluster, until

pytestmark = pytest.mark.server
#: Where the process of each service with a health check runs.
THERE = {"web": "web", "alerts": "web", "scheduler": "web", "push": "push-1"}
HOSTS = {"push-1": "push", "push-2": "push-more", "push-3": "push-more"}
CHUNKS, ROWS = 3, 10_000
#: What a pipeline worker leaves to the push workers, without its Spark: files first, then all rows at once.
STAGED = f"""
import io, uuid
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from django.conf import settings
from django.db import transaction
from ondatra_web.models import Chunk, Delivery, Run, Sync
from ondatra_web.runs import relay
from runtime.staging import states
from runtime.store.opening import open_store
sync, store, n = Sync.objects.get(name="sync.one"), open_store(settings.ONDATRA.staging_url), {ROWS}
columns, urls = [["id", "BIGINT", "BIGINT"]], []
for ordinal in range({CHUNKS}):
    ids = pa.array(range(ordinal * n, (ordinal + 1) * n), pa.int64())
    names = ["id", "__ondatra_rowid", "__ondatra_change_type", "__ondatra_key", "__ondatra_record"]
    rows = pa.table([ids, ids, ["insert"] * n, ids.cast(pa.string()), [True] * n], names=names)
    data, path = io.BytesIO(), f"1/{{sync.pk}}/{{uuid.uuid4().hex}}.parquet"
    pq.write_table(rows, data)
    store.put_new(path, data.getvalue())
    urls.append(store.url_of(path))
amounts = dict.fromkeys(("source_count", "changed", "planned"), {CHUNKS} * n)
with transaction.atomic():
    Sync.objects.filter(pk=sync.pk).update(columns=columns)
    run = Run.objects.create(sync=sync, status="working", staged=True, **amounts)
    for ordinal, url in enumerate(urls):
        chunk = Chunk.objects.create(sync=sync, staged_by=run, url=url, rows=n, records=n, columns=columns,
                                     states=states.pack(np.full(n, states.UNTRIED, np.uint8)))
        Delivery.objects.create(run=run, chunk=chunk, ordinal=ordinal, phase=1, rows=n, records=n)
relay._wake(run, 6)
print("run", run.pk)
"""


def write(project: Path) -> None:
    (project / "models" / "sync").mkdir(parents=True)
    model = "-- @kind: merge\n-- @unique_key: id\n-- @sink: wide('one')\nSELECT 1::BIGINT AS id\n"
    (project / "models" / "sync" / "one.sql").write_text(model)


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Install]:
    with cluster(tmp_path_factory.mktemp("composed"), write, HOSTS) as made:
        yield made


def test_services_start_by_their_commands_and_tell_that_they_live(install: Install) -> None:
    alive = lambda: install.api("GET", "health")["workers"]
    until(lambda: set(alive()) >= {"alerts", "push", "scheduler"} and alive()["push"] == 6, "all are known", 60)

    for service, host in THERE.items():
        install.host(host).runs(composed.health(service), install.env, ROOT)
    with pytest.raises(AssertionError):
        install.host("push-1").runs(composed.health("pipeline"), install.env, ROOT)


def test_a_push_host_without_power_loses_no_row_and_the_others_end_the_run(install: Install) -> None:
    install.destination.seconds["one"] = 2
    run = int(re.findall(r"^run (\d+)$", install.manage("shell", "-c", STAGED), re.M)[0])
    until(lambda: len(install.destination.rows("one")) >= 1_000, "the delivery is under way")
    before = install.api("GET", f"sync_runs/{run}")["run_status"]
    lost = install.at_work(f"Delivery.objects.filter(run={run}, status='claimed').latest('ordinal')")
    install.host(lost).dies()

    ended, sent = install.ended(run, 90), [row["id"] for row in install.destination.rows("one")]
    records = install.api("GET", f"sync_runs/{run}/records_count")
    assert (before, ended["run_status"], records) == ("working", "completed", [{"record_count": CHUNKS * ROWS}])
    assert set(sent) == set(range(CHUNKS * ROWS))
    assert len(sent) <= CHUNKS * ROWS + 8_000, "only calls that were under way go again"
    name = lost if not install.network.why else r"\S+"  # addresses of one machine have its name
    said = rf"push {name}/(\d+) was lost: chunk \d goes on with push \S+/(?!\1 )\d+"
    assert re.search(said, install.page(f"runs/{run}/"))


def test_a_slow_bucket_costs_time_and_no_record(install: Install) -> None:
    install.destination.seconds.clear()
    install.destination.changes("one")
    install.host("s3").slows("1mbit")

    run = int(re.findall(r"^run (\d+)$", install.manage("shell", "-c", STAGED), re.M)[0])
    ended = install.ended(run, 90)
    records = install.api("GET", f"sync_runs/{run}/records_count")
    assert ended["run_status"] == "completed", ended["error_message"]
    assert records == [{"record_count": CHUNKS * ROWS}]
    assert sorted(row["id"] for row in install.destination.rows("one")) == list(range(CHUNKS * ROWS))
