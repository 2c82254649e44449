"""What stands in compose.yaml starts as it stands there, each service on a host of its own; the story's cluster starts
the workers of Spark the same way."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import composed
from cluster.installs import ROOT, cluster, until

pytestmark = pytest.mark.server
#: Where the process of each service with a health check runs.
THERE = {"web": "web", "alerts": "web", "scheduler": "web", "push": "push-1"}


def write(project: Path) -> None:
    (project / "models" / "sync").mkdir(parents=True)
    (project / "models" / "sync" / "one.sql").write_text("-- @sink: dest('one')\nSELECT 1 AS id\n")


def test_services_start_by_their_commands_and_tell_that_they_live(tmp_path: Path) -> None:
    with cluster(tmp_path, write, {"push-1": "push"}) as install:
        told = lambda: set(install.api("GET", "health")["workers"]) >= {"alerts", "push", "scheduler"}
        until(told, "every process is known", 60)
        for service, host in THERE.items():
            install.host(host).runs(composed.health(service), install.env, ROOT)
        install.host("push-1").end()
        with pytest.raises(AssertionError):
            install.host("push-1").runs([*composed.health("push")[:-1], "pipeline"], install.env, ROOT)
