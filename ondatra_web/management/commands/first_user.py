"""`manage.py first_user`: the admin of a fresh install, with a generated password that is printed once and kept
nowhere."""

from __future__ import annotations

import json
import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from ondatra_web.models import Membership, Organization, Role


class Command(BaseCommand):
    help = (
        "Makes the first user, admin of the first organization, and prints the password once; does nothing where "
        "there is a user."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default="admin", metavar="NAME")
        parser.add_argument(
            "--json", action="store_true", help="print one object; password is null if the user was there before"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name, password = make(options["name"])
        if options["json"]:
            self.stdout.write(json.dumps({"name": name, "password": password}))
        else:
            self.stdout.write(told(name, password))


def told(name: str, password: str | None) -> str:
    """The line about the login."""
    if password:
        return f"login {name}, password {password} (shown this once)"
    change = settings.ONDATRA.command(f"changepassword {name}")
    return f"login {name}, with the password shown at the first start; a new one: {change}"


@transaction.atomic
def make(name: str) -> tuple[str, str | None]:
    """The name and password of the user it made; the name of the oldest one and None where there are users."""
    users = get_user_model().objects
    if known := users.order_by("pk").first():
        return known.get_username(), None
    password = secrets.token_urlsafe(12)
    user = users.create_superuser(name, password=password)
    organization = Organization.objects.order_by("pk").first() or Organization.objects.create(name="Default")
    Membership.objects.create(user=user, organization=organization, role=Role.ADMIN)
    return name, password
