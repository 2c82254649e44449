"""What bin/up and bin/test share: everything that a fresh machine lacks, each step with its time. Standard library
only.

Safe to repeat: a step whose work is done says so at once.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.errors import ConfigError  # noqa: E402
from runtime.lake import java  # noqa: E402

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
JARS = Path(os.environ.get("ONDATRA_JARS_DIR") or VENV / "jars")
#: The installer of packages, and what holds its hashes.
INSTALLER = "requirements-uv.lock"
#: Seconds after which a step says what it waits for, and then says so again.
SOON, AGAIN = 3.0, 30.0
_apt_guard = threading.Lock()  # apt-get takes one caller at a time


PIP = (PYTHON, "-m", "pip", "--disable-pip-version-check")
#: Options of pip's, and the variables of uv's that say the same.
UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}


class Missing(Exception):
    """Something that this script cannot install; its text says what to do."""


def step(name: str, action: Callable[[], str], waits: str = "") -> None:
    """Runs one step and prints what it did and how long it took; on the way, what it `waits` for."""
    side_by_side((name, action, waits))


def side_by_side(*steps: tuple[str, Callable[[], str], str]) -> None:
    """Runs steps at the same time, each with a line when it is done and, where it takes long, lines before. Whatever
    fails is printed, and ends set-up once the others are done."""
    with ThreadPoolExecutor(len(steps)) as pool:
        running = [pool.submit(timed, *one) for one in steps]
    if failed := [(name, error) for (name, *_), done in zip(steps, running, strict=True) if (error := _error(done))]:
        for name, error in failed:
            print(f"{name}: {error}", file=sys.stderr)
        raise SystemExit(1)


def timed(name: str, action: Callable[[], str], waits: str) -> None:
    began = time.monotonic()
    with _waiting(name, waits, began):
        said = action()
    print(f"  {name:<22}{said}  ({time.monotonic() - began:.1f} s)", flush=True)


@contextmanager
def _waiting(name: str, waits: str, began: float) -> Iterator[None]:
    """Says from time to time that the step goes on."""
    done = threading.Event()

    def tell() -> None:
        wait = SOON
        while not done.wait(wait):
            print(f"  {name:<22}… {waits or 'at work'}  ({time.monotonic() - began:.0f} s so far)", flush=True)
            wait = AGAIN

    telling = threading.Thread(target=tell, daemon=True)
    telling.start()
    try:
        yield
    finally:
        done.set()
        telling.join()


def _error(done: Future[None]) -> str:
    """What a step says that failed; empty for one that did not. Raises what nobody expected."""
    error = done.exception()
    if isinstance(error, subprocess.CalledProcessError):
        command = " ".join(map(str, error.cmd))[:200]
        return f"{command} ended with {error.returncode}\n{(error.output or '')[-3000:]}"
    if isinstance(error, Missing):
        return str(error)
    done.result()
    return ""


def quiet(*command: str | Path, **more: object) -> str:
    return subprocess.run(
        [str(c) for c in command], check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more
    ).stdout  # type: ignore[call-overload,no-any-return]


def python_ready(lock: str) -> str:
    """The virtual environment with the locked packages. The tests' lock holds the other one whole, so either order is
    safe."""
    text = (ROOT / lock).read_bytes()
    stamp, mark = VENV / f"{lock}.stamp", hashlib.sha256(text + sys.version.encode()).hexdigest()
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == mark:
        return "as locked"
    if not PYTHON.exists():
        _venv()
    try:
        _install_quickly(ROOT / lock)
    except (subprocess.CalledProcessError, OSError):  # of whatever machine it does not know
        _patiently(*PIP, "install", "-q", "--require-hashes", "-r", ROOT / lock)
    stamp.write_text(mark)
    return "installed"


def _install_quickly(lock: Path) -> None:
    """By uv, from the index that pip is told to use, with the lock's hashes. Raises CalledProcessError or OSError."""
    _patiently(*PIP, "install", "-q", "--only-binary", ":all:", "--require-hashes", "-r", ROOT / INSTALLER)
    with tempfile.TemporaryDirectory() as scratch:
        # Spark comes as source alone: put together as a wheel, its 450 MB of jars need not be packed once more
        packing = Path(scratch) / "wheels.cfg"
        packing.write_text("[bdist_wheel]\ncompression = stored\n")
        environment = {**os.environ, **_index(), "DIST_EXTRA_CONFIG": str(packing)}
        uv = [VENV / "bin" / "uv", "pip", "install", "-q", "--no-config", "--python", PYTHON]
        quiet(*uv, "--no-deps", "--require-hashes", "-r", lock, env=environment)


def _index() -> dict[str, str]:
    """Where pip is told to look, by its files or the environment, as uv takes it: uv reads neither."""
    found = {}
    for line in quiet(*PIP, "config", "list").splitlines():
        name, _, value = line.partition("=")
        said = " ".join(str(ast.literal_eval(value)).split()) if value.startswith(("'", '"')) else value
        if (option := UV.get(name.rsplit(".", 1)[-1].replace("_", "-"))) and option not in os.environ:
            found[option] = said
    return found


def _venv() -> None:
    """Debian keeps the module venv in a package of its own."""
    command = [sys.executable, "-m", "venv", "--clear", VENV]
    try:
        quiet(*command)
    except subprocess.CalledProcessError:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        _apt(
            package,
            f"{sys.executable} cannot make a virtual environment: "
            f"install {package} (Debian: apt-get install {package})",
        )
        quiet(*command)


def _patiently(*command: str | Path, tries: int = 3, **more: object) -> str:
    """A network that drops a download deserves another try."""
    for left in reversed(range(tries)):
        try:
            return quiet(*command, **more)
        except subprocess.CalledProcessError:
            if not left:
                raise
            time.sleep(2)
    return ""


def java_ready() -> str:
    """Java 17 or newer: found, or installed where that is possible. Leaves JAVA_HOME at one that PATH does not lead
    to."""
    try:
        return f"Java {java.find()}"
    except ConfigError as error:
        _apt("openjdk-17-jre-headless", str(error))
    try:
        return f"Java {java.find()} installed"
    except ConfigError as error:
        raise Missing(str(error)) from None


def _apt(package: str, otherwise: str) -> None:
    """Installs a Debian package as root or through sudo; raises Missing where neither is possible."""
    if not shutil.which("apt-get"):
        raise Missing(otherwise)
    sudo: list[str] = []
    if os.geteuid() != 0:
        if (
            not shutil.which("sudo")
            or subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode
        ):
            raise Missing(otherwise)
        sudo = ["sudo", "-n"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        with _apt_guard:
            quiet(*sudo, "apt-get", "update", "-q", env=environment)
            quiet(*sudo, "apt-get", "install", "-qy", "--no-install-recommends", package, env=environment)
    except subprocess.CalledProcessError as error:
        raise Missing(
            f"{otherwise}; apt-get said: {error.output.strip().splitlines()[-1] if error.output.strip() else 'nothing'}"
        ) from None


def jars_ready(s3: bool = False) -> str:
    """The Delta jars, and those for S3 where the lake or staging lies there, resolved once; later starts need no
    network."""
    needed = s3 or any(
        os.environ.get(name, "").startswith("s3:") for name in ("ONDATRA_LAKE_URL", "ONDATRA_STAGING_URL")
    )
    return _jars("s3" if needed else "delta", JARS)


def wiremock_ready() -> str:
    """A server for the tests of asynchronous destinations; beside the jars, in a folder that Spark does not load."""
    return _jars("org.wiremock:wiremock-standalone:3.13.2", JARS / "wiremock")


def _jars(wanted: str, folder: Path) -> str:
    if (
        subprocess.run(
            [PYTHON, "-m", "runtime.lake.jars", "--check", wanted, folder], cwd=ROOT, capture_output=True, check=False
        ).returncode
        == 0
    ):
        return "kept"
    _patiently(PYTHON, "-m", "runtime.lake.jars", "--beside", wanted, folder, cwd=ROOT)
    return "resolved"


def chromium_ready() -> str:
    if shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"):
        return "found"
    _apt("chromium", "Chromium was not found: install it (Debian: apt-get install chromium)")
    return "installed"


def browser_driver_ready() -> str:
    """Playwright drives the browser through a Node of its own, which needs a library that a small Debian lacks."""
    wrong = _driver_error()
    if not wrong:
        return "starts"

    way_out = f"Playwright's Node does not start ({wrong})"
    if "libatomic.so.1" not in wrong:
        raise Missing(f"{way_out}: install what it names")

    _apt("libatomic1", f"{way_out}: install libatomic1 (Debian: apt-get install libatomic1)")
    if wrong := _driver_error():
        raise Missing(f"libatomic1 was installed, but Playwright's Node does not start: {wrong}")
    return "libatomic1 installed"


def _driver_error() -> str:
    """The last line of what Playwright says instead of its version."""
    done = subprocess.run([PYTHON, "-m", "playwright", "--version"], capture_output=True, text=True, check=False)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return (lines[-1] if lines else f"it ended with {done.returncode}") if done.returncode else ""


def postgres_ready() -> str:
    """PostgreSQL's programs, for the tests on the database of production."""

    def found() -> bool:
        return bool(shutil.which("initdb") or list(Path("/usr/lib/postgresql").glob("*/bin/initdb")))

    if found():
        return "found"
    _apt("postgresql", "PostgreSQL was not found: install it (Debian: apt-get install postgresql)")
    if not found():
        raise Missing("PostgreSQL was installed but initdb is not in /usr/lib/postgresql/*/bin; put it on PATH")
    return "installed"


def data_ready() -> str:
    """The data folder can be written."""
    data = Path(os.environ.get("ONDATRA_DATA_DIR") or ROOT / "data")
    try:
        data.mkdir(parents=True, exist_ok=True)
        probe = data / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise Missing(
            f"the data folder {data} cannot be written ({error.strerror}): make it writable or set ONDATRA_DATA_DIR"
        ) from None
    return str(data)


def set_up(lock: str, *, s3: bool = False) -> None:
    set_up_programs(lock)
    step("Jars for Spark", lambda: jars_ready(s3), "Maven's repository")


def set_up_programs(lock: str) -> None:
    """All but Spark's jars."""
    step("data folder", data_ready)
    side_by_side(_packages(lock), ("Java", java_ready, "Debian's packages"))


def set_up_python(lock: str) -> None:
    """All that runs without Spark."""
    step("data folder", data_ready)
    side_by_side(_packages(lock))


def _packages(lock: str) -> tuple[str, Callable[[], str], str]:
    return "Python packages", lambda: python_ready(lock), "the package index: about 600 MB, most of it Spark"
