"""Secrets that people typed in, encrypted before they reach the database."""

from __future__ import annotations

import base64
import hashlib
import os
import uuid
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from runtime.config import from_env
from runtime.custody.redact import everywhere
from runtime.errors import ConfigError


def seal(text: str) -> str:
    """The text, encrypted with the install's newest key."""
    return _fernet(_keys()).encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Raises ConfigError where no key of the install opens it."""
    try:
        opened = _fernet(_keys()).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise ConfigError(
            "a kept secret cannot be read: it was encrypted with another key; set ONDATRA_ENCRYPTION_KEY to that key, "
            "or enter the secret again"
        ) from None
    everywhere.add(opened)
    return opened


def _keys() -> tuple[str, ...]:
    """Newest first. Without a setting, a key made at first use and kept beside the database."""
    return from_env().encryption_keys or (_kept(Path(settings.ONDATRA.data_dir) / "encryption_key"),)


def _kept(place: Path) -> str:
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{uuid.uuid4().hex}.part")
        with open(part, "x", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            file.write(Fernet.generate_key().decode())
        with suppress(FileExistsError):  # another process was quicker: its key holds
            os.link(part, place)
        part.unlink()
    return place.read_text().strip()


@lru_cache(maxsize=8)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest())) for key in keys])
