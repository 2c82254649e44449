"""Where an install keeps its parts, read once from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from runtime.errors import ConfigError

#: The folder that holds the code: the top of a clone, or where packages are installed.
ROOT = Path(__file__).resolve().parent.parent
#: Whether that is a clone, which is a project itself and keeps everything below itself.
IN_CLONE = (ROOT / "manage.py").is_file()
#: So many models are built at the same time unless something else is asked for: each holds its change set in memory.
MOST_BUILDS = 4


@dataclass(frozen=True)
class Config:
    """The places of one install. URLs are `file:///…` or `s3://bucket/prefix` without a trailing slash."""

    data_dir: Path
    lake_url: str
    staging_url: str
    tracking_url: str
    redis_url: str | None
    spark_master: str
    s3_endpoint: str | None
    #: Servers besides AWS that organizations may name for buckets of their own.
    bucket_endpoints: tuple[str, ...] = ()
    #: Spark catalogs that projects may use as connections, by the names of their classes.
    catalog_classes: tuple[str, ...] = ()
    #: Records that may wait for a store that is down before new runs are refused.
    most_unwritten: int = 5_000_000
    #: Whether the scheduler keeps the table sync_log of each organization.
    keeps_sync_log: bool = True
    #: When the lake is looked after: cron text, `every 12h`, or off.
    upkeep: str = "0 3 * * *"
    #: Requests a minute of one token of the HTTP API.
    api_rate: int = 600
    #: Models of one run that are built at the same time.
    builds: int = 1
    #: Whether builds do without private parts of Spark and of Delta.
    plain_build: bool = False
    #: The folder with models/ and lib/ that the workspace `default` of a fresh install gets.
    project_dir: Path = ROOT
    #: Where the pages are served.
    web_host: str = "127.0.0.1"
    web_port: int = 8000

    @property
    def jars_dir(self) -> Path:
        """The Delta jars, resolved once and kept; no later start needs the network."""
        return Path(os.environ.get("ONDATRA_JARS_DIR") or (ROOT / ".venv" / "jars" if IN_CLONE else _cache() / "jars"))

    def command(self, text: str) -> str:
        """How a person calls one of the product's commands here, for messages: `python manage.py runs`, `ondatra
        runs`; `up` is `bin/up` in a clone."""
        if self.project_dir != ROOT:
            return f"ondatra {text}"
        return "bin/up" if text == "up" else f"python manage.py {text}"

    @property
    def spark_needs_s3(self) -> bool:
        """Whether Spark itself reads and writes S3; records go there without it."""
        return self.lake_url.startswith("s3:") or self.staging_url.startswith("s3:")

    @property
    def locks_dir(self) -> Path:
        return self.data_dir / "locks"


def from_env(env: Mapping[str, str] = os.environ) -> Config:
    """The configuration that the environment describes; nothing is created."""
    project = Path(env.get("ONDATRA_PROJECT_DIR") or ROOT).resolve()
    data = Path(env.get("ONDATRA_DATA_DIR") or project / "data").resolve()

    def place(name: str, folder: str) -> str:
        return (env.get(name) or (data / folder).as_uri()).rstrip("/")

    return Config(
        project_dir=project,
        data_dir=data,
        lake_url=place("ONDATRA_LAKE_URL", "lake"),
        staging_url=place("ONDATRA_STAGING_URL", "staging"),
        tracking_url=place("ONDATRA_TRACKING_URL", "store"),
        redis_url=env.get("REDIS_URL") or None,
        spark_master=env.get("SPARK_MASTER") or "local[2]",
        s3_endpoint=env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL") or None,
        bucket_endpoints=tuple(
            e.strip().rstrip("/") for e in env.get("ONDATRA_BUCKET_ENDPOINTS", "").split(",") if e.strip()
        ),
        upkeep=env.get("ONDATRA_UPKEEP") or "0 3 * * *",
        catalog_classes=tuple(c.strip() for c in env.get("ONDATRA_CATALOG_CLASSES", "").split(",") if c.strip()),
        most_unwritten=int(env.get("ONDATRA_MOST_UNWRITTEN") or 5_000_000),
        builds=_number(env, "ONDATRA_BUILDS", min(max(len(os.sched_getaffinity(0)), 2), MOST_BUILDS)),
        api_rate=_number(env, "ONDATRA_API_RATE", 600),
        plain_build=env.get("ONDATRA_PLAIN_BUILD", "").lower() not in ("", "off", "0", "no", "false"),
        web_host=env.get("ONDATRA_WEB_HOST") or "127.0.0.1",
        web_port=_number(env, "ONDATRA_WEB_PORT", 8000),
        keeps_sync_log=env.get("ONDATRA_SYNC_LOG", "").lower() not in ("off", "0", "no", "false"),
    )


def _cache() -> Path:
    """What all installs of this person share; jars of another Delta would not start."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "ondatra" / f"delta-{version('delta-spark')}"


def _number(env: Mapping[str, str], name: str, usual: int) -> int:
    text = env.get(name, "").strip()
    if text and not (text.isdigit() and int(text)):
        raise ConfigError(f"{name} is {text!r}: give a whole number from 1 on")
    return int(text or usual)
