"""The command line: `.venv/bin/python manage.py COMMAND` in a clone, `ondatra COMMAND` in a project folder of one's
own."""

from __future__ import annotations

import fcntl
import gc
import os
import select
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ondatra_web import stopping
from ondatra_web.management import running
from runtime import config
from runtime.errors import ConfigError

#: What a shell shows of programs that end because nobody reads them: 128 + SIGPIPE.
READER_GONE = 141
#: Objects made since the last look for cycles before the next one: 700, Python's own, are made by each parsed
#: statement.
CYCLES = 50_000
#: Other names of `ondatra`; Django has a command `check` of its own, which `ondatra up` runs.
ALIASES = {"check": "check_models"}
#: Commands that need no project and no database.
ANYWHERE = {"init", "demo_destination"}
#: What `ondatra --help` shows, a line each.
COMMANDS = {
    "A project of one's own": {
        "init": "make a folder with a first model, a push function and its test",
        "check": "report all problems of the models and push functions at once (check_models)",
        "push_test": "call a push function with rows of a file; print its requests, send nothing",
        "run": "build the models, send what changed, and wait",
        "up": "serve the pages, with workers and scheduler",
        "demo_destination": "serve a destination to try syncs on",
    },
    "Runs and their records": {
        "runs": "list the newest runs with their ids",
        "last_runs": "what the newest run of each sync delivered, and what was refused",
        "records": "show or export the records of a run",
        "retry": "count or send again the records of a run",
        "confirm": "let a held run go on",
        "cancel": "stop a run; what it had not sent stays due",
        "discard": "count or drop what waits of a sync",
        "alerts": "list open alerts, or send what waits of them",
        "pause": "stop the schedule of a sync",
        "resume": "start the schedule of a sync again",
    },
    "The install": {
        "workspace": "create a workspace, or point one at another project folder",
        "first_user": "make the admin of a fresh install",
        "token": "make, list or revoke tokens of the HTTP API",
        "changepassword": "give a user a new password",
        "migrate": "bring the database of an earlier version up to date",
        "environment": "check database, Redis, workers, Spark, store, disk and versions",
        "scheduler": "start scheduled runs and look after what waits",
        "store": "show, check or change where records are kept",
        "fact_tables": "write the fact tables now",
        "sync_log": "add new records to the Delta table sync_log now",
        "upkeep": "put little files of the lake together now",
    },
}


def ondatra() -> None:
    """The console script."""
    at_exit_free(lambda: _ondatra(sys.argv[1:]))


def manage() -> None:
    """What manage.py does."""
    at_exit_free(lambda: execute(sys.argv))


def at_exit_free(main: Callable[[], None]) -> None:
    """The system frees everything at once; to look it through first took 80 ms of a check."""
    try:
        main()
    finally:
        gc.disable()
        gc.freeze()


def _ondatra(argv: Sequence[str]) -> None:
    if not argv or argv[0] in ("help", "-h", "--help"):
        print(overview())
        return
    name, rest = ALIASES.get(argv[0], argv[0]), argv[1:]
    if name not in known():
        sys.exit(f"ondatra has no command {argv[0]}: `ondatra --help` lists them")

    helping = bool({"-h", "--help"} & set(rest))
    try:
        os.environ["ONDATRA_PROJECT_DIR"] = str(project_of(Path.cwd()))
    except ConfigError as error:
        if not (helping or name in ANYWHERE):
            print(error, file=sys.stderr)
            sys.exit(2)
        with tempfile.TemporaryDirectory() as nowhere:
            os.environ["ONDATRA_DATA_DIR"] = nowhere
            execute(["ondatra", name, *rest])
        return
    execute(["ondatra", name, *rest], None if helping or name in ANYWHERE | {"migrate"} else _make_database)


def project_of(folder: Path) -> Path:
    """ONDATRA_PROJECT_DIR, else the folder or the nearest above it that has models/ and lib/. Raises ConfigError."""

    def is_project(folder: Path) -> bool:
        return (folder / "models").is_dir() and (folder / "lib").is_dir()

    if given := os.environ.get("ONDATRA_PROJECT_DIR"):
        if not is_project(Path(given)):
            raise ConfigError(f"ONDATRA_PROJECT_DIR is {given}, which has no models/ and lib/: set it to a project")
        return Path(given).resolve()
    for around in (folder, *folder.parents):
        if is_project(around):
            return around
    raise ConfigError(
        f"no project here: neither {folder} nor a folder above it has models/ and lib/. `ondatra init DIR` makes one; "
        f"go into yours, or set ONDATRA_PROJECT_DIR to it"
    )


def known() -> set[str]:
    return {"check_models", *(name for commands in COMMANDS.values() for name in commands)}


def overview() -> str:
    """The text of `ondatra --help`."""
    lines = ["ondatra COMMAND …: SQL says what to send, Starlark says how; `ondatra COMMAND --help` lists its options"]
    for title, commands in COMMANDS.items():
        lines += ["", title, *(f"  {name:<17} {line}" for name, line in commands.items())]
    return "\n".join(lines)


def execute(argv: Sequence[str], before: Callable[[], None] | None = None) -> None:
    """One command, with `before` once Django is set up; errors that a person can mend are one line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ondatra_web.settings")
    gc.set_threshold(CYCLES)
    own = _checked(config.read())
    if argv[1:2] == ["run"]:
        with _ended(), stopping.stoppable():
            code = running.handed_over(argv[2:], own)
        if code is not None:
            sys.exit(code)
    with _ended():
        _by_django(argv, before)


@contextmanager
def _ended() -> Iterator[None]:
    """A signal, or a reader that is gone, ends the process with what a shell shows of it."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt as error:
        sys.exit(stopping.told(error))
    except BrokenPipeError:
        if not _is_unread():
            raise
        sys.exit(READER_GONE)


def _by_django(argv: Sequence[str], before: Callable[[], None] | None) -> None:
    from django.core.management import BaseCommand, execute_from_command_line
    from django.db.utils import DatabaseError, OperationalError

    from ondatra_web import checks

    if argv[1:2] != ["check"]:  # which tells them all itself
        checks.refuse()
    if argv[1:2] not in (["check"], ["runserver"]):  # they run these themselves
        BaseCommand.requires_system_checks = []  # Django's own load every page, three times what most commands take
    try:
        if before:
            before()
        with stopping.stoppable():
            execute_from_command_line(list(argv))
    except DatabaseError as error:  # raised only after the waits that the settings allow
        if type(error) not in (DatabaseError, OperationalError):
            raise  # ours, not the database's
        sys.exit(
            f"the database cannot be used: {str(error).strip().splitlines()[0]}. {_way_out(str(error))} What was not "
            f"sent stays due."
        )


def _checked(own: config.Config) -> config.Config:
    """Ends a process that has no place for its data."""
    folder = own.data_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        print(
            f"the data folder {folder} cannot be written: make it writable or set ONDATRA_DATA_DIR to one that is",
            file=sys.stderr,
        )
        sys.exit(2)
    return own


def _make_database() -> None:
    """The tables of a project's first command; those of an earlier version are left to `migrate`."""
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    if "django_migrations" in connection.introspection.table_names():
        return
    with (settings.ONDATRA.data_dir / "migrate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two first commands at once: the second one finds it done
        call_command("migrate", verbosity=0)


def _is_unread() -> bool:
    """Whether nobody reads what is printed any more, as after `… | head`; the rest of it then goes nowhere."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    unread = any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    if unread:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return unread


def _way_out(said: str) -> str:
    from django.conf import settings

    if "no such table" in said or "no such column" in said:
        migrate, up = (settings.ONDATRA.command(name) for name in ("migrate", "up"))
        return f"Run `{migrate}` ({up} does)."
    place = settings.DATABASES["default"]
    if "not a database" in said or "malformed" in said:
        return f"The file {place['NAME']} is damaged: put a copy of it in its place, or move it away to begin anew."
    if "locked" in said:
        return (
            f"Another process has held {place['NAME']} for {place['OPTIONS']['timeout']} s: end it, or set "
            f"DATABASE_URL to a PostgreSQL server."
        )
    return f"See that {place.get('HOST') or place['NAME']} is there and DATABASE_URL is right."
