"""`ondatra init DIR`: a small project of one's own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

STARTER = Path(__file__).resolve().parents[2] / "starter"
#: Under these names they would work on the folder that they lie in.
HIDDEN = {"gitignore": ".gitignore"}


class Command(BaseCommand):
    help = "Makes a folder with a first model, a push function, its test and a README."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="DIR", type=Path, help="a folder that is new or empty")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"]
        try:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                self.stderr.write(f"{folder} is there already and not empty: name a new folder")
                raise SystemExit(2)
            made = make(folder)
        except OSError as error:
            self.stderr.write(f"{error.filename or folder} cannot be written: {error.strerror}")
            raise SystemExit(2) from None
        listed = "\n".join(f"  {folder / name}" for name in made)
        self.stdout.write(f"{listed}\n\nNext:\n  cd {folder}\n  ondatra check\n  ondatra run\n  ondatra records 1")


def make(folder: Path) -> list[Path]:
    """The names of the files made, relative to the folder."""
    made = []
    for source in sorted(p for p in STARTER.rglob("*") if p.is_file()):
        name = source.relative_to(STARTER)
        name = name.with_name(HIDDEN.get(name.name, name.name))
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
        made.append(name)
    return made
