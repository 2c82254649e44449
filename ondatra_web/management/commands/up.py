"""`ondatra up`: pages, workers and scheduler of a project on one machine, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from ondatra_web import projects
from ondatra_web.management.commands import first_user
from ondatra_web.serving import ports, processes
from ondatra_web.serving.fetching import Fetching
from ondatra_web.serving.processes import Background, step
from runtime.config import Config
from runtime.errors import ConfigError
from runtime.lake import jars, java, packages


class Command(BaseCommand):
    help = "Serves the pages of a project, with workers and scheduler, until Ctrl-C."

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            raise SystemExit(up(settings.ONDATRA))
        except ConfigError as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        except KeyboardInterrupt:
            raise SystemExit(130) from None


def up(config: Config) -> int:
    """Serves until a signal comes or a process ends; the exit code. Raises ConfigError."""
    background = Background(config.data_dir, config.project_dir)
    with ExitStack() as stack:
        processes.only_one(stack, config.data_dir)
        stack.callback(background.stop)
        java.find()
        fetching = Fetching(partial(_jars, config))
        with step("database"):
            call_command("migrate", verbosity=0)
        projects.workspace_of(projects.DEFAULT)
        login = first_user.told(*first_user.make("admin"))
        print(f"  {login}", flush=True)

        redis_url = processes.redis(background, config.data_dir)
        port = ports.free(ports.WEB, "the pages")
        told = {"REDIS_URL": redis_url, "ONDATRA_WEB_HOST": ports.HOST, "ONDATRA_WEB_PORT": str(port)}
        threading.Thread(target=background.watch, args=("redis",), daemon=True).start()
        threading.Thread(target=_announce, args=(config, port, background, fetching), daemon=True).start()
        return processes.serve(config.project_dir, {**os.environ, **told})


def _jars(config: Config) -> None:
    try:
        with step("the jars for Spark"):
            jars.ready(config.jars_dir, config.spark_jars)
    except ConfigError as error:  # the pages tell it as well
        print(f"  {error}", flush=True)


def _announce(config: Config, port: int, background: Background, fetching: Fetching) -> None:
    while not ports.answers(port):
        if background.ending:
            return
        time.sleep(0.1)
    print(
        f"\nOndatra serves {config.project_dir} at http://{ports.HOST}:{port}\n"
        f"  `{config.command('run')}` in another terminal builds and sends; Ctrl-C ends everything\n"
        + (f"  {packages.COMING}\n" if fetching.goes_on else ""),
        flush=True,
    )
