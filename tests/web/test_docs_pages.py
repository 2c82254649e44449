"""The docs as pages of the product: all of them, with links that lead somewhere."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ondatra_web import manual
from tests.web.filled import person, workspace

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
SETTINGS = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
HELP = re.compile(r'include "_help.html" with page="([\w-]+)"(?: anchor="([\w-]+)")?')


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(person("vera", workspace(), "metadata_viewer"))
    return client


def anchors(name: str) -> set[str]:
    found = manual.page(name)
    return set(re.findall(r' id="(.*?)"', found.html)) if found else set()


def test_every_file_of_the_docs_is_a_page_in_the_list(reader: Client) -> None:
    listed = re.findall(r'<dt>\s*<a href="/docs/([\w-]+)/">(.*?)</a>', reader.get("/docs/").content.decode())

    assert sorted(name for name, _ in listed) == sorted(["readme", *(p.stem for p in (ROOT / "docs").glob("*.md"))])
    titles = {name: unescape(title) for name, title in listed}
    assert (titles["api"], titles["connections"]) == ("HTTP API", "Sources outside the project: ondatra.toml")


def test_every_link_leads_to_a_page_an_anchor_or_a_file(reader: Client) -> None:
    wrong, seen = [], 0
    for name in manual.names():
        page = reader.get(f"/docs/{name}/").content.decode().split('<article class="doc">')[1].split("</article>")[0]
        for address in re.findall(r'(?:href|src)="(.*?)"', page):
            seen += 1
            path, _, anchor = address.partition("#")
            there = path.startswith("http") or not path or reader.get(path).status_code == 200
            target = path.split("/")[2] if path.startswith("/docs/") else name
            if not there or path == "/docs/" or (anchor and anchor not in anchors(target)):
                wrong.append((name, address))
    assert set(wrong) == {("readme", "/docs/")}  # its licence is no page
    assert seen > 40


def test_what_pages_ask_is_answered_where_their_links_lead() -> None:
    asked = [
        found for p in (ROOT / "templates").rglob("*.html") for found in HELP.findall(p.read_text(encoding="utf-8"))
    ]

    assert [
        (page, anchor) for page, anchor in asked if page not in manual.names() or anchor and anchor not in anchors(page)
    ] == []
    assert len(asked) >= 10


def test_a_page_has_its_sections_code_tables_and_neighbours(reader: Client) -> None:
    page = reader.get("/docs/settings/").content.decode()

    assert "<title>Settings · Docs · Ondatra</title>" in page
    assert re.findall(r'<a href="#(.*?)">', page.split('aria-label="On this page"')[1].split("</nav>")[0]) == [
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^## (.+)", SETTINGS, re.M)
    ]
    assert '<pre tabindex="0" role="group" aria-label="Code"><code>ONDATRA_LAKE_URL=s3://bucket/lake' in page
    assert "<td><code>ONDATRA_DATA_DIR</code></td>" in page
    assert re.findall(r'<a href="(.*?)" aria-current="page">', page) == ["/docs/", "/docs/settings/"]
    assert [word in page for word in ("← Commands", "People: roles, records, audit log →")] == [True, True]


def test_text_is_never_taken_for_markup_or_for_a_script(settings: Any, tmp_path: Path, reader: Client) -> None:
    settings.DOCS = tmp_path
    (tmp_path / "api.md").write_text(
        "# A\n\n<script>alert(1)</script> [x](javascript:alert(1)) `<b>`\n\n## A\n\n## A\n"
    )

    page = reader.get("/docs/api/").content.decode()

    assert "<script>alert" not in page and 'href="javascript' not in page and "<code>&lt;b&gt;</code>" in page
    assert re.findall(r'<h. id="(.*?)"', page) == ["a", "a-1", "a-2"]


@pytest.mark.parametrize("path", ["nothing/", "files/settings.md", "files/../pyproject.toml", "files/nothing.png"])
def test_nothing_else_of_the_machine_is_served(reader: Client, path: str) -> None:
    assert reader.get(f"/docs/{path}").status_code == 404


def test_a_file_that_a_page_names_is_served(reader: Client) -> None:
    answer = reader.get("/docs/files/notebook.py")

    assert b"".join(answer.streaming_content) == (ROOT / "docs/notebook.py").read_bytes()  # type: ignore[attr-defined]
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
