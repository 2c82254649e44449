"""The docs of the project as pages: docs/*.md and README.md, with anchors, and with links that work inside the
product."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

#: The pages in the order of reading; what else lies in the folder stands behind them.
GROUPS: dict[str, tuple[str, ...]] = {
    "Begin": ("readme", "first-sync", "demo"),
    "Write syncs": ("push-functions", "dialect", "connections", "destinations"),
    "See what happened": ("pages", "records", "sync-tracking-files", "alerts"),
    "Use it from programs": ("api", "commands"),
    "Run an install": ("settings", "people", "security", "lake", "cluster", "scale", "support", "benchmarks"),
    "Change Ondatra": ("architecture", "contributing"),
}
OTHERS = "Besides"
#: Files beside the pages that a link may lead to, or that a page shows.
SERVED = {".py": "text/plain; charset=utf-8", ".png": "image/png", ".svg": "image/svg+xml"}
_PAGE = re.compile(r"(?:\.\./|\./|docs/)*([\w-]+)\.md(#.*)?")


@dataclass(frozen=True)
class Heading:
    text: str
    anchor: str
    level: int


@dataclass(frozen=True)
class Page:
    name: str
    title: str
    lead: str  # its first sentence, as plain text
    headings: tuple[Heading, ...]
    html: SafeString


def page(name: str) -> Page | None:
    """A page by its name in the address; None where there is no such page."""
    path = _path(name) if name in names() else None
    return _read(name, path, path.stat().st_mtime_ns) if path and path.is_file() else None


def groups() -> list[tuple[str, list[Page]]]:
    """Every page, as they are read."""
    told = [
        (title, [found for name in wanted if (found := page(name))])
        for title, wanted in _grouped(Path(settings.DOCS)).items()
    ]
    return [(title, pages) for title, pages in told if pages]


def names() -> tuple[str, ...]:
    return tuple(name for wanted in _grouped(Path(settings.DOCS)).values() for name in wanted)


@cache
def _grouped(root: Path) -> dict[str, tuple[str, ...]]:
    known = {name for wanted in GROUPS.values() for name in wanted}
    others = sorted({p.stem for p in root.glob("*.md")} - known - {"README"})
    return {**GROUPS, OTHERS: tuple(others)}


def file(name: str) -> Path | None:
    """A file of the docs that is no page; nothing else of the machine has a name here."""
    return _files(Path(settings.DOCS)).get(name)


@cache
def _files(root: Path) -> dict[str, Path]:
    return {p.relative_to(root).as_posix(): p for p in root.rglob("*") if p.suffix in SERVED and p.is_file()}


def _path(name: str) -> Path:
    root = Path(settings.DOCS)
    if name != "readme":
        return root / f"{name}.md"
    beside = root / "README.md"  # in a wheel; in a clone it lies at the top
    return beside if beside.is_file() else root.parent / "README.md"


@lru_cache(maxsize=100)
def _read(name: str, path: Path, _written: int) -> Page:
    tokens = _MARKDOWN.parse(path.read_text(encoding="utf-8"))
    headings = tuple(_headings(tokens))
    for token in tokens:
        _relink(token.children or ())
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    title = headings[0].text if headings else name
    return Page(name, title, _first_sentence(tokens), headings[1:], mark_safe(html))  # noqa: S308 - the project's own text


# anchors


def _headings(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Gives each heading its anchor, as GitHub does, so that links between the files work in both."""
    taken: dict[str, int] = {}
    for token, inline in zip(tokens, tokens[1:]):
        if token.type != "heading_open":
            continue
        text = plain(inline)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = taken[slug] = taken.get(slug, -1) + 1
        anchor = f"{slug}-{number}" if number else slug
        token.attrSet("id", anchor)
        yield Heading(text, anchor, int(token.tag[1]))


def plain(inline: Token) -> str:
    """The text of a line without its marks."""
    return "".join(
        child.content if child.type in ("text", "code_inline") else " " * (child.type == "softbreak")
        for child in inline.children or ()
    )


def _first_sentence(tokens: Sequence[Token]) -> str:
    for token, inline in zip(tokens, tokens[1:]):
        if token.type == "paragraph_open":
            return re.split(r"(?<=[.:])\s(?=[A-Z])", plain(inline), maxsplit=1)[0].rstrip(":")
    return ""


# links


def _relink(children: Sequence[Token]) -> None:
    """Links and images lead to pages and files of the product; those that it does not serve are text."""
    for opened in children:
        name = {"link_open": "href", "image": "src"}.get(opened.type)
        if name is None:
            continue
        address = _address(str(opened.attrGet(name)))
        opened.attrSet(name, address)
        if address.startswith("http"):
            opened.attrSet("rel", "noreferrer")


def _address(told: str) -> str:
    if told.startswith(("http:", "https:", "#")):
        return told
    if found := _PAGE.fullmatch(told):
        name = found[1].lower()
        return f"{reverse('doc', args=[name])}{found[2] or ''}" if name in names() else reverse("docs")
    name = told.removeprefix("docs/")
    return reverse("docs_file", args=[name]) if file(name) else reverse("docs")


# how it looks


def _code(renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    """Code may be wider than the window: it can be reached and moved by keys."""
    text = tokens[at].content
    return format_html('<pre tabindex="0" role="group" aria-label="Code"><code>{}</code></pre>\n', text)


def _markdown() -> MarkdownIt:
    found = MarkdownIt("commonmark", {"html": False}).enable("table")
    found.add_render_rule("fence", _code)
    found.add_render_rule("code_block", _code)
    return found


_MARKDOWN = _markdown()
