"""Runs: watched, cancelled, confirmed, sent again."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from ondatra_web import access, actions
from ondatra_web.access import PAYLOADS, may
from ondatra_web.api.base import PAGES, Api, PageForm, answer, answers, checked, enveloped, paged
from ondatra_web.api.errors import Conflict
from ondatra_web.api.records import FILTERS, FilterForm, filter_of
from ondatra_web.api.shapes import GroupShape, LineShape, RetryShape, RunShape
from ondatra_web.models import MessageGroup, Run, RunLog
from ondatra_web.runs import retries
from ondatra_web.tracking import records as web_records
from runtime.errors import ConfigError


class OneRun(Api):
    @extend_schema(operation_id="get_sync_run", responses=answers(enveloped("RunAnswer", RunShape())))
    def get(self, request: Request, run_id: int) -> Response:
        """One run. Send If-None-Match with the last ETag to poll cheaply."""
        return answer(RunShape(self.run(run_id)).data)


class Cancel(Api):
    scope = "operate"

    @extend_schema(
        operation_id="cancel_sync_run", request=None, responses=answers(enveloped("CancelAnswer", RunShape()), 409)
    )
    def post(self, request: Request, run_id: int) -> Response:
        """Asks a run to stop; what it had not sent stays due."""
        return answer(RunShape(_done(actions.cancel_run, self.run(run_id, access.OPERATE), self.token.user)).data)


class Confirm(Api):
    scope = "operate"

    @extend_schema(
        operation_id="confirm_sync_run", request=None, responses=answers(enveloped("ConfirmAnswer", RunShape()), 409)
    )
    def post(self, request: Request, run_id: int) -> Response:
        """Lets a held run go on, as a new run."""
        confirm = partial(actions.confirm_run, by=self.by)
        return answer(RunShape(_done(confirm, self.run(run_id, access.OPERATE), self.token.user)).data)


def _done(action: Any, run: Run, user: Any) -> Run:
    """What the action made of the run; a state that does not allow it is a conflict."""
    try:
        changed: Run = action(run, user=user)
    except ConfigError as error:
        raise Conflict(str(error), sync_run_id=run.pk) from None
    return Run.objects.get(pk=changed.pk)


class Groups(Api):
    @extend_schema(
        operation_id="list_message_groups",
        parameters=PAGES,
        responses=answers(enveloped("GroupPage", GroupShape(many=True), paged=True)),
    )
    def get(self, request: Request, run_id: int) -> Response:
        """Why records were refused or warned about: the run's reasons, the commonest first."""
        found = MessageGroup.objects.filter(run=self.run(run_id)).order_by("-rows", "pk")
        rows, pages = paged(found, checked(PageForm, request.query_params))
        return answer(GroupShape(rows, many=True).data, pagination=pages)


class Log(Api):
    @extend_schema(
        operation_id="list_run_log",
        parameters=PAGES,
        responses=answers(enveloped("LogPage", LineShape(many=True), paged=True)),
    )
    def get(self, request: Request, run_id: int) -> Response:
        """What the run said: warnings, and print() of its push function."""
        found = self._lines(self.run(run_id)).order_by("pk")
        rows, pages = paged(found, checked(PageForm, request.query_params))
        return answer(LineShape(rows, many=True).data, pagination=pages)

    def _lines(self, run: Run) -> QuerySet[RunLog]:
        """Without prints where records may not be read: they may hold anything of the rows."""
        lines = RunLog.objects.filter(run=run)
        reads = "records" in self.token.scopes and may(self.request.user, PAYLOADS, run.sync.workspace)
        return lines if reads else lines.exclude(level="print")


class RetryForm(FilterForm):
    preview = serializers.BooleanField(default=False)


class Retry(Api):
    scope = "operate"

    @extend_schema(
        operation_id="retry_sync_run",
        request=None,
        parameters=[*FILTERS, OpenApiParameter("preview", bool, description="Counts only.")],
        responses=answers(enveloped("RetryAnswer", RetryShape()), 410, 503),
    )
    def post(self, request: Request, run_id: int) -> Response:
        """Sends the chosen records of a run again, as a new run; with `preview=true` it only says what would go."""
        run = self.run(run_id, access.OPERATE)
        given = checked(RetryForm, request.query_params)
        chosen = filter_of(run, given)
        planned = retries.plan(run, chosen)
        said = retries.told(planned, run)
        made = None
        if not given["preview"]:
            if planned.empty:
                raise ConfigError("nothing was sent: " + "; ".join(said))
            made = actions.retry_run(run, web_records.without_plain(chosen, run), user=self.token.user, by=self.by).pk
        return answer(
            {
                "sync_run_id": made,
                "preview": given["preview"],
                "record_count": planned.records + len(planned.again),
                "said": said,
            }
        )
