"""Folders and files that hold people's records: nobody else on the machine reads them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

OTHERS = 0o077


def folder(place: Path) -> Path:
    """The folder, made if it is not there; whatever lies in it is out of others' reach."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    _close(place)
    return place


def file(place: Path) -> Path:
    """The file, made empty if it is not there and its folder is."""
    with suppress(OSError):  # whoever opens it says what is wrong
        place.touch(mode=0o600, exist_ok=True)
        _close(place)
    return place


def _close(place: Path) -> None:
    mode = place.stat().st_mode
    if mode & OTHERS:
        with suppress(PermissionError):  # another user's, who gave us a place there
            place.chmod(mode & ~OTHERS)
