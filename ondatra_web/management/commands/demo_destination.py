"""`manage.py demo_destination`: the outside API of the demo, a small server of its own."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ondatra_web.demo import destination


class Command(BaseCommand):
    help = "Serves the demo's destination: objects with validation, some 429, and a page that shows what it holds."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8765)
        parser.add_argument("--host", default="127.0.0.1")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            server = destination.serve(options["host"], options["port"])
        except OSError as error:
            self.stderr.write(f"port {options['port']} cannot be used ({error.strerror}): give another with --port")
            raise SystemExit(1) from None
        self.stdout.write(f"the demo destination is at http://{options['host']}:{server.server_address[1]}")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.server_close()
