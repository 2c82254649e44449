"""`manage.py token NAME`: a bearer token of the HTTP API, printed once and kept nowhere."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from ondatra_web import tokens
from ondatra_web.models import ApiToken, Membership, Role
from runtime.errors import ConfigError


class Command(BaseCommand):
    help = "Makes a token of the HTTP API and prints it once; --list and --revoke for those that there are."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", metavar="NAME", help="what the token is for")
        parser.add_argument("--user", metavar="LOGIN", help="whose rights it has; the oldest admin without it")
        parser.add_argument("--organization", type=int, metavar="ID", help="without it the person's first one")
        parser.add_argument(
            "--scope",
            action="append",
            choices=list(tokens.SCOPES),
            help="repeatable; without it read, records, operate",
        )
        parser.add_argument("--days", type=int, metavar="N", help="works for so many days; for ever without it")
        parser.add_argument("--list", action="store_true", help="lists the tokens, without their text")
        parser.add_argument("--revoke", type=int, metavar="ID", help="the token with this id stops working at once")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["list"]:
            return self._list()
        if options["revoke"] is not None:
            return self._revoke(options["revoke"])
        if not options["name"]:
            raise CommandError("give the token a name, or --list, or --revoke ID")

        member = self._member(options["user"], options["organization"])
        expires = timezone.now() + timedelta(days=options["days"]) if options["days"] else None
        try:
            row, text = tokens.make(
                member.organization,
                member.user,
                options["name"],
                options["scope"] or ["read", "records", "operate"],
                expires_at=expires,
            )
        except ConfigError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"token {row.pk} of {member.organization}, shown this once:\n{text}")

    def _member(self, login: str | None, organization: int | None) -> Membership:
        found = Membership.objects.select_related("user", "organization").order_by("pk")
        if login is not None:
            found = found.filter(user__username=login)
        else:
            found = found.filter(role=Role.ADMIN)
        if organization is not None:
            found = found.filter(organization=organization)
        member = found.first()
        if member is None:
            known = ", ".join(User.objects.order_by("pk").values_list("username", flat=True)[:20]) or "nobody"
            raise CommandError(f"nobody of that name belongs to such an organization; there are: {known}")
        return member

    def _list(self) -> None:
        for row in ApiToken.objects.select_related("user", "organization").order_by("pk"):
            used = f"last used {row.last_used_at:%Y-%m-%d %H:%M}" if row.last_used_at else "never used"
            ends = f"until {row.expires_at:%Y-%m-%d}" if row.expires_at else "for ever"
            self.stdout.write(
                f"{row.pk:>5}  {row.name}  {row.user} in {row.organization}  {', '.join(row.scopes)}  {ends}  {used}"
            )

    def _revoke(self, token_id: int) -> None:
        row = ApiToken.objects.select_related("user").filter(pk=token_id).first()
        if row is None:
            raise CommandError(f"there is no token {token_id}; --list shows those that there are")
        tokens.revoke(row)
        self.stdout.write(f"token {token_id} is revoked")
