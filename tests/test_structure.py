"""The shape of the code, and the docs held to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = [
    p
    for folder in ("runtime", "ondatra_web")
    for p in sorted((ROOT / folder).rglob("*.py"))
    if "migrations" not in p.parts
]
DOCS = "\n".join(p.read_text(encoding="utf-8") for p in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
ENVIRONMENT = re.compile(
    r"""(?:environ(?:\.get)?[\[(]|env\.\w+\()\s*(?:\d+,\s*)?["']([A-Z][A-Z0-9_]{2,}[A-Z0-9])["']"""
)
NOT_OURS = {
    "PATH",
    "PYTHON",
    "PYTHONUNBUFFERED",
    "DEBIAN_FRONTEND",
    "DJANGO_SETTINGS_MODULE",
    "HOME",
    "SPARK_LOCAL_DIRS",
}
MOST_LINES, MOST_OF_A_FUNCTION = 400, 60
PAGES = {
    ".html": (160, sorted((ROOT / "templates").rglob("*.html"))),
    ".css": (120, sorted((ROOT / "static").glob("*.css"))),
    ".js": (120, sorted((ROOT / "static").glob("*.js"))),
}


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (
                f"{path.relative_to(ROOT)}:{node.lineno} {node.name}",
                (node.end_lineno or node.lineno) - node.lineno + 1,
            )


def test_no_module_is_longer_than_can_be_read_in_a_sitting() -> None:
    lengths = {str(p.relative_to(ROOT)): len(p.read_text(encoding="utf-8").splitlines()) for p in CODE}
    assert {name: n for name, n in lengths.items() if n > MOST_LINES} == {}


def test_no_file_of_tests_is_longer_either() -> None:
    lengths = {p.name: len(p.read_text(encoding="utf-8").splitlines()) for p in (ROOT / "tests").rglob("test_*.py")}
    assert {name: n for name, n in lengths.items() if n > MOST_LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    assert {name: n for path in CODE for name, n in _functions(path) if n > MOST_OF_A_FUNCTION} == {}


def test_functions_are_short_on_the_whole() -> None:
    lengths = sorted(n for path in CODE for _, n in _functions(path))
    assert lengths[len(lengths) // 2] <= 10


@pytest.mark.parametrize("kind", PAGES)
def test_what_pages_are_made_of_has_lines_that_can_be_read(kind: str) -> None:
    most, files = PAGES[kind]
    lines = [(p, n, line) for p in files for n, line in enumerate(p.read_text(encoding="utf-8").splitlines(), 1)]
    assert lines and [f"{p.relative_to(ROOT)}:{n}" for p, n, line in lines if len(line) > most] == []


def test_the_style_sheet_has_one_declaration_a_line_and_names_each_colour_once() -> None:
    text = (ROOT / "static/ondatra.css").read_text(encoding="utf-8")
    tokens, rules = text.split("\n}\n", 1)
    assert [line for line in text.splitlines() if line.count(";") > 1] == []
    assert re.findall(r"#[0-9a-f]{3,8}\b.*;", rules) == []
    assert len(colours := re.findall(r"(--[\w-]+): light-dark", tokens)) == len(set(colours)) > 10


def test_every_command_is_documented() -> None:
    commands = {p.stem for p in (ROOT / "ondatra_web/management/commands").glob("[a-z]*.py")}
    text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    assert {c for c in commands if not re.search(rf"`(?:python manage\.py )?{c}\b", text)} == set()


def test_every_setting_is_documented() -> None:
    sources = [*CODE, *sorted((ROOT / "bin").glob("*.py"))]
    read = {name for p in sources for name in ENVIRONMENT.findall(p.read_text(encoding="utf-8"))} - NOT_OURS
    text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    assert {name for name in read if f"`{name}`" not in text} == set()


def test_every_directive_is_documented() -> None:
    from runtime.project import directives

    source = Path(directives.__file__).read_text(encoding="utf-8") + (ROOT / "runtime/model.py").read_text(
        encoding="utf-8"
    )
    known = set(re.findall(r'"([a-z_]+)"', source)) & {
        "kind",
        "sink",
        "push",
        "unique_key",
        "group_key",
        "partitioned_by",
        "identifier",
        "on_missing",
        "max_deletes",
        "renamed_from",
        "mask",
        "schedule",
        "retention",
        "description",
        "tags",
        "dialect",
    }
    assert known and {d for d in known if f"@{d}" not in DOCS} == set()


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-test.lock"])
def test_a_lock_pins_everything_with_hashes_and_names_no_index(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"^#.*\n", "", text, flags=re.M).strip())
    assert [b for b in blocks if "==" not in b or "--hash=sha256:" not in b] == []
    assert re.findall(r"(?i)https?://|--(?:extra-)?index-url|--find-links|--trusted-host", text) == []


def test_every_dependency_says_what_it_is_for() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if re.match(r'  "[a-z][^"]*[=<>][^"]*",', line) and "# Needed " not in line] == []
