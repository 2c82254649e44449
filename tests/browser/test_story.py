"""The whole story of a failure, by hand in Chromium: an alert calls, its link leads to the rows, the destination is
mended, the rows are sent again, and a mail says that it is over. On the way every question of a person on call is
answered in three clicks or fewer."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, expect
from receivers import Mailbox

from tests.browser.installed import Destination, ends, make_channel, sign_in, start_run, write_planes

pytestmark = [pytest.mark.browser, pytest.mark.spark, pytest.mark.slow]
#: Aircraft that lose their year after they were delivered; the destination stops taking those on the same day.
EDITED = (10, 11, 12, 13, 14)
REASON = '400: field "year" is required'


#: Links to follow: where each stands on its page.
ALERT = "[role=status] a:has-text('sync.aircraft')"
SYNC = "section[aria-label='Needs you'] a:has-text('sync.aircraft')"
RUN = "section[aria-label='Needs you'] a:has-text('Open run')"
ROWS = "section[aria-label=Reasons] a:has-text('Show rows')"
AGAIN = "section[aria-label=Reasons] a:has-text('Send again')"
RECORD = ".list a:has-text('N110AA')"
CHANNEL = "section[aria-labelledby=history] a:has-text('On call')"
FIRST_RUN = "section[aria-label=Runs] a:has-text('run 1')"
OPEN = (RUN, ROWS, RECORD)
#: What a person on call asks: the links from the first page on, where the answer stands, and what it says.
QUESTIONS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "Does anything need me?": ((), "main", "Needs you 1 sync"),
    "What failed?": ((), "section[aria-label='Needs you']", "sync.aircraft → Assets / Aircraft"),
    "Why, in a line?": ((), "section[aria-label='Needs you']", f"5 rows: {REASON}"),
    "What is to be done?": ((), "section[aria-label='Needs you']", "send them again from there"),
    "How are the others?": ((), "section[aria-label=Syncs]", "sync.aircraft"),
    "How bad is it?": ((ALERT,), "main .head", "Critical"),
    "Since when?": ((ALERT,), ".facts", r"Since \S.*\d\d:\d\d"),
    "How many rows, of how many?": ((ALERT,), ".facts", "Rows 5 of 5"),
    "By which rule was I called?": ((ALERT,), ".facts", "warning from 5, critical from 50 % of the records"),
    "Was anybody told?": ((ALERT,), "section[aria-labelledby=history]", r"Raised as critical .* On call .*\d\d:\d\d"),
    "Did the message arrive?": ((ALERT, CHANNEL), "#log", "Arrived"),
    "Who sees to it?": ((ALERT,), "main", "Acknowledge"),
    "Did the run go through to its end?": ((RUN,), "#live .head", "With rejects"),
    "Who started it, when, how long did it take?": ((RUN,), "#live .head", r"\d\d:\d\d · took \d.* · started by alice"),
    "Where did every row go?": ((RUN,), ".flow", "Source rows 60 .* Unchanged 55 .* Rejected 5"),
    "Do the numbers close?": ((RUN,), "#live", "The sums close"),
    "Is the reason new?": ((RUN,), "section[aria-label=Reasons]", f"{REASON} Rejected 5 new in this run"),
    "Which step took how long?": ((RUN,), "section[aria-label=Steps]", r"Push · \d"),
    "What did the run say?": ((RUN,), "#live", "Log 5 lines .* N110AA was refused"),
    "Which rows?": ((RUN, ROWS), ".list", "N110AA Rejected .* N114AA Rejected"),
    "Who else had this reason before?": ((RUN, ROWS), "[aria-label=Reason]", rf"{re.escape(REASON)} \(5\)"),
    "What does the source say of this row?": (OPEN, "aside", 'tailnum "N110AA" year .* seats 5'),
    "What has changed since it was last delivered?": (OPEN, "aside", "1 field changed .* year 2000 → null"),
    "What was sent?": (OPEN, "aside [aria-label=Request]", '"tailnum": "N110AA", "year": null'),
    "Where to?": (OPEN, "aside .call", r"POST http://127.0.0.1:\d+/aircraft 400"),
    "What did the other side say?": (OPEN, "aside [aria-label=Answer]", "is required"),
    "Was it tried again?": (OPEN, "aside", "attempt 1"),
    "Did it ever go through, and when last?": (OPEN, "aside", r"run 1 Success \S.*\d\d:\d\d"),
    "What would be sent again?": ((RUN, AGAIN), "section[aria-label=Preview]", "5 records"),
    "When does it run next?": ((SYNC,), ".facts", "Schedule by hand"),
    "How much waits?": ((SYNC,), ".facts", "Waiting"),
    "How did it go before?": ((SYNC, FIRST_RUN), "#live .head", "Completed"),
    "What is it meant to send, and how?": ((SYNC,), "section[aria-label^=Settings]", "SELECT .* http.post"),
}


@pytest.fixture(scope="module")
def alarmed(served: str, home: Path, destination: Destination, browser: Browser, mails: tuple[Mailbox, int]) -> str:
    """The text of the mail that tells of rows which a run could not deliver; before it, everything was delivered."""
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, served)
    make_channel(page)
    destination.strict = False
    start_run(page, "Completed")
    destination.strict = True
    write_planes(home / "project", without_year=[3, 23, 43, *EDITED])
    start_run(page, "With rejects")
    context.close()
    return text_of(mails[0], 2)


def text_of(box: Mailbox, number: int) -> str:
    """The mail of that number, from 1, once it has come."""
    until = time.monotonic() + 60
    while len(box.mails) < number and time.monotonic() < until:
        time.sleep(0.1)
    body = box.mails[number - 1].get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def _followed(page: Page, home: str, clicks: Sequence[str]) -> None:
    page.goto(home)
    for click in clicks:
        page.locator(click).first.click()


def _told(page: Page, place: str) -> str:
    """What stands there, with what is folded."""
    found = page.locator(place).first
    found.wait_for()
    return " ".join(str(found.evaluate("element => element.innerText + ' ' + element.textContent")).split())


def unanswered(page: Page, home: str, clicks: Sequence[str]) -> dict[str, str]:
    """The questions that these clicks should answer and do not, each with what stands in its place."""
    asked = {question: told[1:] for question, told in QUESTIONS.items() if told[0] == clicks}
    try:
        _followed(page, home, clicks)
        found = {question: _told(page, place) for question, (place, _) in asked.items()}
    except Error as error:
        return dict.fromkeys(asked, str(error))
    return {question: said for question, said in found.items() if not re.search(asked[question][1], said, re.I)}


def test_each_question_of_a_person_on_call_takes_three_clicks_at_most(alarmed: str, served: str, page: Page) -> None:
    sign_in(page, served)
    page.set_default_timeout(5_000)

    ways = {clicks for clicks, _, _ in QUESTIONS.values()}
    wrong = {question: said for clicks in ways for question, said in unanswered(page, served, clicks).items()}

    assert wrong == {}
    assert max(map(len, ways)) == 3


def test_who_has_seen_an_alert_stands_on_the_page_of_its_sync(alarmed: str, served: str, page: Page) -> None:
    sign_in(page, served)
    page.goto(served)
    page.locator(ALERT).click()
    page.get_by_role("button", name="Acknowledge").click()

    _followed(page, served, (SYNC,))

    assert re.search("Rejected: .* seen by alice", _told(page, "[role=status]"))


def test_from_the_mail_to_the_rows_to_the_mail_that_it_is_over(
    alarmed: str, served: str, destination: Destination, mails: tuple[Mailbox, int], page: Page
) -> None:
    assert alarmed.startswith("sync.aircraft: 5 of 5 records were not taken (100 %)")
    sign_in(page, served)
    page.goto(re.findall(r"http\S+/runs/\d+/", alarmed)[0])

    reasons = page.get_by_role("region", name="Reasons")
    expect(reasons).to_contain_text(REASON)
    reasons.get_by_role("link", name="Show rows").click()
    window = page.get_by_role("dialog")
    expect(window.locator(".list tbody tr")).to_have_count(5)
    window.get_by_role("link", name="N110AA").click()
    record = page.get_by_role("complementary", name="Record N110AA")
    expect(record.locator("del")).to_have_text("2000")
    expect(record.locator("ins")).to_have_text("null")
    expect(record.get_by_label("Request", exact=True)).to_contain_text('"year": null')
    expect(record.get_by_label("Answer", exact=True)).to_contain_text("is required")

    destination.strict = False
    window.get_by_role("button", name="Send again…").click()
    expect(page.get_by_label("Preview")).to_contain_text("5 records")
    page.get_by_role("button", name="Send them again").click()
    page.wait_for_url("**/runs/*/")
    ends(page, "Completed")

    over = text_of(mails[0], 3)
    assert over.startswith("Over: sync.aircraft")
    page.goto(re.findall(r"http\S+/alerts/\d+/", over)[0])
    expect(page.locator("section[aria-labelledby=history]")).to_contain_text("Over")
    page.goto(served)
    expect(page.get_by_text("Nothing needs you")).to_be_visible()
