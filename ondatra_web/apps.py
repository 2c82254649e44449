"""The app."""

from __future__ import annotations

import sys
import threading

from django.apps import AppConfig
from django.core import checks as django_checks

from ondatra_web import checks, redaction


class OndatraConfig(AppConfig):
    name = "ondatra_web"
    verbose_name = "Ondatra"

    def ready(self) -> None:
        django_checks.register(checks.told)
        sys.excepthook = redaction.uncaught
        threading.excepthook = redaction.uncaught_in_thread
