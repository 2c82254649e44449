"""The maps are held to the tree: what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)")
PATH = re.compile(r"[\w.\-]*[\w\-]/[\w./\-]*|[\w\-]+\.(?:py|sql|star|lua|md|toml|yaml|html|css|js)")
#: Files of a project or of its data, named as examples.
EXAMPLES = re.compile(r"^(data|models|lib|seeds|shop)(/|$)|^_ondatra\b|^(ondatra\.toml|tests/spenders\.json)$")
FOLDERS = ("runtime", "ondatra_web", "templates", "static", "tests", "docs", "bin")
#: Every file and folder, from the top: what a page names may leave out the rooms before it.
TREE = [p.relative_to(ROOT).as_posix() for f in FOLDERS for p in (ROOT / f).rglob("*") if p.suffix != ".pyc"]
TREE += [p.name for p in ROOT.iterdir()]


def _missing(page: str) -> set[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = {span.rstrip("/") for span in SPAN.findall(text) if PATH.fullmatch(span) and not EXAMPLES.search(span)}
    links = {link for link in LINK.findall(text) if not (ROOT / "docs" / link).exists()}
    return links | {name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in TREE)}


@pytest.mark.parametrize("name", ["contributing.md", "architecture.md", "first-sync.md"])
def test_every_path_that_the_page_names_is_there(name: str) -> None:
    assert _missing(name) == set()


def test_the_guide_names_each_thing_that_people_add() -> None:
    text = (ROOT / "docs/contributing.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## Add an? (.+)\n\n((?:\d\..+\n)+)", text, re.M)
    paths = {title: len([s for s in SPAN.findall(body) if PATH.fullmatch(s)]) for title, body in sections}
    assert [title for title, number in paths.items() if number < 3] == [] and len(paths) == 10


def test_each_promise_of_security_names_a_test_that_is_there() -> None:
    """By name; a row without one names a whole file, or is `the same` as the row above."""
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    code = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    there = set(re.findall(r"def (test_\w+)", code))
    rows = [line for line in text.splitlines() if line.startswith("| ") and not re.match(r"\| promised? ", line)]

    assert {name for name in re.findall(r"\b(test_\w+)`", text) if name not in there} == set()
    assert [row for row in rows if not re.search(r"test_\w+|^the same \|$", row.rsplit(" | ", 1)[-1])] == []
    assert _missing("security.md") == set()


def test_the_map_of_each_half_lists_its_rooms() -> None:
    for half in ("runtime", "ondatra_web"):
        text = (ROOT / half / "__init__.py").read_text(encoding="utf-8")
        rooms = {p.parent.name for p in (ROOT / half).glob("*/__init__.py")} - {"api", "migrations", "templatetags"}
        assert {room for room in rooms if not re.search(rf"^{room} ", text, re.M)} == set()


def test_each_room_of_the_dialect_lists_its_modules() -> None:
    wrong = {}
    for room in (p.parent for p in (ROOT / "runtime/sql").rglob("__init__.py")):
        listed = set(re.findall(r"^(\w+)/? {2,}\S", (room / "__init__.py").read_text(encoding="utf-8"), re.M))
        there = {p.stem for p in room.glob("*.py")} | {p.parent.name for p in room.glob("*/__init__.py")}
        if listed != there - {"__init__"}:
            wrong[room.name] = listed ^ (there - {"__init__"})
    assert wrong == {}
