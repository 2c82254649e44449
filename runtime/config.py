"""Where an install keeps its parts, read from the environment: the one place that looks there for settings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from runtime import machine, spark_settings
from runtime.errors import ConfigError

#: The folder that holds the code: the top of a clone, or where packages are installed.
ROOT = Path(__file__).resolve().parent.parent
#: Whether that is a clone, which is a project itself and keeps everything below itself.
IN_CLONE = (ROOT / "manage.py").is_file()
#: So many models are built at the same time unless something else is asked for: each holds its change set in memory,
#: for which there should be so many MiB of heap.
MOST_BUILDS, HEAP_OF_A_BUILD = 8, 900
SHORTEST_KEY = 32
ON, OFF = ("on", "1", "yes", "true"), ("off", "0", "no", "false")
SIZE = re.compile(r"\d+(\.\d+)? ?([KMGT]i?B|bytes)", re.I)
JVM_SIZE = re.compile(r"\d+[kmgt]b?", re.I)
MASTER = re.compile(r"local|local\[(\d+|\*)(, ?\d+)?\]|yarn|(spark|k8s)://.+")

ADDRESS = re.compile(r"\*|[0-9a-fA-F.:]+")


@dataclass(frozen=True)
class Wrong:
    """A setting that cannot be used: what stands there and what is expected. The number stays the setting's own."""

    number: int
    name: str
    found: str
    expected: str

    @property
    def id(self) -> str:
        return f"ondatra.E{self.number:03}"

    @property
    def message(self) -> str:
        return f"{self.name} is {self.found!r}"

    def __str__(self) -> str:
        return f"{self.message}: {self.expected}"


@dataclass(frozen=True)
class S3:
    """Who asks the install's own S3; without a key pair the SDK's chain finds a role."""

    region: str = "us-east-1"
    key: str | None = None
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Config:
    """The places of one install. URLs are `file:///…` or `s3://bucket/prefix` without a trailing slash."""

    data_dir: Path
    lake_url: str
    staging_url: str
    tracking_url: str
    redis_url: str | None
    spark_master: str
    #: A server besides AWS.
    s3_endpoint: str | None = None
    s3: S3 = S3()
    #: The Delta jars, resolved once at set-up and kept; no start needs the network.
    jars_dir: Path = ROOT / ".venv" / "jars"
    #: Heap of Spark's JVM, as Java takes it.
    driver_memory: str = "1800m"
    #: Settings of Spark that a person gave, by Spark's names; some hold secrets.
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: What of spark-defaults.conf does not count here.
    spark_refused: tuple[spark_settings.Refused, ...] = ()
    #: Most memory of one question about records, as DuckDB takes it.
    duckdb_memory: str = "2GB"
    #: Most disk that copies of files in S3 may take, in bytes.
    store_cache_bytes: int = 2 * 1024**3
    #: Encrypt the secret keys of organizations' buckets, newest first; none: a key made at first use.
    encryption_keys: tuple[str, ...] = field(default=(), repr=False)
    #: Servers besides AWS that organizations may name for buckets of their own.
    bucket_endpoints: tuple[str, ...] = ()
    #: Folders below which organizations may place workspaces from a page.
    workspace_roots: tuple[str, ...] = ()
    #: Servers that alerts may be sent to though they lie in the install's own network.
    webhook_endpoints: tuple[str, ...] = ()
    #: Seconds that a message of an alert waits for those of other syncs with the same cause.
    alert_gather: int = 60
    #: Where people reach the pages, for links in messages.
    site_url: str = "http://127.0.0.1:8000"
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
    #: Where a test has the process killed.
    fault: str = ""
    #: Settings that were left at their defaults because what they say cannot be used.
    wrong: tuple[Wrong, ...] = ()
    #: Whether builds do without private parts of Spark and of Delta.
    plain_build: bool = False
    #: The folder with models/ and lib/ that the workspace `default` of a fresh install gets.
    project_dir: Path = ROOT
    #: Where the pages are served.
    web_host: str = "127.0.0.1"
    web_port: int = 8000
    #: The address of the proxy that speaks TLS before the pages, `*` for any; empty: there is none.
    tls_proxy: str = ""

    @property
    def secrets(self) -> tuple[str | None, ...]:
        """What of the settings must not be shown."""
        redis = urlsplit(self.redis_url or "").password
        return (self.s3.secret, self.s3.token, redis, *self.encryption_keys)

    @property
    def python(self) -> str:
        """How a person calls this Python, for messages: in a clone from its top, whether bin/up's environment is
        activated or not."""
        is_there = IN_CLONE and self.project_dir == ROOT and (ROOT / ".venv" / "bin" / "python").exists()
        return ".venv/bin/python" if is_there else "python"

    def command(self, text: str) -> str:
        """How a person calls one of the product's commands here, for messages: `.venv/bin/python manage.py runs`,
        `ondatra runs`; `up` is `bin/up` in a clone."""
        if self.project_dir != ROOT:
            return f"ondatra {text}"
        return "bin/up" if text == "up" else f"{self.python} manage.py {text}"

    @property
    def heap_mib(self) -> int:
        """The heap of Spark's JVM."""
        return _mib(self.driver_memory)

    @property
    def spark_is_here(self) -> bool:
        """Whether Spark computes on this machine alone."""
        return self.spark_master.startswith("local")

    @property
    def spark_needs_s3(self) -> bool:
        """Whether Spark itself reads and writes S3; records go there without it."""
        return self.lake_url.startswith("s3:") or self.staging_url.startswith("s3:")

    @property
    def spark_jars(self) -> str:
        """Which of Spark's jars are needed (`lake.packages.PACKAGES`)."""
        return "s3" if self.spark_needs_s3 else "delta"

    @property
    def locks_dir(self) -> Path:
        return self.data_dir / "locks"


def from_env(environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration that the environment describes; nothing is created. Raises ConfigError with every setting that
    is wrong, a line each."""
    found = read(environment)
    if found.wrong:
        raise ConfigError("\n".join(map(str, found.wrong)))
    return found


def read(environment: Mapping[str, str] = os.environ) -> Config:
    """The same, with what is wrong told in `wrong`. A setting keeps its number for good: people look it up."""
    env = _Environment(environment)
    project = Path(env.text("ONDATRA_PROJECT_DIR") or ROOT).resolve()
    data = Path(env.text("ONDATRA_DATA_DIR") or project / "data").resolve()
    web_host, web_port = env.text("ONDATRA_WEB_HOST") or "127.0.0.1", env.number(22, "ONDATRA_WEB_PORT", 8000)
    spark = _spark(env, environment)
    heap = env.checked(8, "SPARK_DRIVER_MEMORY", JVM_SIZE.fullmatch, "a size such as 1800m or 4g is expected")
    heap = heap or spark.get("spark.driver.memory") or f"{machine.heap(machine.memory())}m"
    if data.exists() and not data.is_dir():
        env.refuse(1, "ONDATRA_DATA_DIR", str(data), "the path of a folder is expected")

    return Config(
        project_dir=project,
        data_dir=data,
        lake_url=env.place(2, "ONDATRA_LAKE_URL", data / "lake"),
        staging_url=env.place(3, "ONDATRA_STAGING_URL", data / "staging"),
        tracking_url=env.place(4, "ONDATRA_TRACKING_URL", data / "store"),
        redis_url=env.checked(5, "REDIS_URL", _is_redis, "redis://HOST:PORT/0 is expected", hidden=True) or None,
        spark_master=env.checked(6, "SPARK_MASTER", MASTER.fullmatch, "local[2] or spark://HOST:7077 is expected")
        or spark.get("spark.master")
        or f"local[{max(machine.cores(), 2)}]",
        spark=spark,
        spark_refused=tuple(spark_settings.refused(environment)),
        s3_endpoint=env.address(7, "AWS_ENDPOINT_URL_S3") or env.address(7, "AWS_ENDPOINT_URL") or None,
        s3=S3(
            region=env.text("AWS_REGION") or env.text("AWS_DEFAULT_REGION") or "us-east-1",
            key=env.text("AWS_ACCESS_KEY_ID") or None,
            secret=env.text("AWS_SECRET_ACCESS_KEY") or None,
            token=env.text("AWS_SESSION_TOKEN") or None,
        ),
        jars_dir=Path(env.text("ONDATRA_JARS_DIR") or (ROOT / ".venv" / "jars" if IN_CLONE else _cache(env) / "jars")),
        driver_memory=heap,
        duckdb_memory=env.checked(9, "ONDATRA_DUCKDB_MEMORY", SIZE.fullmatch, "a size such as 2GB or 500MB is expected")
        or "2GB",
        store_cache_bytes=env.number(10, "ONDATRA_STORE_CACHE_BYTES", 2 * 1024**3, least=0),
        encryption_keys=_keys(env),
        bucket_endpoints=env.addresses(12, "ONDATRA_BUCKET_ENDPOINTS"),
        workspace_roots=env.several("ONDATRA_WORKSPACE_ROOTS"),
        catalog_classes=env.several("ONDATRA_CATALOG_CLASSES"),
        most_unwritten=env.number(13, "ONDATRA_MOST_UNWRITTEN", 5_000_000),
        keeps_sync_log=env.switch(14, "ONDATRA_SYNC_LOG"),
        upkeep=env.text("ONDATRA_UPKEEP") or "0 3 * * *",
        builds=env.number(15, "ONDATRA_BUILDS", _builds(heap)),
        api_rate=env.number(20, "ONDATRA_API_RATE", 600),
        plain_build=env.switch(21, "ONDATRA_PLAIN_BUILD", usual=False),
        web_host=web_host,
        web_port=web_port,
        site_url=(env.address(24, "ONDATRA_SITE_URL") or f"http://{web_host}:{web_port}").rstrip("/"),
        webhook_endpoints=env.addresses(25, "ONDATRA_WEBHOOK_ENDPOINTS"),
        alert_gather=env.number(31, "ONDATRA_ALERT_GATHER", 20, least=0),
        tls_proxy=env.checked(30, "ONDATRA_TLS_PROXY", ADDRESS.fullmatch, "an IP address, or * for any, is expected"),
        fault=env.text("ONDATRA_FAULT"),
        wrong=tuple(sorted(env.wrong, key=lambda w: w.number)),
    )


class _Environment:
    """Settings by name; what cannot be used is noted, and the usual value taken."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.wrong: list[Wrong] = []

    def refuse(self, number: int, name: str, found: str, expected: str) -> None:
        self.wrong.append(Wrong(number, name, found, expected))

    def text(self, name: str) -> str:
        return self._env.get(name, "").strip()

    def several(self, name: str) -> tuple[str, ...]:
        """With commas between."""
        return tuple(part for text in self.text(name).split(",") if (part := text.strip()))

    def checked(
        self, number: int, name: str, right: Callable[[str], object], expected: str, *, hidden: bool = False
    ) -> str:
        """The text if it is right; empty where there is none. A `hidden` one may hold a password and is not shown."""
        text = self.text(name)
        if text and not right(text):
            self.refuse(number, name, "***" if hidden else text, expected)
            return ""
        return text

    def number(self, number: int, name: str, usual: int, *, least: int = 1) -> int:
        expected = f"a whole number from {least} on is expected"
        text = self.checked(number, name, lambda t: t.isascii() and t.isdigit() and int(t) >= least, expected)
        return int(text or usual)

    def switch(self, number: int, name: str, *, usual: bool = True) -> bool:
        text = self.checked(number, name, lambda t: t.lower() in ON + OFF, "on or off is expected").lower()
        return text in ON if text else usual

    def place(self, number: int, name: str, usual: Path) -> str:
        expected = "file:///FOLDER or s3://BUCKET/PREFIX is expected"
        return (self.checked(number, name, _is_place, expected) or usual.as_uri()).rstrip("/")

    def address(self, number: int, name: str) -> str:
        return self.checked(number, name, _is_address, "http(s)://HOST is expected")

    def addresses(self, number: int, name: str) -> tuple[str, ...]:
        told = tuple(text.rstrip("/") for text in self.several(name))
        for text in told:
            if not _is_address(text):
                self.refuse(number, name, text, "addresses http(s)://HOST with commas between are expected")
        return tuple(filter(_is_address, told))


def wrong_of_django(environment: Mapping[str, str] = os.environ) -> tuple[Wrong, ...]:
    """What is wrong with the settings that Django's own module reads; DATABASE_URL may hold a password."""
    env = _Environment(environment)
    expected = "postgres://USER:PASSWORD@HOST:5432/NAME or sqlite:///FILE?timeout=SECONDS is expected"
    env.checked(18, "DATABASE_URL", _is_database, expected, hidden=True)
    env.switch(19, "DJANGO_DEBUG")
    expected = "smtp+tls://USER:PASSWORD@HOST:587, smtp+ssl://…:465, smtp://HOST:25 or consolemail:// is expected"
    env.checked(23, "EMAIL_URL", _is_mail_server, expected, hidden=True)
    env.checked(26, "EMAIL_FROM", lambda text: "@" in text, "an address such as ondatra@example.com is expected")
    return tuple(env.wrong)


def _spark(env: _Environment, environment: Mapping[str, str]) -> dict[str, str]:
    """Settings of Spark that may be given. One of the environment, which is meant for this install, is refused as any
    other wrong setting is."""
    for variable, value in spark_settings.of_environment(environment).items():
        if why := spark_settings.why_not(spark_settings.name_of(variable), value):
            env.refuse(31, variable, "***" if spark_settings.HIDDEN.search(variable) else value, why)
    return spark_settings.given(environment)


def _mib(heap: str) -> int:
    """Of a size as Java takes it."""
    units = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}
    amount = re.fullmatch(r"(\d+)([kmgt]?)b?", heap.lower())
    return int(int(amount[1]) * units.get(amount[2], 1 / machine.MIB)) if amount else 0


def _builds(heap: str) -> int:
    """As many as cores that the heap has room for, and two in any case."""
    return max(2, min(machine.cores(), MOST_BUILDS, _mib(heap) // HEAP_OF_A_BUILD))


def _keys(env: _Environment) -> tuple[str, ...]:
    told = env.several("ONDATRA_ENCRYPTION_KEY")
    for short in (key for key in told if len(key) < SHORTEST_KEY):
        expected = f"keys of at least {SHORTEST_KEY} characters are expected, for example 48 random ones"
        env.refuse(11, "ONDATRA_ENCRYPTION_KEY", f"a key of {len(short)} characters", expected)
    return told


def _is_place(text: str) -> bool:
    parts = urlsplit(text)
    if parts.scheme == "s3":
        return bool(parts.netloc)
    return parts.scheme == "file" and not parts.netloc and parts.path.startswith("/")


def _is_address(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _is_database(text: str) -> bool:
    try:
        parts = urlsplit(text)
        timeout = parse_qs(parts.query).get("timeout", ["30"])[0]
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme == "sqlite":
        return bool(parts.path.strip("/")) and timeout.isascii() and timeout.isdigit()
    return parts.scheme in ("postgres", "postgresql", "psql", "pgsql") and bool(parts.path.strip("/"))


def _is_mail_server(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme == "consolemail":
        return True
    return parts.scheme in ("smtp", "smtp+tls", "smtp+ssl") and bool(parts.hostname)


def _is_redis(text: str) -> bool:
    return text.startswith(("redis://", "rediss://", "unix://"))


def _cache(env: _Environment) -> Path:
    """What all installs of this person share; jars of another Delta would not start."""
    from importlib.metadata import version  # takes as long as all else here

    home = Path(env.text("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "ondatra" / f"delta-{version('delta-spark')}"
