"""Ids and names of sources and destinations, as metadata.json and the fact tables call them.

A workspace's lake is the source, a model its source object; a destination and its object come from the API dict.
"""

from __future__ import annotations

from ondatra_web.models import Destination, DestinationObject, ModelState, Organization, Run, Sync, Workspace
from ondatra_web.tracking import stores
from runtime.custody.masks import Masker
from runtime.model import Model
from runtime.push.function import PushFunction
from runtime.store.base import Store
from runtime.tracking import facts
from runtime.tracking.info import Places, RunInfo


def run_info(workspace: Workspace, run: Run, model: Model, push: PushFunction) -> RunInfo:
    """What every file of the run says of itself."""
    found = destination_of(run.sync, push)
    return RunInfo(
        organization_id=workspace.organization_id,
        sync_id=run.sync_id,
        run_id=run.pk,
        kind=model.kind,
        model=model,
        masks=Masker(model.masks, workspace.mask_key),
        places=Places(
            workspace_id=workspace.pk,
            sync_name=run.sync.name,
            source_id=workspace.pk,
            source_object_id=run.sync_id,
            destination_type=found.destination.type,
            destination_id=found.destination_id,
            destination_object_id=found.pk,
            started_at=run.started_at or run.created_at,
        ),
    )


def destination_of(sync: Sync, push: PushFunction) -> DestinationObject:
    """The sync's destination object, made at its first run and when its API dict names another."""
    told = push.api.destination
    known = sync.destination
    if known and (known.destination.type, known.name) == (told.type, told.object):
        return known
    place, _ = Destination.objects.get_or_create(workspace_id=sync.workspace_id, type=told.type)
    found, _ = DestinationObject.objects.get_or_create(destination=place, name=told.object)
    Sync.objects.filter(pk=sync.pk).update(
        destination=found, destination_type=told.type, destination_object=told.object
    )
    sync.destination = found
    return found


def write_fact_tables(organization: Organization, store: Store | None = None) -> list[str]:
    """Replaces the three fact tables of one organization; their URLs. Raises StoreError."""
    models = {(s.workspace_id, s.name): s.pk for s in ModelState.objects.filter(workspace__organization=organization)}
    return facts.write(
        store or stores.of_organization(organization.pk),
        organization.pk,
        [
            facts.SourceObject(s.pk, s.name, models.get((s.workspace_id, s.name)))
            for s in Sync.objects.filter(workspace__organization=organization)
        ],
        [
            facts.Destination(d.pk, facts.connection_type(d.type), d.type)
            for d in Destination.objects.filter(workspace__organization=organization)
        ],
        [
            facts.DestinationObject(o.pk, facts.object_type(o.destination.type, o.name), o.name)
            for o in DestinationObject.objects.filter(destination__workspace__organization=organization).select_related(
                "destination"
            )
        ],
    )
