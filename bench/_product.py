"""What benchmarks of the whole product share: an install in a folder of its own, and a workspace for a project."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: A push function that takes everything and sends nothing.
NOTHING = 'API = {"push": {"batch_mode": "atomic"}}\n\ndef push(rows):\n    return None\n'


def install(name: str) -> Path:
    """Django over an empty database in a new temporary folder; that folder."""
    folder = Path(tempfile.mkdtemp(prefix=f"bench-{name}-"))
    in_folder(folder)
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    return folder


def in_folder(folder: Path) -> None:
    """Django over the data of that folder, in a process that joins an install."""
    os.environ |= {"ONDATRA_DATA_DIR": str(folder / "data"), "DJANGO_SETTINGS_MODULE": "ondatra_web.settings"}
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()


def workspace(project: Path, slug: str = "bench") -> Any:
    """The new workspace of that project."""
    from django.core.management import call_command

    from ondatra_web import projects

    call_command("workspace", slug, "--project", str(project))
    return projects.workspace_of(slug)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int, what: str) -> None:
    """Returns when something listens there."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 0.5).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{what} did not come up on port {port}")
