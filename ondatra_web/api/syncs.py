"""Syncs: listed, triggered, paused; models and their lineage."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from ondatra_web import access, actions
from ondatra_web.api.base import PAGES, Api, PageForm, answer, answers, checked, enveloped, paged
from ondatra_web.api.errors import Conflict
from ondatra_web.api.shapes import ModelShape, RunShape, SyncShape
from ondatra_web.models import Run, Sync

LONGEST_KEY = 200


class SyncsForm(PageForm):
    workspace = serializers.CharField(required=False)
    label = serializers.CharField(required=False)  # type: ignore[assignment]  # a field leaves the class
    tag = serializers.CharField(required=False)


def with_last_run(syncs: QuerySet[Sync]) -> QuerySet[Sync]:
    last = Run.objects.filter(sync=OuterRef("pk")).order_by("-pk")
    return syncs.select_related("workspace").annotate(
        last_run_id=Subquery(last.values("pk")[:1]), last_run_status=Subquery(last.values("status")[:1])
    )


class Syncs(Api):
    @extend_schema(
        operation_id="list_syncs",
        parameters=[*PAGES, *(OpenApiParameter(n, str) for n in ("workspace", "label", "tag"))],
        responses=answers(enveloped("SyncPage", SyncShape(many=True), paged=True)),
    )
    def get(self, request: Request) -> Response:
        """Syncs of the token's organization."""
        given = checked(SyncsForm, request.query_params)
        found = self.syncs()
        if given.get("workspace"):
            found = found.filter(workspace__slug=given["workspace"])
        if given.get("label"):
            found = found.filter(name=given["label"])
        ordered = found.order_by("pk" if given["order"] == "asc" else "-pk")
        if given.get("tag"):
            ordered = ordered.filter(pk__in=[s.pk for s in found.only("tags") if given["tag"] in s.tags])
        rows, pages = paged(with_last_run(ordered), given)
        return answer(SyncShape(rows, many=True).data, pagination=pages)


class OneSync(Api):
    @extend_schema(operation_id="get_sync", responses=answers(enveloped("SyncAnswer", SyncShape())))
    def get(self, request: Request, sync_id: int) -> Response:
        """One sync with its last run."""
        self.sync(sync_id)
        return answer(SyncShape(with_last_run(self.syncs()).get(pk=sync_id)).data)


class TriggerForm(serializers.Serializer[Any]):
    force_full_sync = serializers.BooleanField(default=False)
    dry_run = serializers.BooleanField(default=False)


class Trigger(Api):
    scope = "operate"

    @extend_schema(
        operation_id="trigger_sync",
        request=TriggerForm,
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                str,
                OpenApiParameter.HEADER,
                description="The same key for the same sync answers with the run that it started first.",
            )
        ],
        responses=answers(
            enveloped("TriggerAnswer", inline_serializer("Triggered", {"sync_run_id": serializers.IntegerField()})), 409
        ),
    )
    def post(self, request: Request, sync_id: int) -> Response:
        """Starts a run. 409 names the run that works already."""
        sync = self.sync(sync_id, access.OPERATE)
        given = checked(TriggerForm, request.data)
        key = request.headers.get("Idempotency-Key", "")
        if len(key) > LONGEST_KEY:
            raise ValidationError({"Idempotency-Key": f"at most {LONGEST_KEY} characters; found {len(key)}"})

        with transaction.atomic():
            Sync.objects.select_for_update().get(pk=sync.pk)  # of two equal requests at once one waits here
            earlier = Run.objects.filter(sync=sync, idempotency_key=key).first() if key else None
            if earlier is not None:
                if (earlier.full, earlier.dry_run) != (given["force_full_sync"], given["dry_run"]):
                    raise Conflict(
                        f"this Idempotency-Key started run {earlier.pk} with another body: use a new key",
                        sync_run_id=earlier.pk,
                    )
                return answer({"sync_run_id": earlier.pk})
            active = Run.objects.filter(sync=sync, status__in=Run.ACTIVE, dry_run=False).order_by("pk").first()
            if active is not None and not given["dry_run"]:
                raise Conflict(
                    f"run {active.pk} of {sync.name} is {active.status}: wait for its end or cancel it",
                    sync_run_id=active.pk,
                )
            run = actions.start_run(
                sync,
                user=self.token.user,
                trigger="api",
                by=self.by,
                full=given["force_full_sync"],
                dry_run=given["dry_run"],
            )
            if key:
                Run.objects.filter(pk=run.pk).update(idempotency_key=key)
        return answer({"sync_run_id": run.pk})


class Pause(Api):
    scope = "operate"

    @extend_schema(operation_id="pause_sync", request=None, responses=answers(enveloped("PauseAnswer", SyncShape())))
    def post(self, request: Request, sync_id: int) -> Response:
        """Schedules no longer start the sync; a trigger still does."""
        actions.pause_sync(self.sync(sync_id, access.OPERATE), user=self.token.user)
        return answer(SyncShape(with_last_run(self.syncs()).get(pk=sync_id)).data)


class Resume(Api):
    scope = "operate"

    @extend_schema(operation_id="resume_sync", request=None, responses=answers(enveloped("ResumeAnswer", SyncShape())))
    def post(self, request: Request, sync_id: int) -> Response:
        """Schedules start the sync again."""
        actions.resume_sync(self.sync(sync_id, access.OPERATE), user=self.token.user)
        return answer(SyncShape(with_last_run(self.syncs()).get(pk=sync_id)).data)


class RunsForm(PageForm):
    run_status = serializers.ChoiceField(choices=Run.Status.choices, required=False)


class SyncRuns(Api):
    @extend_schema(
        operation_id="list_sync_runs",
        parameters=[
            *PAGES,
            OpenApiParameter("order", str, enum=["asc", "desc"]),
            OpenApiParameter("run_status", str, enum=Run.Status.values),
        ],
        responses=answers(enveloped("RunPage", RunShape(many=True), paged=True)),
    )
    def get(self, request: Request, sync_id: int) -> Response:
        """Runs of a sync, newest first."""
        given = checked(RunsForm, request.query_params)
        found = Run.objects.filter(sync=self.sync(sync_id)).select_related("started_by")
        found = found.order_by("pk" if given["order"] == "asc" else "-pk")
        if given.get("run_status"):
            found = found.filter(status=given["run_status"])
        rows, pages = paged(found, given)
        return answer(RunShape(rows, many=True).data, pagination=pages)


class Models(Api):
    @extend_schema(
        operation_id="list_models",
        parameters=PAGES,
        responses=answers(enveloped("ModelPage", ModelShape(many=True), paged=True)),
    )
    def get(self, request: Request) -> Response:
        """SQL models with the models that they read: the lineage."""
        given = checked(PageForm, request.query_params)
        found = access.model_states_of(request.user, self.token.organization).filter(gone_at=None)
        rows, pages = paged(found.select_related("workspace").order_by("name", "pk"), given)
        return answer(ModelShape(rows, many=True).data, pagination=pages)
