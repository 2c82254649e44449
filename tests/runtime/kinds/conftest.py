"""Fixtures of builds."""

from __future__ import annotations

import pytest

from runtime.kinds import merge
from runtime.kinds.sieve import commit


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How changes of a merge were found and written: by `write` in place, by `compare` with a join."""
    found: list[str] = []
    for module, name in ((commit, "write"), (merge, "compare")):
        usual = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, _usual=usual, _name=name, **k: (found.append(_name), _usual(*a, **k))[1]
        )
    return found
