"""Every page, in every state it can show and in both themes: no barrier that axe finds, nothing wider than its
window."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.browser import states
from tests.web import filled

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True, serialized_rollback=True)]
#: A folder for pictures of every page, for whoever wants to look at them.
PICTURES = os.environ.get("PICTURES", "")
#: Everything that folds is open, menus and dialogs included.
UNFOLD = "document.querySelectorAll('details').forEach(d => { d.removeAttribute('name'); d.open = true; })"


def _sign_in(page: Page, url: str, name: str) -> None:
    page.context.clear_cookies()
    page.goto(f"{url}/login/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(f"{name}-password")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/")


def _barriers(page: Page, pages: Iterable[tuple[str, str]], look: str) -> dict[str, Any]:
    """What is wrong with each page, as it is and with all unfolded."""
    found = {}
    for name, address in pages:
        page.goto(address)
        too_wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/{name.replace('/', '_')}-{look}.png", full_page=True)
        page.evaluate(UNFOLD)
        violations = [(v["id"], v["nodes"][0]["html"]) for v in Axe().run(page).response["violations"]]
        if violations or too_wide:
            found[name] = (violations, too_wide)
    return found


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_no_page_in_no_state_has_a_barrier(
    browser: Browser, live_server: Any, tmp_path: Path, width: int, scheme: Any
) -> None:
    place = filled.workspace()
    states.project(place, tmp_path / "project")
    persons = states.people_of(place)
    pages = states.addresses(persons["ada"], place, tmp_path)
    run = f"/runs/{pages['record refused'].split('/')[2]}/"
    of_each = {
        "ada": pages,
        "vera": {"without payloads": run, "records without payloads": f"{run}records/"},
        "eve": {f"empty {address}": address for address in states.EMPTY},
    }
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    url, look = live_server.url, f"{width}-{scheme}"

    found = _barriers(page, ((f"door {a}", url + a) for a in states.DOORS), look)
    for name, addresses in of_each.items():
        _sign_in(page, url, name)
        found |= _barriers(page, ((n, url + a) for n, a in addresses.items()), look)

    assert not found, "\n".join(f"{name}: {wrong}" for name, wrong in found.items())
