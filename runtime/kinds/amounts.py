"""How many rows a commit changes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Amounts:
    """Rows of one commit: those that get new values, those that are new, and those that go."""

    updated: int = 0
    inserted: int = 0
    deleted: int = 0

    @property
    def all(self) -> int:
        return self.updated + self.inserted + self.deleted
