"""Ids and names of sources and destinations, as metadata.json and the fact tables call them."""
from __future__ import annotations

from django.conf import settings
from django.utils import timezone

from ondatra_web.models import ModelState, Organization, Run, Sync, Workspace
from runtime import facts, tracking
from runtime.masks import Masker
from runtime.model import Model
from runtime.push import PushFunction
from runtime.store import Store, open_store
from runtime.tracking import Places, RunInfo

SOURCE_TYPE = "DeltaLake"


def places_of(workspace: Workspace, run: Run, sync_name: str, destination: str, object_name: str) -> Places:
    """The run's source and destination by id; the lake of a workspace is the source, a model in it the source object."""
    return Places(workspace_id=workspace.pk, sync_name=sync_name, source_type=SOURCE_TYPE, source_id=workspace.pk, source_object_id=run.sync_id,
                  destination_type=facts.connection_type(destination), destination_id=facts.stable_id(workspace.pk, destination),
                  destination_object_id=facts.stable_id(workspace.pk, destination, object_name), started_at=run.started_at or timezone.now())


def run_info(workspace: Workspace, run: Run, model: Model, push: PushFunction) -> RunInfo:
    """What the record files of the run share; remembered with the run, so that the fact tables keep what it refers to."""
    to = push.api.destination
    info = RunInfo(organization_id=workspace.organization_id, sync_id=run.sync_id, run_id=run.pk, kind=model.kind, model=model,
                   masks=Masker(model.masks, workspace.mask_key), places=places_of(workspace, run, model.name, to.type, to.object))
    if not run.metadata:
        run.metadata = {**tracking.metadata(info), "destination": to.type, "destination_object": to.object}
        Run.objects.filter(pk=run.pk).update(metadata=run.metadata)
    return info


def write_fact_tables(organization: Organization, store: Store | None = None) -> list[str]:
    """Replaces the fact tables of one organization; their URLs. Raises StoreError."""
    states = {(s.workspace_id, s.name): s.pk for s in ModelState.objects.filter(workspace__organization=organization)}
    syncs = list(Sync.objects.filter(workspace__organization=organization))
    sources = {facts.SourceObject(s.pk, s.name, states.get((s.workspace_id, s.name))) for s in syncs}
    told = {(s.workspace_id, s.destination_type, s.destination_object) for s in syncs if s.destination_type}
    seen = Run.objects.filter(sync__workspace__organization=organization, metadata__has_key="destination")
    told |= set(seen.values_list("sync__workspace_id", "metadata__destination", "metadata__destination_object").distinct())
    destinations = {facts.Destination(facts.stable_id(w, to), facts.connection_type(to), to) for w, to, _ in told}
    objects = {facts.DestinationObject(facts.stable_id(w, to, name), facts.object_type(to, name), name) for w, to, name in told}
    return facts.write(store or open_store(settings.ONDATRA.tracking_url), organization.pk, sources, destinations, objects)
