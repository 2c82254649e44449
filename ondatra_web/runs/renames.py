"""A renamed model goes on as what it was: `@renamed_from` gives its new file the old one's sync, runs, waiting rows and
table."""

from __future__ import annotations

from django.db import transaction

from ondatra_web.models import Chunk, ModelState, Run, Sync, Workspace
from ondatra_web.runs.lake_tables import place_of
from runtime.errors import Problem, ProjectError
from runtime.model import Model
from runtime.project.check import Project


def carry_over(workspace: Workspace, project: Project) -> None:
    """Moves what is known under an old name to the new one; does nothing the second time. Raises ProjectError where it
    cannot."""
    renamed = [m for m in project.models.values() if m.renamed_from]
    olds = [m.renamed_from for m in renamed]
    known = set(Sync.objects.filter(workspace=workspace, name__in=olds).values_list("name", flat=True))
    known |= set(ModelState.objects.filter(workspace=workspace, name__in=olds).values_list("name", flat=True))
    for model in renamed:
        if model.renamed_from in known:
            with transaction.atomic():
                _move_sync(workspace, model)
                _move_state(workspace, model)


def _move_sync(workspace: Workspace, model: Model) -> None:
    if model.sink is None:
        return
    old = Sync.objects.select_for_update().filter(workspace=workspace, name=model.renamed_from).first()
    if old is None:
        return
    new = Sync.objects.select_for_update().filter(workspace=workspace, name=model.name).first()
    if new is not None:
        if new.mark is not None or Chunk.objects.filter(sync=new).exists():
            raise ProjectError(
                [
                    Problem(
                        model.file,
                        model.line("renamed_from"),
                        (
                            f"@renamed_from names {old.name}, but {model.name} has delivered under its own name "
                            f"already (sync {new.pk}), and the two cannot become one: "
                            "remove the line, or give the file another name"
                        ),
                    )
                ]
            )
        Run.objects.filter(sync=new).update(sync=old)  # runs that never got as far as a delivery
        new.delete()
    old.name, old.archived_at = model.name, None
    old.save(update_fields=["name", "archived_at"])


def _move_state(workspace: Workspace, model: Model) -> None:
    """The table stays where it lies; only its name changes, so that nothing is copied."""
    old = ModelState.objects.select_for_update().filter(workspace=workspace, name=model.renamed_from).first()
    if old is None:
        return
    place = place_of(workspace.pk, old.name)
    ModelState.objects.filter(workspace=workspace, name=model.name).delete()
    old.name, old.place = model.name, place
    old.save(update_fields=["name", "place"])
