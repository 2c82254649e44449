"""The app."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks as django_checks

from ondatra_web import checks


class OndatraConfig(AppConfig):
    name = "ondatra_web"
    verbose_name = "Ondatra"

    def ready(self) -> None:
        django_checks.register(checks.told)
