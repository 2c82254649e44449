"""compose.yaml as Compose reads it: merged, with variables filled in, and what a service starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).resolve().parents[2] / "compose.yaml"
#: A file .env that sets what has no usual value.
ENV = {
    "POSTGRES_PASSWORD": "postgres-password",
    "S3_PASSWORD": "s3-password",
    "DJANGO_SECRET_KEY": "secret" * 8,
    "ONDATRA_ENCRYPTION_KEY": "encryption" * 5,
}


@dataclass(frozen=True)
class Service:
    """What a container of it runs, and in which environment beside the image's own."""

    command: list[str]
    environment: dict[str, str]


def read(env: Mapping[str, str] = ENV) -> dict[str, Any]:
    """The whole file with its variables filled in. Raises ValueError for one that must be set and is not."""

    def filled(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        name, how, other = found["name"], found["how"], found["other"]
        if env.get(name):
            return env[name]
        if how == ":?":
            raise ValueError(f"{name}: {other}")
        return other or ""

    pattern = r"\$\$|\$\{(?P<name>\w+)(?:(?P<how>:[-?])(?P<other>[^}]*))?\}"

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner) for inner in value]
        return re.sub(pattern, filled, value) if isinstance(value, str) else value

    return dict(walk(yaml.safe_load(FILE.read_text(encoding="utf-8"))))


def service(name: str, env: Mapping[str, str] = ENV) -> Service:
    told = read(env)["services"][name]
    command = told.get("command", [])
    begin = shlex.split(told.get("entrypoint", ""))
    words = command if isinstance(command, list) else shlex.split(command)
    return Service([*begin, *words], dict(told.get("environment", {})))


def health(name: str) -> list[str]:
    return shlex.split(read()["services"][name]["healthcheck"]["test"])
