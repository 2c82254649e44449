"""docs/first-sync.md, run block by block by the `ondatra` of a wheel in an environment of its own."""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet
import pytest
from services import free_port

ROOT = Path(__file__).resolve().parent.parent
BUILT_FROM = ["runtime", "ondatra_web", "templates", "static", "docs", "README.md", "pyproject.toml", "setup.py"]
NOT_CODE = shutil.ignore_patterns("__pycache__")
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that the tree stays as it is; with the tools of this environment, so without a network."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=NOT_CODE)
        else:
            shutil.copy(ROOT / name, tree)
    _quiet(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", out, tree)
    [built] = out.glob("ondatra-*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; what it depends on comes from this one, behind it."""
    venv = tmp_path_factory.mktemp("environment")
    _quiet(sys.executable, "-m", "venv", "--without-pip", venv)
    _quiet(sys.executable, "-m", "pip", "-q", "--python", venv / "bin/python", "install", "--no-deps", wheel)
    [packages] = venv.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return venv


def test_the_wheel_carries_its_pages_and_the_docs(wheel: Path) -> None:
    docs = {
        f"ondatra_web/docs/{p.relative_to(ROOT / 'docs').as_posix()}" for p in (ROOT / "docs").rglob("*") if p.is_file()
    }
    with zipfile.ZipFile(wheel) as archive:
        carried = set(archive.namelist())

    wanted = docs | {"ondatra_web/docs/README.md", "ondatra_web/templates/base.html", "ondatra_web/static/ondatra.css"}
    assert {name for name in wanted if "__pycache__" not in name} - carried == set()


def _quiet(*command: str | Path) -> None:
    subprocess.run([str(c) for c in command], check=True, stdin=subprocess.DEVNULL)


@dataclass
class Reader:
    """Somebody who follows the page in one terminal, in a folder that was empty before."""

    folder: Path
    environment: Path
    port: int = field(default_factory=free_port)
    pages: int = field(default_factory=free_port)
    said: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        kept = ("JAVA_HOME", "SPARK_SUBMIT_OPTS", "LANG")
        self.variables = {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "ONDATRA_JARS_DIR": os.environ.get("ONDATRA_JARS_DIR") or str(ROOT / ".venv" / "jars"),
            "ONDATRA_WEB_PORT": str(self.pages),
        }

    def start(self, block: str) -> subprocess.Popen[str]:
        """Types a block; its output goes to files, so that what it leaves in the background holds nothing up."""
        out = self.folder / f"block-{len(self.started)}"
        with out.open("w") as file, out.with_suffix(".err").open("w") as errors:
            process = subprocess.Popen(
                ["bash", "-e", "-c", f"{block}\npwd > {self.folder}/cwd"],
                cwd=(self.folder / "cwd").read_text().strip() if self.started else self.folder,
                env=self.variables, stdin=subprocess.DEVNULL, stdout=file, stderr=errors, text=True,
                start_new_session=True,
            )  # fmt: skip
        self.started.append(process)
        return process

    def output(self, number: int = -1) -> tuple[str, str]:
        out = self.folder / f"block-{range(len(self.started))[number]}"
        return out.read_text(), out.with_suffix(".err").read_text()

    def follow(self, block: str) -> str:
        process = self.start(block)
        code = process.wait(180)
        out, errors = self.output()
        assert code == 0, f"{block}\n{out}\n{errors}"
        return out

    def leave(self) -> None:
        for process in self.started:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


@pytest.fixture(scope="module")
def blocks() -> list[tuple[str, str]]:
    """The commands of the page, each with the output that the page shows."""
    return BLOCK.findall((ROOT / "docs/first-sync.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def reader(
    environment: Path, blocks: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reader]:
    """Has followed the page up to its last block, which serves until Ctrl-C."""
    reader = Reader(tmp_path_factory.mktemp("reader"), environment)
    try:
        for block, _ in blocks[:-1]:
            reader.said.append(reader.follow(block.replace("8765", str(reader.port))))
        yield reader
    finally:
        reader.leave()


@pytest.fixture(scope="module")
def shop(reader: Reader) -> Path:
    return reader.folder / "shop"


def test_what_the_page_shows_is_what_is_printed(reader: Reader, blocks: list[tuple[str, str]]) -> None:
    shown = [[line for line in text.splitlines() if line.strip()] for _, text in blocks[:-1]]
    printed = [said.replace(str(reader.port), "8765").splitlines() for said in reader.said]
    missing = [[line for line in lines if line not in out] for lines, out in zip(shown, printed, strict=True)]
    assert sum(map(len, shown)) > 10 and missing == [[] for _ in shown]


def test_the_code_comes_from_the_wheel(reader: Reader, environment: Path) -> None:
    found = reader.follow("python -c 'import runtime, ondatra_web; print(runtime.__file__, ondatra_web.__file__)'")
    assert {Path(name).is_relative_to(environment) for name in found.split()} == {True}


def test_the_rows_are_at_the_destination(reader: Reader) -> None:
    rows = [{"email": "ada@example.com", "spent": 135.25, "orders": 2}]
    rows += [{"email": "alan@example.com", "spent": 80.5, "orders": 1}]
    held = [f"http://127.0.0.1:{reader.port}/contacts/{urllib.parse.quote(row['email'])}" for row in rows]
    assert [json.load(urllib.request.urlopen(url, timeout=10)) for url in held] == rows


def test_every_row_of_the_made_sync_has_its_record(shop: Path) -> None:
    [file] = (shop / "data/store/sync_tracking_datasets/1/1/1").glob("*.parquet")
    columns = pyarrow.parquet.ParquetFile(file).read(["identifier", "status"]).to_pydict()
    assert (file.name, columns) == (
        "records_updated.0.parquet",
        {"identifier": ["1", "2", "3", "4", "5"], "status": ["succeeded"] * 5},
    )


def test_the_made_test_of_a_push_function_passes(reader: Reader, shop: Path) -> None:
    command = re.search(r"^ondatra push_test .* \| diff .*$", (shop / "README.md").read_text(), re.M)
    assert command and reader.follow(f"set -o pipefail; {command[0]}") == ""


def test_a_command_works_anywhere_below_the_project(reader: Reader) -> None:
    assert reader.follow("(cd models/sync && ondatra runs)") == reader.follow("ondatra runs") != ""


def test_the_pages_show_the_records(reader: Reader, blocks: list[tuple[str, str]]) -> None:
    process = reader.start(blocks[-1][0])
    try:
        said = _until(reader, process, "Ondatra serves")
        login = re.search(r"login (\S+), password (\S+) \(shown this once\)", said)
        assert login, said
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        form = browser.open(f"http://127.0.0.1:{reader.pages}/login/?next=/runs/2/records/").read().decode()
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
        assert token, form
        fields = {"username": login[1], "password": login[2], "csrfmiddlewaretoken": token[1]}
        url = f"http://127.0.0.1:{reader.pages}/login/?next=/runs/2/records/"
        page = browser.open(url, urllib.parse.urlencode(fields).encode()).read().decode()
        style = re.search(r'href="(/static/[^"]+\.css)"', page)
        assert "alan@example.com" in page and style
        assert browser.open(f"http://127.0.0.1:{reader.pages}{style[1]}").status == 200
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 0, reader.output()


def _until(reader: Reader, process: subprocess.Popen[str], words: str) -> str:
    end = time.monotonic() + 60
    while words not in reader.output()[0]:
        assert process.poll() is None and time.monotonic() < end, reader.output()
        time.sleep(0.1)
    return reader.output()[0]
