"""The app."""

from __future__ import annotations

import sys
import threading

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.core import checks as django_checks

from ondatra_web import checks, redaction


class OndatraConfig(AppConfig):
    default = True
    name = "ondatra_web"
    verbose_name = "Ondatra"

    def ready(self) -> None:
        django_checks.register(checks.told)
        sys.excepthook = redaction.uncaught
        threading.excepthook = redaction.uncaught_in_thread


class SupportConfig(SimpleAdminConfig):
    """The admin site; its tables are registered where addresses are, so that commands do not load them."""

    default = False
    default_site = "ondatra_web.admin_site.Site"
