"""The product in a real browser, with its real processes: Redis, web server, worker, Spark, and a destination that
refuses some rows."""

from __future__ import annotations

import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.installed import PATIENCE, Install, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.spark, pytest.mark.slow]
ALERTS = (
    "/alerts/",
    "/alerts/1/",
    "/settings/alert-rules/",
    "/settings/alert-rules/of/1/add/?kind=deviation",
    "/settings/channels/",
    "/settings/channels/1/",
)
SETTINGS = (
    "account",
    "members",
    "schedules",
    "retention",
    "workspaces",
    "workspaces/new",
    "tokens",
    "environment",
    "audit",
)


def _identifiers(page: Page) -> list[str]:
    return page.locator(".list tbody .lead code").all_inner_texts()


def test_the_engine_is_ready_before_somebody_asks_for_a_run(served: str, home: Path) -> None:
    until = time.monotonic() + PATIENCE
    while "Spark is ready" not in (said := (home / "worker.log").read_text()):
        assert time.monotonic() < until, said
        time.sleep(0.2)


def test_the_environment_tells_which_processes_live(signed_in: Page, install: Install) -> None:
    signed_in.goto(f"{install.url}/settings/environment/")

    told = {
        row.locator("td").first.inner_text(): row.locator(".tag").inner_text()
        for row in signed_in.locator("tbody tr").all()
    }
    works = ("Database", "Redis", "Pipeline workers", "Push workers", "Alert workers", "Spark", "Store", "Versions")
    assert {part: told[part] for part in (*works, "Scheduler")} == {
        **dict.fromkeys(works, "Works"),
        "Scheduler": "Does not work",
    }


def test_a_run_started_in_the_browser_ends_with_sums_that_close(signed_in: Page, install: Install) -> None:
    signed_in.goto(install.run)

    expect(signed_in.locator(".flow")).to_contain_text("Succeeded")
    assert [b.inner_text() for b in signed_in.locator(".flow b").all()] == ["60", "0", "0", "60", "57", "3", "0", "0"]
    expect(signed_in.get_by_text("The sums close")).to_be_visible()
    expect(signed_in.locator("#live[hx-get]")).to_have_count(0)


def test_a_mail_tells_of_the_rejects_and_leads_to_them(signed_in: Page, install: Install) -> None:
    until = time.monotonic() + 60
    while len(install.mails.mails) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    test, alert = install.mails.mails
    body = alert.get_body(("plain",))
    assert body is not None and test["Subject"] == "[test] On call"
    text = body.get_content()
    assert text.startswith("sync.aircraft: 3 of 60 records were not taken (5 %)")
    assert '3 × 400: field "year" is required' in text

    signed_in.goto(re.findall(r"http\S+/alerts/\d+/", text)[0])
    signed_in.get_by_role("link", name="records", exact=True).click()
    expect(signed_in.get_by_role("dialog")).to_be_visible()
    signed_in.goto(re.findall(r"http\S+/runs/\d+/", text)[0])
    expect(signed_in).to_have_url(install.run)


def test_the_records_window_filters_searches_and_closes(signed_in: Page, install: Install) -> None:
    signed_in.goto(install.run)
    signed_in.get_by_role("link", name="View Records").click()
    expect(signed_in.get_by_role("dialog")).to_be_visible()

    signed_in.get_by_role("link", name="Rejected 3").click()
    expect(signed_in.locator(".list tbody tr")).to_have_count(3)
    assert "status=rejected" in signed_in.url

    signed_in.get_by_role("link", name="Clear").click()
    expect(signed_in.locator(".list tbody tr")).to_have_count(25)
    signed_in.keyboard.press("/")
    signed_in.keyboard.type("N11")
    signed_in.keyboard.press("Enter")
    expect(signed_in.locator(".list tbody tr")).to_have_count(10)
    assert sorted(_identifiers(signed_in)) == [f"N{n}AA" for n in range(110, 120)]

    signed_in.get_by_role("link", name="Close").click()
    expect(signed_in).to_have_url(install.run)


def test_a_rejected_record_shows_the_request_and_the_answer(signed_in: Page, install: Install) -> None:
    signed_in.goto(f"{install.run}records/?status=rejected")

    signed_in.locator(".list").get_by_role("link", name="N103AA").click()

    side = signed_in.get_by_role("complementary")
    expect(side).to_contain_text('400: field "year" is required')
    expect(side.get_by_label("Request", exact=True)).to_contain_text('"tailnum": "N103AA"')
    expect(side.get_by_label("Answer", exact=True)).to_contain_text("is required")
    expect(side).to_contain_text("http://127.0.0.1:")


def test_keys_go_through_the_rows_open_a_record_and_close_it_again(signed_in: Page, install: Install) -> None:
    signed_in.goto(f"{install.run}records/?status=rejected")
    side, keys = signed_in.get_by_role("complementary"), signed_in.keyboard
    links = signed_in.locator(".list tbody .lead a")
    first, second = _identifiers(signed_in)[:2]

    keys.press("j")
    expect(links.nth(0)).to_be_focused()
    keys.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    keys.press("Enter")
    expect(side.locator("h3")).to_have_text(second)
    keys.press("k")
    expect(side.locator("h3")).to_have_text(first)
    expect(links.nth(0)).to_be_focused()

    keys.press("Escape")
    expect(side).to_have_count(0)
    expect(signed_in.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(signed_in).to_have_url(install.run)


def test_what_the_filter_selects_is_downloaded(signed_in: Page, install: Install) -> None:
    signed_in.goto(f"{install.run}records/?status=rejected")
    signed_in.get_by_text("Download 3 rows").click()

    with signed_in.expect_download() as waited:
        signed_in.get_by_role("link", name="CSV").click()

    lines = waited.value.path().read_text("utf-8-sig").splitlines()
    assert waited.value.suggested_filename.endswith(".rejected.csv")
    assert sorted(line.split(",")[0].strip('"') for line in lines[1:]) == ["N103AA", "N123AA", "N143AA"]


def test_the_address_of_a_window_can_be_shared_and_gone_back_from(signed_in: Page, install: Install) -> None:
    signed_in.goto(f"{install.run}records/?status=rejected")
    signed_in.locator(".list").get_by_role("link", name="N103AA").click()
    expect(signed_in.get_by_role("complementary")).to_be_visible()
    shared = signed_in.url

    signed_in.go_back()
    expect(signed_in.get_by_role("complementary")).to_have_count(0)
    signed_in.goto(shared)

    expect(signed_in.get_by_role("complementary", name="Record N103AA")).to_be_visible()


def test_on_a_phone_a_record_is_a_page_of_its_own(signed_in: Page, install: Install) -> None:
    signed_in.set_viewport_size({"width": 390, "height": 844})
    signed_in.goto(f"{install.run}records/?status=rejected")
    signed_in.locator(".list").get_by_role("link", name="N103AA").click()

    expect(signed_in.get_by_role("complementary")).to_be_visible()
    expect(signed_in.locator(".list")).to_be_hidden()
    signed_in.get_by_role("link", name="All records").click()
    expect(signed_in.locator(".list")).to_be_visible()


def test_every_page_works_without_javascript(browser: Browser, install: Install) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, install.url)

    page.goto(f"{install.run}records/")
    page.get_by_label("Search records").fill("N103")
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator(".list").get_by_role("link", name="N103AA").click()

    expect(page.get_by_role("complementary")).to_contain_text("is required")
    context.close()


def test_moments_stand_in_the_readers_zone_which_is_named(browser: Browser, install: Install) -> None:
    context = browser.new_context(timezone_id="Asia/Tokyo")
    page = context.new_page()
    sign_in(page, install.url)

    page.goto(install.run)
    started = page.locator("#live .head time").first
    at = datetime.fromisoformat(str(started.get_attribute("datetime")))

    expect(page.locator(".bar")).to_contain_text("times in Asia/Tokyo")
    expect(started).to_have_text(re.compile(f"{at.astimezone(ZoneInfo('Asia/Tokyo')):%H:%M}$"))
    expect(started).to_have_attribute("title", re.compile(f"Asia/Tokyo · {at:%Y-%m-%d %H:%M:%S} UTC$"))
    context.close()


def test_a_chosen_theme_stays(signed_in: Page, install: Install) -> None:
    signed_in.emulate_media(color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = signed_in.evaluate(paper)

    signed_in.get_by_role("button", name="Theme: system").click()
    signed_in.get_by_role("button", name="Theme: light").click()
    signed_in.goto(f"{install.url}/syncs/")

    expect(signed_in.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert signed_in.evaluate(paper) != light


def test_a_search_goes_on_by_itself_until_every_sync_was_searched(signed_in: Page, install: Install) -> None:
    signed_in.goto(f"{install.url}/find/?q=N103AA")

    expect(signed_in.locator("#found tr")).to_have_count(1)
    expect(signed_in.locator("#coverage")).to_contain_text("Searched 1 of 1 sync")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_pages_fit_and_have_no_barriers(signed_in: Page, install: Install, width: int, scheme: Any) -> None:
    signed_in.set_viewport_size({"width": width, "height": 900})
    signed_in.emulate_media(color_scheme=scheme)
    found: dict[str, Any] = {}

    opened = f"{install.run}records/?status=rejected&record=records_updated.0:3"
    settings = [f"/settings/{page}/" for page in SETTINGS]
    lists = ("/", "/syncs/", "/syncs/1/", "/models/", "/store/", "/find/?q=N103AA", "/docs/", "/docs/commands/")
    for address in (*lists, install.run, opened, *settings, *ALERTS):
        signed_in.goto(address if address.startswith("http") else install.url + address)
        violations = [(v["id"], v["nodes"][0]["html"]) for v in Axe().run(signed_in).response["violations"]]
        too_wide = signed_in.evaluate("document.documentElement.scrollWidth > innerWidth")
        if violations or too_wide:
            found[address] = (violations, too_wide)

    assert found == {}
