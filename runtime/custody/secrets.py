"""The secrets of one workspace, by name. Push functions see these and nothing else of the environment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from runtime.errors import ConfigError

#: The product's own settings: out of reach of push functions.
OWN = ("ONDATRA_", "DJANGO_", "AWS_", "SPARK_")
OWN_NAMES = ("DATABASE_URL", "REDIS_URL", "EMAIL_URL")


class Secrets:
    """Values by name; their text never shows in repr()."""

    def __init__(self, values: Mapping[str, str], source: str) -> None:
        self._values = dict(values)
        self.source = source  # where a missing one is to be set, for messages

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)} names from {self.source})"

    def get(self, name: str, default: Any = None) -> Any:
        """The value, `default` where it is not set."""
        return self._values.get(name, default)

    def require(self, name: str) -> str:
        """Raises ConfigError that names the variable and where to set it."""
        value = self._values.get(name)
        if not value:
            raise ConfigError(f"the secret {name} is not set: set it in {self.source}")
        return value

    def values(self, names: Iterable[str]) -> list[str]:
        """The texts to be removed from whatever is stored or shown."""
        return [v for n in names if (v := self._values.get(n))]


def from_environment(env: Mapping[str, str] | None = None) -> Secrets:
    """The process environment less the product's own settings."""
    return Secrets(without_own(os.environ if env is None else env), "the environment")


def without_own(env: Mapping[str, str]) -> dict[str, str]:
    """An environment less the product's own settings, its secrets among them."""
    return {k: v for k, v in env.items() if not k.startswith(OWN) and k not in OWN_NAMES}


def from_file(path: Path) -> Secrets:
    """NAME=value lines; blank lines and # comments are skipped, quotes around a value are removed."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the env file {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    values = {}
    for number, line in enumerate(lines, 1):
        line = line.strip().removeprefix("export ")
        if not line or line.startswith("#"):
            continue
        name, sep, value = line.partition("=")
        if not sep or not name.strip():
            raise ConfigError(f"{path}:{number}: NAME=value is expected")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        values[name.strip()] = value
    return Secrets(values, str(path))
