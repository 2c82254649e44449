"""The engine of a process that makes one run and ends: begun at once where it will be needed, beside the check of the
project, and for little work one that compiles quickly instead of well.

Both are decided before any model was looked at: by what the last builds read, and by what lies in the project.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from django.conf import settings

from ondatra_web.models import ModelState, Run, Workspace
from runtime.lake import note, spark
from runtime.lake.table import path_of
from runtime.sources.connections import FILE as CONNECTIONS

#: Bytes, from where the JVM's second compiler pays: of Parquet with 3 million orders, 35 MB, the first build takes 77 s
#: of a processor with it, 24 of them its own, and 56 without.
LITTLE = 80_000_000
#: Of more files it is not looked how large they are.
MOST_FILES = 20_000
#: What models read; folders whose name begins with a point hold none of it.
DATA = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".gz", ".zst", ".xlsx")


def expect(workspace: Workspace) -> None:
    """This process makes one run of the workspace, and ends."""
    spark.expect(partial(is_little, workspace))
    if is_needed(workspace):
        threading.Thread(target=_begun, name="engine", daemon=True).start()


def _begun() -> None:
    with suppress(Exception):  # whoever needs it tries again, and says what is wrong
        spark.session(settings.ONDATRA)


def is_needed(workspace: Workspace) -> bool:
    """Whether a run surely builds something: the first one, and each of a project that reads connections, whose tables
    nobody knows to be unchanged."""
    if Path(workspace.project_dir, CONNECTIONS).exists():
        return True
    built = ModelState.objects.filter(workspace=workspace, table_version__isnull=False)
    return not built.exists() and not Run.objects.filter(sync__workspace=workspace).exists()


def is_little(workspace: Workspace) -> bool:
    """Whether the run has little to do. Where nothing is known of what is read, it has not."""
    lake = settings.ONDATRA.lake_url
    if not lake.startswith("file:"):
        return False

    folder, project = Path(path_of(f"{lake}/{workspace.pk}")), Path(workspace.project_dir)
    notes = [note.Note.of(path.read_text(encoding="utf-8")) for path in folder.glob(f"*/*/{note.FILE}")]
    if not notes and (project / CONNECTIONS).exists():
        return False

    return _is_within(known.read for known in notes) and _is_within(_data(project))


def _is_within(sizes: Iterable[int | None]) -> bool:
    read = 0
    return all(size is not None and (read := read + size) <= LITTLE for size in sizes)


def _data(project: Path) -> Iterator[int | None]:
    """Sizes of the project's data; None where they are too many to look at."""
    told = settings.ONDATRA
    ours = {path_of(url) for url in (told.lake_url, told.staging_url, told.tracking_url)}
    left = MOST_FILES
    for place, folders, files in os.walk(project):
        folders[:] = [name for name in folders if not name.startswith(".") and os.path.join(place, name) not in ours]
        left -= len(files)
        if left < 0:
            yield None
        for name in files:
            if name.endswith(DATA) and os.path.isfile(file := os.path.join(place, name)):
                yield os.path.getsize(file)
