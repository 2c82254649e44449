"""`manage.py workspace SLUG --project DIR`: creates a workspace or points it elsewhere."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ondatra_web.models import Organization, Workspace


class Command(BaseCommand):
    help = "Creates a workspace, or points an existing one at another project folder."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--project", required=True, metavar="DIR", help="the folder with models/ and lib/")
        parser.add_argument(
            "--env-file",
            metavar="F",
            help="NAME=value lines: push functions then see only these; keep it outside the project",
        )
        parser.add_argument(
            "--allow-path", action="append", default=[], metavar="DIR", help="SQL may read files below it, too"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug, folder = options["slug"], Path(options["project"]).resolve()
        env_file = Path(options["env_file"]).resolve() if options["env_file"] else None
        wrong = None
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,49}", slug):
            wrong = f"{slug!r} is no slug: lower-case letters, digits, - and _, up to 50"
        elif not folder.is_dir():
            wrong = f"--project {folder}: there is no such folder"
        elif env_file and not env_file.is_file():
            wrong = f"--env-file {env_file}: there is no such file"
        elif env_file and env_file.is_relative_to(folder):
            wrong = f"--env-file {env_file} lies inside the project folder: keep secrets outside of it"
        missing = [p for p in options["allow_path"] if not Path(p).is_dir()]
        if missing:
            wrong = f"--allow-path {missing[0]}: there is no such folder"
        if wrong:
            self.stderr.write(wrong)
            raise SystemExit(2)
        organization = Organization.objects.order_by("pk").first() or Organization.objects.create(name="Default")
        told = {
            "project_dir": str(folder),
            "env_file": str(env_file or ""),
            "allow_paths": [str(Path(p).resolve()) for p in options["allow_path"]],
        }
        _, made = Workspace.objects.update_or_create(
            slug=slug,
            defaults=told,
            create_defaults={**told, "organization": organization, "mask_key": secrets.token_hex(32)},
        )
        self.stdout.write(f"workspace {slug} {'created' if made else 'now'}: {folder}")
