#!/usr/bin/env python
"""Ondatra's command line: `.venv/bin/python manage.py COMMAND`."""

from ondatra_web.command_line import manage

if __name__ == "__main__":
    manage()
