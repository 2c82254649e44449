"""A fast test that starts something dear is refused, whatever way it takes."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest
from layers import nothing_dear, refused

SAID = "a fast test started {}: mark it spark, browser or server, or use the fixture of that name"
STARTS_SPARK = "from runtime.lake.spark import session; session()"


@pytest.mark.parametrize(
    "command", [["/usr/bin/weed", "server"], ["runuser", "-u", "postgres", "--", "pg_ctl", "start"], "chromium"]
)
def test_a_server_or_browser_is_refused_before_it_starts(command: list[str] | str) -> None:
    name = "chromium" if command == "chromium" else "weed" if "server" in command else "pg_ctl"
    with nothing_dear(), pytest.raises(RuntimeError, match=SAID.format(name)):
        subprocess.Popen(command)


def test_what_was_refused_is_known_though_the_error_was_swallowed() -> None:
    with nothing_dear():
        with suppress(RuntimeError):
            subprocess.run(["redis-server"], check=False)
        assert refused() == SAID.format("redis-server")


def test_spark_is_refused_in_a_process_below_as_well() -> None:
    with nothing_dear():
        done = subprocess.run([sys.executable, "-c", STARTS_SPARK], capture_output=True, text=True, check=False)
    assert SAID.format("Spark") in done.stderr


def test_any_other_process_may_be_started() -> None:
    with nothing_dear():
        assert (subprocess.run([sys.executable, "-c", ""], check=False).returncode, refused()) == (0, "")
