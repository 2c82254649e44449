"""Each action of the audit log can be filtered for and is told in words."""

from __future__ import annotations

import ast
from pathlib import Path

from ondatra_web import audit

CODE = Path(audit.__file__).parent
#: Functions that write a line, and where their action stands among the arguments.
WRITERS = {
    "audit.write": 2,
    "reads.of_run": 1,
    "reads.of_sync": 1,
    "_write": 1,
    "_tell": 2,
    "_use": 2,
    "people.tell_everywhere": 2,
}


def test_every_action_that_is_written_has_its_words() -> None:
    written = set()
    for file in CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (place := WRITERS.get(ast.unparse(node.func).removesuffix(")"))):
                action = node.args[place] if len(node.args) > place else None
                written |= {action.value} if isinstance(action, ast.Constant) else set()

    assert {"start_run", "read_records", "use_bucket", "invite", "change_password"} <= written
    assert {a for a in written if a not in audit.ACTIONS} == set()
