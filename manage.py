#!/usr/bin/env python
"""Ondatra's command line: `python manage.py COMMAND`."""

import gc
import os
import select
import sys

from runtime import config

#: What a shell shows of programs that end because nobody reads them: 128 + SIGPIPE.
READER_GONE = 141
#: Objects made since the last look for cycles before the next one: 700, Python's own, are made by each parsed
#: statement.
CYCLES = 50_000


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ondatra_web.settings")
    gc.set_threshold(CYCLES)
    folder = config.read().data_dir
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
    from django.core.management import execute_from_command_line
    from django.db.utils import DatabaseError, OperationalError

    from ondatra_web import checks, stopping

    if sys.argv[1:2] != ["check"]:  # which tells them all itself
        checks.refuse()
    try:
        try:
            with stopping.stoppable():
                execute_from_command_line(sys.argv)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt as error:
        sys.exit(stopping.told(error))
    except BrokenPipeError:
        if not _is_unread():
            raise
        sys.exit(READER_GONE)
    except DatabaseError as error:  # raised only after the waits that the settings allow
        if type(error) not in (DatabaseError, OperationalError):
            raise  # ours, not the database's
        sys.exit(
            f"the database cannot be used: {str(error).strip().splitlines()[0]}. {_way_out(str(error))} What was not "
            f"sent stays due."
        )


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
        return "Run `python manage.py migrate` (bin/up does)."
    place = settings.DATABASES["default"]
    if "not a database" in said or "malformed" in said:
        return f"The file {place['NAME']} is damaged: put a copy of it in its place, or move it away to begin anew."
    if "locked" in said:
        return (
            f"Another process has held {place['NAME']} for {place['OPTIONS']['timeout']} s: end it, or set "
            f"DATABASE_URL to a PostgreSQL server."
        )
    return f"See that {place.get('HOST') or place['NAME']} is there and DATABASE_URL is right."


if __name__ == "__main__":
    try:
        main()
    finally:
        gc.disable()  # the system frees everything at once; to look it through first took 80 ms of a check
        gc.freeze()
