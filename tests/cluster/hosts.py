"""Hosts that share nothing but the network, on one machine: network, mount and host name namespaces behind a bridge.

Where the machine lets nobody make them, every host is an address of the loopback's, and `why` says so.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

#: One after the other: the bridge, then the hosts.
NET = "10.{net}.0.{number}"
#: What a host does before its program begins: folders of other hosts are empty to it.
BEGIN = """
hostname "$1"; shift
mount --bind "$NAMES" /etc/hosts
for folder in $HIDDEN; do mount -t tmpfs -o mode=755 tmpfs "$folder"; done
exec "$@"
"""


@dataclass
class Host:
    """One machine of the network; `hidden` are folders that are its own, or empty, whatever other hosts have there."""

    name: str
    address: str
    network: Network
    hidden: tuple[Path, ...] = ()
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def space(self) -> str:
        return f"{self.network.prefix}{self.name}"

    @property
    def link(self) -> str:
        """The bridge's end of its wire; such names are short."""
        return f"{self.network.prefix}v{self.address.rpartition('.')[2]}"

    def start(self, name: str, command: Sequence[str], env: Mapping[str, str], folder: Path) -> subprocess.Popen[bytes]:
        """A process of this host; what it says goes into a file of the network's."""
        with (self.network.logs / f"{self.name}-{name}.log").open("ab") as log:
            process = subprocess.Popen(
                self._there(command),
                env=self._told(env),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def runs(self, command: Sequence[str], env: Mapping[str, str], folder: Path) -> str:
        """What a command of this host says."""
        done = subprocess.run(
            self._there(command), env=self._told(env), cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def _told(self, env: Mapping[str, str]) -> dict[str, str]:
        return {**env, "HIDDEN": " ".join(map(str, self.hidden)), "NAMES": str(self.network.names)}

    def _there(self, command: Sequence[str]) -> list[str]:
        if self.network.why:
            return list(command)
        shell = ["unshare", "--uts", "sh", "-c", BEGIN, "sh", self.name]
        return ["ip", "netns", "exec", self.space, *shell, *command]

    def dies(self) -> None:
        """Power is gone: no process says anything, and no connection is closed."""
        if not self.network.why:
            self.network.ip("link", "set", self.link, "down")
        self.end()

    def slows(self, rate: str) -> None:
        """Its wire carries no more than that from now on, both ways; the loopback of a machine knows no such thing."""
        if not self.network.why:
            limit = ["root", "tbf", "rate", rate, "burst", "16kb", "latency", "2s"]
            self.network.tc("add", "dev", self.link, *limit)
            self.network.tc("add", "dev", "eth0", *limit, space=self.space)

    def is_quick_again(self) -> None:
        if not self.network.why:
            self.network.tc("del", "dev", self.link, "root")
            self.network.tc("del", "dev", "eth0", "root", space=self.space)

    def end(self) -> None:
        for process in self.running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self._kill_rest()
        for process in self.running:
            process.wait()
        self.running.clear()

    def _kill_rest(self) -> None:
        """Executors are in sessions of their own."""
        if self.network.why:
            return
        for _ in range(20):
            found = subprocess.run(
                ["ip", "netns", "pids", self.space], capture_output=True, text=True, check=False
            ).stdout
            for pid in map(int, found.split()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not found.split():
                return
            time.sleep(0.05)


@dataclass
class Network:
    """The bridge and its hosts; `why` tells what kept them from being namespaces."""

    logs: Path
    prefix: str = ""
    net: int = 0
    why: str = ""
    hosts: dict[str, Host] = field(default_factory=dict)
    talking: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def gate(self) -> str:
        """The address under which the test itself is reached from every host."""
        return "127.0.0.1" if self.why else NET.format(net=self.net, number=1)

    @property
    def names(self) -> Path:
        """The hosts by name, as /etc/hosts has them."""
        return self.logs.parent / "hosts"

    def beside(self, command: Sequence[str], env: Mapping[str, str], folder: Path) -> subprocess.Popen[str]:
        """A process of the test's own machine that it talks to, for as long as there are hosts."""
        with (self.logs / "beside.log").open("ab") as log:
            made = subprocess.Popen(
                list(command),
                env=dict(env),
                cwd=folder,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.talking.append(made)
        return made

    def ip(self, *command: str) -> None:
        subprocess.run(["ip", *command], check=True, capture_output=True, text=True)

    def tc(self, *command: str, space: str = "") -> None:
        there = ["-n", space] if space else []
        subprocess.run(["tc", *there, "qdisc", *command], check=True, capture_output=True, text=True)

    def host(self, name: str, hidden: Sequence[Path] = ()) -> Host:
        number = len(self.hosts) + 2
        if self.why:
            made = Host(name, f"127.0.0.{number}", self)
        else:
            made = Host(name, NET.format(net=self.net, number=number), self, tuple(hidden))
        self.hosts[name] = made
        if not self.why:
            self._wire(made)
        told = [("127.0.0.1", "localhost"), *((h.address, h.name) for h in self.hosts.values())]
        self.names.write_text("".join(f"{address} {known}\n" for address, known in told))
        return made

    def host_from(self, address: str, port: int) -> Host:
        """The host whose process speaks from there; on the loopback all addresses are one."""
        if not self.why:
            return next(host for host in self.hosts.values() if host.address == address)
        return self.host_with(_speaker(port))

    def host_with(self, pid: int) -> Host:
        """The host that a process of this machine belongs to."""
        group = os.getpgid(pid)
        return next(host for host in self.hosts.values() if group in {process.pid for process in host.running})

    def _wire(self, host: Host) -> None:
        self.ip("netns", "add", host.space)
        self.ip("link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", host.space)
        self.ip("link", "set", host.link, "master", f"{self.prefix}br", "up")
        for command in (["addr", "add", f"{host.address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
            self.ip("-n", host.space, *command)
        self.ip("-n", host.space, "link", "set", "lo", "up")
        self.ip("-n", host.space, "route", "add", "default", "via", self.gate)

    def _begin(self) -> None:
        self.ip("link", "add", f"{self.prefix}br", "type", "bridge")
        self.ip("addr", "add", f"{self.gate}/24", "dev", f"{self.prefix}br")
        self.ip("link", "set", f"{self.prefix}br", "up")

    def _end(self) -> None:
        for process in self.talking:
            process.kill()
            process.wait()
        for host in self.hosts.values():
            host.end()
        if self.why:
            return
        for host in self.hosts.values():
            # the namespace's own end comes when it likes, and until then its wire keeps its name
            for thing in (["link", "del", host.link], ["netns", "del", host.space]):
                with suppress(subprocess.CalledProcessError):
                    self.ip(*thing)
        with suppress(subprocess.CalledProcessError):
            self.ip("link", "del", f"{self.prefix}br")


def _speaker(port: int) -> int:
    """The process that has a connection from that port of this machine."""
    lines = [line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()]
    inodes = {f"socket:[{words[9]}]" for words in lines[1:] if words[1].endswith(f":{port:04X}")}
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(link) in inodes:
                return int(link.parts[2])
    raise LookupError(f"nobody speaks from port {port}")


@contextmanager
def network(logs: Path) -> Iterator[Network]:
    """Hosts for as long as the block lasts; all that ran on them is gone afterwards."""
    number = os.getpid() % 200
    made = Network(logs, prefix=f"o{os.getpid() % 100000:05d}", net=20 + number)
    logs.mkdir(parents=True, exist_ok=True)
    try:
        if os.geteuid() != 0 or not shutil.which("ip"):
            raise PermissionError("namespaces need root and iproute2")
        made._begin()
    except (OSError, subprocess.CalledProcessError) as error:
        made.why = f"hosts are addresses of the loopback: {getattr(error, 'stderr', None) or error}".strip()
        print(made.why)
    try:
        yield made
    finally:
        made._end()
