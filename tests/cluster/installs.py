"""The same install twice: embedded, on one machine with SQLite and folders; and a cluster, whose hosts share nothing
but the network, with Spark's own master and workers, PostgreSQL, Redis, and lake, staging and records on S3."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import services
from cluster import composed
from cluster.destination import PUSH, Destination, destination
from cluster.hosts import Host, Network, network
from cluster.shop import Shop

ROOT = Path(__file__).resolve().parents[2]
WORKER = [sys.executable, "-m", "dramatiq", "ondatra_web.jobs", "-p", "1", "--worker-shutdown-timeout", "1000", "-Q"]
PIPELINE = [*WORKER[:-1], "-t", "1", "-Q", "pipeline"]
PUSHES = [*WORKER[:-1], "-t", "2", "-Q", "push", "export"]
SETUP = """
from django.contrib.auth.models import User
from ondatra_web import projects, tokens
from ondatra_web.clock import folders
from ondatra_web.models import Membership
place = projects.workspace_of("default")
alice = User.objects.create_superuser("alice", password="alice-password")
Membership.objects.create(user=alice, organization=place.organization, role="admin")
folders.read()
print("token", tokens.make(place.organization, alice, "story", list(tokens.SCOPES))[1])
"""
#: Answers expressions, a line each, about the install's database.
ASK = """
import json, sys
import django
django.setup()
from ondatra_web import queue
from ondatra_web.models import *
from ondatra_web.tracking import sync_log
for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)
"""
#: A JVM of few threads that is there soon.
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: A busy machine's first Spark takes its time.
PATIENCE = 240


@dataclass
class Install:
    """What the story needs of either: its API and pages, its project, and its processes by host."""

    kind: str
    home: Path
    project: Path
    env: dict[str, str]
    destination: Destination
    network: Network
    shop: Shop
    url: str = ""
    token: str = ""
    syncs: dict[str, int] = field(default_factory=dict)
    asked: subprocess.Popen[str] | None = None
    instead: dict[str, str] = field(default_factory=dict)  # of what compose.yaml says, where there are no namespaces

    def api(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{self.url}/api/v1/{path}", data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            said = answer.read()
        return json.loads(said)["data"] if answer.headers["Content-Type"].startswith("application/json") else said

    def trigger(self, name: str, **body: Any) -> int:
        return int(self.api("POST", f"syncs/{self.syncs[name]}/trigger", body)["sync_run_id"])

    def run(self, run: int) -> dict[str, Any]:
        return dict(self.api("GET", f"sync_runs/{run}"))

    def ended(self, run: int, seconds: float = PATIENCE) -> dict[str, Any]:
        """The run once it has ended."""

        def found() -> dict[str, Any] | None:
            told = self.run(run)
            return None if told["run_status"] in ("queued", "working", "canceling") else told

        return until(found, f"run {run} has ended", seconds)

    def ended_run(self, name: str, **body: Any) -> dict[str, Any]:
        return self.ended(self.trigger(name, **body))

    def page(self, path: str) -> str:
        """The text of a page as alice sees it."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        form = opener.open(f"{self.url}/login/", timeout=60).read().decode()
        csrf = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', form)[0]
        told = f"csrfmiddlewaretoken={csrf}&username=alice&password=alice-password".encode()
        opener.open(urllib.request.Request(f"{self.url}/login/", told, {"Referer": self.url}), timeout=60).close()
        text = opener.open(f"{self.url}/{path}", timeout=60).read().decode()
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))

    def manage(self, *command: str) -> str:
        """A command of the product's, on the machine of the web server."""
        done = subprocess.run(
            [sys.executable, "manage.py", *command], cwd=ROOT, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def told(self, expression: str) -> Any:
        """What the product says of itself, in a process that stays."""
        if self.asked is None:
            self.asked = self.network.beside([sys.executable, "-c", ASK], self.env, ROOT)
        assert self.asked.stdin and self.asked.stdout
        self.asked.stdin.write(expression + "\n")
        self.asked.stdin.flush()
        return json.loads(self.asked.stdout.readline())

    def sends(self, actor: str, of: str) -> None:
        """Wakes a pipeline worker for each of these, as the scheduler would at its time."""
        self.told(f"[queue.send({actor!r}, o.pk, queue='pipeline') for o in {of}.objects.all()]")

    def says(self, line: str) -> bool:
        """Whether some process has said so."""
        return any(line in log.read_text(errors="replace") for log in self.network.logs.glob("*.log"))

    def at_work(self, what: str) -> str:
        """The host whose process owns a run or a delivery."""
        host, pid = self.told(f"(lambda owner: [owner.host, owner.pid])({what}.owner)")
        return self.network.host_with(pid).name if self.network.why else str(host)

    def host(self, name: str) -> Host:
        return self.network.hosts[name]

    def starts_again(self, host: str, name: str, command: list[str]) -> None:
        """On one machine somebody has to; a cluster has others of the kind."""
        if self.kind == "embedded":
            self.starts(host, name, command)

    def starts(self, host: str, name: str, command: list[str], **env: str) -> None:
        self.host(host).start(name, command, {**self.env, **env}, ROOT)

    def model(self, name: str, text: str) -> None:
        path = self.project / "models" / f"{name.replace('.', '/')}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def until(found: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """What is found in the end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if there := found():
            return there
        time.sleep(0.2)
    raise AssertionError(f"after {seconds} s it is not so that {what}")


def _begin(install: Install, web: str) -> None:
    """A workspace, a person, the web server and the scheduler."""
    install.manage("workspace", "default", "--project", str(install.project))
    install.token = re.findall(r"^token (\S+)$", install.manage("shell", "-c", SETUP), re.M)[0]
    host, port = install.host(web), services.free_port()
    install.url = f"http://{host.address}:{port}"
    install.env |= {
        "ONDATRA_WEB_HOST": host.address,
        "ONDATRA_WEB_PORT": str(port),
        "DJANGO_ALLOWED_HOSTS": host.address,
    }
    for service in ("web", "scheduler", "alerts"):
        install.starts(web, service, composed.service(service).command)
    listed = until(lambda: _syncs(install), "the web server answers", 60)
    install.syncs = {sync["label"]: sync["id"] for sync in listed}


def _syncs(install: Install) -> Any:
    try:
        return install.api("GET", "syncs?per_page=100")
    except (OSError, urllib.error.URLError):
        return None


def _environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": "ondatra_web.settings",
        "ONDATRA_DATA_DIR": str(home / "data"),
        "SPARK_DRIVER_MEMORY": "1g",
        "SPARK_SUBMIT_OPTS": LIGHT,
        "ONDATRA_UPKEEP": "off",
        **more,
    }


@contextmanager
def embedded(home: Path, write: Callable[[Path], None]) -> Iterator[Install]:
    """One machine: SQLite, folders, Spark in the pipeline worker."""
    with ExitStack() as stack:
        taken = stack.enter_context(destination("127.0.0.1"))
        net = Network(home / "logs", why="one machine")
        net.logs.mkdir(parents=True)
        stack.callback(net._end)
        net.hosts = {name: Host(name, "127.0.0.1", net) for name in ("web", "pipeline-1", "push-1", "push-2")}
        url = stack.enter_context(services.redis(home / "redis"))
        shop = Shop(stack.enter_context(services.postgres()))
        made = Install("embedded", home, home / "project", _environment(home, REDIS_URL=url), taken, net, shop)
        _write(made, write)
        made.manage("migrate", "-v0")
        _work(made)
        _begin(made, "web")
        yield made


def _write(install: Install, write: Callable[[Path], None]) -> None:
    (install.project / "lib").mkdir(parents=True)
    for name, rows, calls in (("dest", 10, 1), ("few", 2, 1), ("wide", 1000, 6)):
        (install.project / "lib" / f"{name}.star").write_text(PUSH % (install.destination.url, rows, calls))
    install.shop.opens()
    (install.project / "ondatra.toml").write_text(install.shop.toml)
    install.env |= install.shop.environment
    write(install.project)


def _work(install: Install) -> None:
    for name in install.network.hosts:
        if name.startswith("pipeline"):
            install.starts(name, "pipeline", PIPELINE)
        elif name.startswith("push"):
            install.starts(name, "push", PUSHES)


#: What runs where: a host and the service of compose.yaml that it is a container of.
HOSTS = {
    "spark-master": "spark-master",
    "spark-1": "spark-worker",
    "spark-2": "spark-worker",
    "pipeline-1": "pipeline",
    "pipeline-2": "pipeline",
    "push-1": "push",
    "push-2": "push-more",
    "push-3": "push-more",
}


@contextmanager
def cluster(home: Path, write: Callable[[Path], None], hosts: Mapping[str, str] = HOSTS) -> Iterator[Install]:
    """What compose.yaml starts with the profile `cluster`, a host for each: Redis, S3, a Spark master and two workers,
    two pipeline workers, three push workers, and one for web, alerts and scheduler."""
    with ExitStack() as stack:
        net = stack.enter_context(network(home / "logs"))
        project, data = home / "project", home / "data"
        for folder in (project, data, home / "s3"):
            folder.mkdir()
        taken = stack.enter_context(destination(net.gate))
        for name in ("redis", "s3", "web", *hosts):
            net.host(name, [project, data] if name in ("redis", "s3") or name.startswith("spark") else [data])
        # a machine that is gone is noticed within seconds
        alive = "-c tcp_keepalives_idle=3 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3"
        database = stack.enter_context(services.postgres_server(net.gate, alive)).url

        made = Install("cluster", home, project, _environment(home), taken, net, Shop(database))
        made.env |= composed_environment(made, "pipeline") | {"DATABASE_URL": database, **_SPARK}
        _write(made, write)
        _stores(made, stack)
        for host, service in hosts.items():
            if service.startswith("spark"):
                starts_composed(made, host, service)
        made.host("web").runs(composed.service("setup").command, made.env, ROOT)
        for host, service in hosts.items():
            if not service.startswith("spark"):
                starts_composed(made, host, service)
        _begin(made, "web")
        yield made


#: Both pipeline workers have an executor on each Spark worker; a lost one is noticed within seconds.
_SPARK = {
    "ONDATRA_SPARK_cores_max": "2",
    "ONDATRA_SPARK_executor_cores": "1",
    "ONDATRA_SPARK_executor_memory": "512m",
    "ONDATRA_SPARK_network_timeout": "20s",
    "ONDATRA_SPARK_network_timeoutInterval": "10s",
    "ONDATRA_SPARK_executor_heartbeatInterval": "3s",
    "ONDATRA_SPARK_executor_extraJavaOptions": LIGHT,
}
_ENV = {
    **composed.ENV,
    "SPARK_MASTER": "spark://spark-master:7077",
    "SPARK_WORKER_CORES": "4",
    "ONDATRA_ENCRYPTION_KEY": "story" * 12,
}


def composed_environment(install: Install, service: str) -> dict[str, str]:
    """Of a container of that service: names of hosts become addresses, paths of the image those of this machine."""
    paths = {
        "ONDATRA_PROJECT_DIR": str(install.project),
        "ONDATRA_DATA_DIR": str(install.home / "data"),
        "ONDATRA_JARS_DIR": os.environ.get("ONDATRA_JARS_DIR", ""),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "192m",
        "SPARK_WORKER_DIR": str(install.home / "spark"),
    }
    told = composed.service(service, _ENV).environment
    return {name: _addressed(install, paths.get(name, value)) for name, value in told.items()}


def _addressed(install: Install, text: str) -> str:
    for name, host in install.network.hosts.items():
        text = re.sub(rf"(?<=//){name}(?=:)|^{name}$", host.address, text)
    return text


def starts_composed(install: Install, host: str, service: str) -> None:
    """What a container of that service starts, on that host."""
    told = composed_environment(install, service)
    told.pop("DATABASE_URL", None)  # the database is the test's own
    told |= install.instead
    command = [_addressed(install, word) for word in composed.service(service, _ENV).command]
    if service.startswith("spark"):
        quick = {"SPARK_DAEMON_JAVA_OPTS": LIGHT}
        install.host(host).start(service, command, {**os.environ, "PATH": install.env["PATH"], **told, **quick}, ROOT)
    else:
        install.starts(host, service, command, **told)


def _stores(install: Install, stack: ExitStack) -> None:
    """Redis and S3 by their own commands; without namespaces their ports may be taken, and they get others."""
    if install.network.why:
        s3 = stack.enter_context(services.s3(install.home / "s3"))
        places = {name: url for name, url in install.env.items() if url.startswith("s3://ondatra/")}
        install.instead |= {name: url.replace("ondatra", services.BUCKET, 1) for name, url in places.items()}
        install.instead |= {**s3.env, "REDIS_URL": stack.enter_context(services.redis(install.home / "redis"))}
        install.env |= install.instead
        return
    folder = str(install.home / "s3")
    for name, more in (("redis", ["--dir", folder, "--protected-mode", "no"]), ("s3", [])):  # as the image adds
        told = composed.service(name, _ENV)
        command = [re.sub(r"(?<![\w/])/(data|tmp)(?=[/ ]|$)", folder, word) for word in told.command]
        if name == "redis":
            command[0] = services.redis_program()
        install.host(name).start(name, [*command, *more], {**install.env, **told.environment}, install.home)
    until(lambda: _is_up(f"{install.env['AWS_ENDPOINT_URL_S3']}/healthz"), "S3 is up", 60)


def _is_up(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except OSError:
        return False
    return True
