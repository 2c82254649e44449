"""The API keeps what its schema says, whatever it is asked: a real server, requests made up from the schema."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ondatra_web import tokens
from ondatra_web.alerts import channels, judging
from ondatra_web.api.tokens import TokenThrottle
from tests.web import filled

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
#: Requests of one operation in each phase; a longer search is the same command with a larger number.
EXAMPLES = 5


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_no_request_gets_an_answer_that_the_schema_does_not_name(
    live_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TokenThrottle, "rate", "1000000/min", raising=False)
    place = filled.workspace()
    run = filled.a_run(filled.a_sync(place), "completed_with_rejects", **filled.closing(2, rejected=1))
    rows = [filled.record("N1"), filled.record("N2", "rejected", "409: maker is unknown", "reject", row=1)]
    filled.put_records(run, tmp_path, rows)
    token = tokens.make(place.organization, filled.person("ada", place), "t", list(tokens.SCOPES))[1]
    judging.ended()
    wanted = channels.Wanted("hook", "webhook", url="https://hooks.example/x")
    channels.test(channels.save(place.organization, wanted)[0])

    program = Path(sys.executable).with_name("schemathesis")
    options = ["--checks", CHECKS, "--max-examples", str(EXAMPLES), "--seed", "1", "--phases", "coverage,fuzzing"]
    done = subprocess.run(
        [program, "run", f"{live_server.url}/api/v1/schema", "-H", f"Authorization: Bearer {token}", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, " generated" in done.stdout) == (0, True), done.stdout[-20000:] + done.stderr[-1000:]
