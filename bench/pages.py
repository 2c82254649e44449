"""Times every page, fragment and admin list of a long history as a signed-in person. Usage: python bench/pages.py
[--syncs 1000] [--models 1200] [--runs 100000] [--groups 30000] [--times 12]

Each address is asked through all of the product but the socket. Its limit is 100 ms for 95 of 100 requests, that of
the lineage 250 ms. The ratio is the slowest one's over its limit. Beside other programs the processor's time says more:
SQLite works in the same process. With a DATABASE_URL the history is written into that empty database instead.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from _filled import fill, records
from _product import ROOT, install

#: Milliseconds.
LIMIT, LIMITS = 100, {"/models/lineage/": 250}
WARM = 2
LONGEST = 10_000


def addresses(ids: dict[str, int]) -> list[str]:
    """Every GET of a person, with the filters that people use."""
    sync, run, organization, workspace = (ids[f"{n}_id"] for n in ("sync", "run", "organization", "workspace"))
    return [
        "/",
        "/syncs/",
        "/syncs/?q=number_07",
        "/syncs/?page=5",
        "/syncs/?status=failed",
        "/find/?q=4711",
        f"/find/?q={run}",
        "/find/?q=number_0700",
        "/find/?q=customer-042",  # in every sync
        "/find/?q=customer-077-7",  # in one
        "/find/?q=customer-500",  # in none, with room for it in every file
        "/find/?q=customer-0&how=beginning",
        "/find/?q=customer-077-7&how=beginning",
        f"/syncs/{sync}/",
        f"/syncs/{sync}/?page=100",
        f"/syncs/{sync}/?status=failed",
        f"/syncs/{sync}/discard/",
        f"/syncs/{sync}/history/?identifier=4711",
        f"/runs/{run}/",
        f"/runs/{run}/live/",
        f"/runs/{run}/records/",
        f"/runs/{run}/records/?status=rejected",
        f"/runs/{run}/retry/",
        "/models/",
        "/models/?q=table_01",
        "/models/lineage/",
        f"/models/{ids['state_id']}/",
        f"/store/{organization}/",
        "/settings/account/",
        "/alerts/",
        "/alerts/?state=resolved",
        f"/settings/alert-rules/of/{workspace}/",
        f"/settings/channels/of/{organization}/",
        "/settings/members/",
        "/settings/workspaces/",
        "/settings/tokens/",
        "/settings/audit/",
        "/settings/audit/?who=alice",
        "/admin/",
        *admin_lists(),
    ]


def admin_lists() -> list[str]:
    """Each list of the admin site, and the search of those that have one."""
    from ondatra_web.admin import site

    found = []
    for model, admin in site._registry.items():
        path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        found += [path, *([f"{path}?q=4711"] if admin.search_fields else [])]
    return found


def timed(paths: list[str], times: int) -> dict[str, tuple[float, float]]:
    """Milliseconds of 95 of 100 requests, by path: wall, and of a processor."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get(username="alice"))
    took: dict[str, list[tuple[float, float]]] = {path: [] for path in paths}
    for round_ in range(WARM + times):  # in turns, so that what else the machine does meets all
        for path in paths:
            began, cpu = time.perf_counter(), time.process_time()
            answer = client.get(path)
            wall, cpu = (time.perf_counter() - began) * 1000, (time.process_time() - cpu) * 1000
            assert answer.status_code == 200, (path, answer.status_code)
            if round_ >= WARM:
                took[path].append((wall, cpu))
    return {path: (_p95(wall for wall, _ in told), _p95(cpu for _, cpu in told)) for path, told in took.items()}


def _p95(values: Iterable[float]) -> float:
    found = sorted(values)
    return found[int(0.95 * (len(found) - 1))]


def limit(path: str) -> float:
    return LIMITS.get(path.partition("?")[0], LIMIT)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("syncs", 1_000), ("models", 1_200), ("runs", 100_000), ("groups", 30_000), ("times", 12)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))

    folder = install("pages")
    began = time.perf_counter()
    ids = fill(
        syncs=asked.syncs,
        models=asked.models,
        runs=asked.runs,
        longest=min(LONGEST, asked.runs // 10),
        groups=asked.groups,
    )
    records(ids["run_id"], Path(folder) / "records", 100)
    print(f"filled in {time.perf_counter() - began:.0f} s")

    found = timed(addresses(ids), asked.times)
    over = {path: wall / limit(path) for path, (wall, _) in found.items()}
    for path in sorted(over, key=lambda path: -over[path])[:20]:
        print(f"{found[path][0]:7.1f} ms, of a processor {found[path][1]:7.1f} ms  {path}")
    busy = max(cpu / limit(path) for path, (_, cpu) in found.items())
    print(f"pages: ratio {max(over.values()):.2f} ({len(found)} addresses; of a processor {busy:.2f})")


if __name__ == "__main__":
    main()
