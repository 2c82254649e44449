"""bin/screenshots: the demo in a folder of its own, some days of it delivered, and its pages as pictures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Page, sync_playwright  # noqa: E402

from ondatra_web.serving import ports  # noqa: E402
from ondatra_web.serving.processes import Background, step  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
#: Bytes of one picture: the README is read over slow lines, too.
MOST = 200_000
SIZE = {"width": 1280, "height": 800}
#: Days that are revealed one by one behind those of the first run.
DAYS = 3
SYNC = "sync.aircraft"


def manage(*args: str) -> str:
    """What one of the product's commands prints; 1 is no failure of a run, since the demo refuses some rows."""
    done = subprocess.run([sys.executable, "manage.py", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise SystemExit(f"manage.py {' '.join(args)} failed: {done.stderr or done.stdout}")
    return done.stdout


def demo(folder: Path, background: Background) -> tuple[str, str, str]:
    """The demo with its runs, served. Its address, and a name and password to sign in with."""
    for part in ("models", "lib"):
        shutil.copytree(ROOT / part, folder / part)
    destination = ports.free(18_765, "the demo destination")
    os.environ |= {
        "ONDATRA_PROJECT_DIR": str(folder),
        "ONDATRA_DATA_DIR": str(folder / "data"),
        "DEMO_URL": f"http://{ports.HOST}:{destination}",
        "DJANGO_DEBUG": "on",  # so that its server has the style sheet
    }
    with step("database"):
        manage("migrate", "--verbosity", "0")
        login = json.loads(manage("first_user", "--json"))
    manage("demo", "load")
    command = [sys.executable, "manage.py", "demo_destination", "--port", str(destination)]
    background.start("destination", command, destination)
    for day in range(DAYS + 1):
        with step(f"run {day + 1} of {DAYS + 1}"):
            manage("run")
            manage("demo", "next")
    with step("a run without the destination"):
        background.running["destination"].terminate()
        manage("run")
    web = ports.free(18_000, "the pages")
    background.start("web", [sys.executable, "manage.py", "runserver", "--noreload", str(web)], web)
    return f"http://{ports.HOST}:{web}", login["name"], login["password"]


def pictures(page: Page, url: str, name: str, password: str) -> None:
    page.goto(f"{url}/login/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Syncs").wait_for()
    take(page, "home")

    page.locator("section[aria-label=Syncs]").get_by_role("link", name=SYNC).click()
    page.wait_for_url("**/syncs/*/")
    take(page, "sync")
    runs = page.locator("section[aria-label=Runs] tbody .lead a")
    first, newest = runs.last.get_attribute("href"), runs.nth(1).get_attribute("href")  # of those that arrived
    page.goto(f"{url}{first}")
    take(page, "run")

    page.goto(f"{url}{newest}records/?change_type=update_postimage")
    page.locator(".list tbody .lead a").first.click()
    page.get_by_role("complementary").locator("del").first.wait_for()
    take(page, "records")

    page.goto(f"{url}/alerts/?state=all")
    page.locator("section[aria-label=Alerts] tbody a", has_text=SYNC).first.click()
    page.wait_for_url("**/alerts/*/")
    take(page, "alert")


def take(page: Page, name: str) -> None:
    page.wait_for_load_state("networkidle")
    place = PICTURES / f"{name}.png"
    page.screenshot(path=place)
    size = place.stat().st_size
    print(f"  {place.relative_to(ROOT)}: {size:,} bytes", flush=True)
    if size > MOST:
        raise SystemExit(f"{place} has {size:,} bytes, more than {MOST:,}: show less on it")


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("chromium was not found: install it (Debian: apt-get install chromium), or run bin/test")
    folder = Path(tempfile.mkdtemp(prefix="ondatra-screenshots-"))
    background = Background(folder / "data", ROOT)
    PICTURES.mkdir(exist_ok=True)
    try:
        told = demo(folder, background)
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--headless"])
            pictures(browser.new_page(viewport=SIZE, color_scheme="light"), *told)
            browser.close()
    finally:
        background.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
