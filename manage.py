#!/usr/bin/env python
"""Ondatra's command line: `python manage.py COMMAND`."""
import os
import sys

from runtime import config


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ondatra_web.settings")
    folder = config.from_env().data_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        print(f"the data folder {folder} cannot be written: make it writable or set ONDATRA_DATA_DIR to one that is", file=sys.stderr)
        sys.exit(2)
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
