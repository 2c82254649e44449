"""The app."""

from __future__ import annotations

from django.apps import AppConfig


class OndatraConfig(AppConfig):
    name = "ondatra_web"
    verbose_name = "Ondatra"
