"""Ids and names of sources and destinations, as metadata.json and the fact tables call them.

A workspace's lake is the source, a model its source object; a destination and its object come from the API dict.
"""
from __future__ import annotations

from ondatra_web.models import Destination, DestinationObject, Run, Sync, Workspace
from runtime.masks import Masker
from runtime.model import Model
from runtime.push import PushFunction
from runtime.tracking import Places, RunInfo


def run_info(workspace: Workspace, run: Run, model: Model, push: PushFunction) -> RunInfo:
    """What every file of the run says of itself."""
    found = destination_of(run.sync, push)
    return RunInfo(
        organization_id=workspace.organization_id, sync_id=run.sync_id, run_id=run.pk, kind=model.kind, model=model,
        masks=Masker(model.masks, workspace.mask_key),
        places=Places(workspace_id=workspace.pk, sync_name=run.sync.name, source_id=workspace.pk, source_object_id=run.sync_id,
                      destination_type=found.destination.type, destination_id=found.destination_id, destination_object_id=found.pk,
                      started_at=run.started_at or run.created_at))


def destination_of(sync: Sync, push: PushFunction) -> DestinationObject:
    """The sync's destination object, made at its first run and when its API dict names another."""
    told = push.api.destination
    known = sync.destination
    if known and (known.destination.type, known.name) == (told.type, told.object):
        return known
    place, _ = Destination.objects.get_or_create(workspace_id=sync.workspace_id, type=told.type)
    found, _ = DestinationObject.objects.get_or_create(destination=place, name=told.object)
    Sync.objects.filter(pk=sync.pk).update(destination=found, destination_type=told.type, destination_object=told.object)
    sync.destination = found
    return found
