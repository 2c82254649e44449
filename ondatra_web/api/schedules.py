"""Schedules: what the models' files say, and whether they are followed."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from ondatra_web import actions
from ondatra_web.access import OPERATE
from ondatra_web.api.alert_shapes import ScheduleShape
from ondatra_web.api.base import PAGES, Api, PageForm, answer, answers, checked, enveloped, paged, scope_of


class SchedulesForm(PageForm):
    paused = serializers.BooleanField(required=False, allow_null=True, default=None)


class Schedules(Api):
    @extend_schema(
        operation_id="list_schedules",
        parameters=[*PAGES, OpenApiParameter("paused", bool)],
        responses=answers(enveloped("SchedulePage", ScheduleShape(many=True), paged=True)),
    )
    def get(self, request: Request) -> Response:
        """Syncs with a schedule, the next one first."""
        given = checked(SchedulesForm, request.query_params)
        found = self.syncs().filter(archived_at=None).exclude(schedule="").select_related("workspace")
        if given["paused"] is not None:
            found = found.filter(paused_at__isnull=not given["paused"])
        rows, pages = paged(found.order_by("next_run_at", "pk"), given)
        return answer(ScheduleShape(rows, many=True).data, pagination=pages)


class ScheduleForm(serializers.Serializer[Any]):
    paused = serializers.BooleanField()


class OneSchedule(Api):
    @property
    def scope(self) -> str:  # type: ignore[override]
        return scope_of(self.request, "operate")

    @extend_schema(operation_id="get_schedule", responses=answers(enveloped("ScheduleAnswer", ScheduleShape())))
    def get(self, request: Request, sync_id: int) -> Response:
        """The schedule of one sync; empty where it is started by hand."""
        return answer(ScheduleShape(self.sync(sync_id)).data)

    @extend_schema(
        operation_id="change_schedule",
        request=ScheduleForm,
        responses=answers(enveloped("ScheduleChanged", ScheduleShape())),
    )
    def patch(self, request: Request, sync_id: int) -> Response:
        """Pauses it or lets it go on. When it starts the sync says `@schedule` in the model's file."""
        sync = self.sync(sync_id, OPERATE)
        change = actions.pause_sync if checked(ScheduleForm, request.data)["paused"] else actions.resume_sync
        change(sync, user=self.token.user)
        sync.refresh_from_db()
        return answer(ScheduleShape(sync).data)
