"""Files of the driver's disk lie where executors elsewhere read them, while the process that brought them lives."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.sources import brought

ROOT = Path(__file__).resolve().parents[2]
BRINGS = """
import sys
from pathlib import Path
from runtime.sources import brought
print(brought.bring("read", "state", {"0.parquet": Path(sys.argv[1])})[0])
"""


@pytest.fixture
def staging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONDATRA_STAGING_URL", (tmp_path / "staging").as_uri())
    brought._mine.cache_clear()
    brought._brought.clear()
    return tmp_path / "staging"


def test_files_are_brought_once_for_one_state(staging: Path, tmp_path: Path) -> None:
    file = tmp_path / "part"
    file.write_bytes(b"rows")
    first = brought.bring("read", "state", {"0.parquet": file})
    file.write_bytes(b"other")
    again, other = (
        brought.bring("read", "state", {"0.parquet": file}),
        brought.bring("read", "later", {"0.parquet": file}),
    )

    assert again == first and [Path(p.removeprefix("file://")).read_bytes() for p in (*first, *other)] == [
        b"rows",
        b"other",
    ]


def test_states_that_no_build_reads_any_more_go(staging: Path, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"rows")
    found = [brought.bring("read", f"state-{n}", {"0.parquet": tmp_path / "part"})[0] for n in range(5)]
    other = brought.bring("other", "state-0", {"0.parquet": tmp_path / "part"})

    there = [Path(path.removeprefix("file://")).exists() for path in (*found, *other)]
    assert there == [False, False, True, True, True, True]


def test_what_a_process_brought_goes_with_it(staging: Path, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"rows")
    done = subprocess.run(
        [sys.executable, "-c", BRINGS, str(tmp_path / "part")],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )

    path = Path(done.stdout.strip().removeprefix("file://"))
    assert path.is_relative_to(staging / "sources") and not path.exists()


def test_what_a_process_left_that_was_killed_goes_with_the_next_look(staging: Path, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"rows")
    here = brought.bring("read", "state", {"0.parquet": tmp_path / "part"})[0]
    killed = [sys.executable, "-c", f"{BRINGS}\nimport os; sys.stdout.flush(); os.kill(os.getpid(), 9)"]
    done = subprocess.run([*killed, str(tmp_path / "part")], cwd=ROOT, capture_output=True, text=True, check=False)
    left = Path(done.stdout.strip().removeprefix("file://"))
    assert left.exists()

    brought.forget_dead()
    assert (left.exists(), Path(here.removeprefix("file://")).exists()) == (False, True)


def test_what_a_process_left_on_another_machine_goes_after_a_week(staging: Path, tmp_path: Path) -> None:
    today = dt.datetime.now(dt.UTC).date()
    for days in (7, 8):
        left = staging / "sources" / f"{today - dt.timedelta(days=days)}-dead" / "state" / "0.parquet"
        left.parent.mkdir(parents=True)
        left.write_bytes(b"rows")
    (tmp_path / "part").write_bytes(b"rows")

    brought.bring("read", "state", {"0.parquet": tmp_path / "part"})
    kept = {path.name[:10] for path in (staging / "sources").iterdir() if list(path.rglob("*.parquet"))}
    assert kept == {str(today), str(today - dt.timedelta(days=7))}


def test_a_process_that_lives_for_weeks_keeps_what_it_brought_and_begins_anew_before_others_think_it_dead(
    staging: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "part").write_bytes(b"rows")
    first = brought.bring("read", "state", {"0.parquet": tmp_path / "part"})[0]
    later = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=9)
    monkeypatch.setattr(brought, "_today", lambda: later)

    brought.forget_dead()
    second = brought.bring("read", "state", {"0.parquet": tmp_path / "part"})[0]
    assert [Path(path.removeprefix("file://")).exists() for path in (first, second)] == [True, True]
    assert f"/{later}-" in second


def test_what_a_broken_off_attempt_left_is_not_read_with_the_next(staging: Path) -> None:
    def broken(there: Path | None, _: object) -> bool:
        assert there
        there.mkdir(parents=True)
        (there / "00001.parquet").write_bytes(b"old")
        raise ConnectionError("a worker is gone")

    def whole(there: Path | None, _: object) -> bool:
        assert there
        there.mkdir(parents=True)
        (there / "00000.parquet").write_bytes(b"new")
        return True

    with pytest.raises(ConnectionError):
        brought.made("read", "state", broken)
    [folder] = brought.made("read", "state", whole)
    assert [path.name for path in Path(folder.removeprefix("file://")).iterdir()] == ["00000.parquet"]
