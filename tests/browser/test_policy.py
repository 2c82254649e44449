"""Every page under its policy in a real browser: nothing is refused, nothing is broken, nothing is too wide."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from ondatra_web.models import Chunk, Delivery, Job, Run
from tests.web import filled

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]
#: A folder for pictures of every page, for whoever wants to look at them.
PICTURES = os.environ.get("PICTURES", "")


@pytest.fixture
def run(transactional_db: None, tmp_path: Path) -> Run:
    """A run with a bit of everything, and others of its sync before it."""
    place = filled.workspace()
    sync = filled.a_sync(place, schedule="every 1h", description="Aircraft")
    for n in range(60):
        filled.a_run(sync, "failed" if n % 9 == 0 else "completed", **filled.closing(10 * n + 1))
    begun = {"push": "2026-01-15T06:00:00+00:00"}
    filled.a_run(sync, "working", **filled.closing(4), staged=True, step="push", step_times=begun)

    run = filled.a_run(sync, "completed_with_rejects", **filled.closing(2, rejected=1), tracking="written", staged=True)
    refused = filled.record("N2", "rejected", "422: year", "reject", row=1)
    filled.put_records(run, tmp_path, [filled.record("N1"), refused])

    chunk = Chunk.objects.create(sync=sync, staged_by=run, url="file:///c", rows=2, records=2, states=b"")
    delivery = Delivery.objects.create(
        run=run, chunk=chunk, ordinal=1, rows=2, records=2, status="closed", counts={"succeeded": 1, "rejected": 1}
    )
    Job.objects.create(sync=sync, run=run, chunk=chunk, delivery=delivery, positions=b"", batch_number=1, ref="{}")
    ada = filled.person("ada", place)
    ada.is_staff = ada.is_superuser = True
    ada.save()
    return run


@pytest.fixture
def said(page: Page) -> list[str]:
    """What the browser's console says: refusals by the policy are errors there."""
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    return heard


def _sign_in(page: Page, url: str) -> None:
    page.goto(f"{url}/admin/")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("ada-password")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/admin/")


def _addresses(run: Run) -> dict[str, str]:
    admin = "/admin/ondatra_web"
    return {
        "home": "/",
        "syncs": "/syncs/",
        "sync": f"/syncs/{run.sync_id}/",
        "run": f"/runs/{run.pk}/",
        "working": f"/runs/{run.pk - 1}/",
        "records": f"/runs/{run.pk}/records/?record=records_updated.0:1",
        "models": "/models/",
        "find": "/find/?q=N1",
        "admin": "/admin/",
        "admin runs": f"{admin}/run/",
        "admin older runs": f"{admin}/run/?p=2",
        "admin run": f"{admin}/run/{run.pk}/change/",
        "admin syncs": f"{admin}/sync/?q=air",
        "admin sync": f"{admin}/sync/{run.sync_id}/change/",
        "admin deliveries": f"{admin}/delivery/?run__id__exact={run.pk}",
        "admin deed": f"{admin}/run/{run.pk}/do/expire/",
        "admin workspace": f"{admin}/workspace/{run.sync.workspace_id}/change/",
        "admin people": "/admin/auth/user/",
        "admin person": "/admin/auth/user/1/change/",
        "admin membership": f"{admin}/membership/add/",
        "API": "/api/docs",
    }


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_no_page_breaks_its_policy_or_its_width(
    page: Page, live_server: Any, run: Run, said: list[str], width: int, scheme: Any
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    _sign_in(page, live_server.url)
    wrong: dict[str, Any] = {}

    for name, address in _addresses(run).items():
        said.clear()
        answer = page.goto(live_server.url + address, wait_until="networkidle")
        if name == "API":
            page.locator(".opblock").first.wait_for()
        too_wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/{name}-{width}-{scheme}.png")
        if said or too_wide or answer is None or answer.status != 200:
            wrong[name] = (said[:], too_wide, answer and answer.status)

    assert wrong == {}


def test_a_script_that_a_page_is_made_to_hold_does_not_run(page: Page, live_server: Any, run: Run) -> None:
    _sign_in(page, live_server.url)

    refused = page.evaluate(
        """() => new Promise(resolve => {
             document.addEventListener("securitypolicyviolation", event => resolve(event.violatedDirective));
             document.body.insertAdjacentHTML("beforeend", "<img src='/nothing' onerror='window.ran = true'>");
           })"""
    )

    assert refused.startswith("script-src")
    assert page.evaluate("window.ran") is None


def test_support_expires_a_run_in_three_clicks(page: Page, live_server: Any, run: Run, said: list[str]) -> None:
    _sign_in(page, live_server.url)
    page.goto(f"{live_server.url}/admin/ondatra_web/run/{run.pk}/change/")

    page.get_by_role("link", name="Expire its records").click()
    violations = [v["id"] for v in Axe().run(page).response["violations"]]
    page.get_by_role("button", name="Expire its records").click()

    expect(page.get_by_text(f"The records of run {run.pk} are removed.")).to_be_visible()
    assert page.get_by_role("link", name="Expire its records").count() == 0
    assert (violations, said) == ([], [])
