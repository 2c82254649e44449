"""What all answers share: the envelope, pages, the rows that a token may see, headers for clients that poll."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import conditional_page
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ondatra_web import access
from ondatra_web.api.tokens import BearerAuthentication, HasScope, TokenThrottle
from ondatra_web.models import (
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertRule,
    ApiToken,
    Export,
    Role,
    Run,
    Sync,
    Workspace,
)

PER_PAGE, MOST_PER_PAGE = 25, 100
PAGES = [
    OpenApiParameter("page", int, description="From 1 on."),
    OpenApiParameter("per_page", int, description=f"At most {MOST_PER_PAGE}; {PER_PAGE} without it."),
]
ERROR = inline_serializer(
    "Error",
    {
        "status": serializers.ChoiceField(choices=["error"]),
        "code": serializers.CharField(),
        "message": serializers.CharField(help_text="What is wrong, and what to do."),
        "data": serializers.DictField(required=False),
    },
)
_PAGINATION = inline_serializer(
    "Pagination",
    {
        "total_records": serializers.IntegerField(),
        "per_page": serializers.IntegerField(),
        "prev_page": serializers.IntegerField(allow_null=True),
        "page": serializers.IntegerField(),
        "next_page": serializers.IntegerField(allow_null=True),
        "last_page": serializers.IntegerField(),
        "next_cursor": serializers.CharField(allow_null=True, required=False),
    },
)


def enveloped(name: str, data: Any, *, paged: bool = False) -> Any:
    """The schema of an answer whose `data` has this shape."""
    fields: dict[str, Any] = {"status": serializers.ChoiceField(choices=["success"]), "data": data}
    return inline_serializer(name, {**fields, **({"pagination": _PAGINATION} if paged else {})})


def answers(ok: Any, *codes: int, status: int = 200) -> dict[Any, Any]:
    """The documented answers of an operation: what goes well, what every call may meet, and these errors."""
    return {**({status: ok} if ok is not None else {}), **dict.fromkeys((400, 401, 403, 404, 429, *codes), ERROR)}


class JsonRenderer(BaseRenderer):
    """JSON by orjson, which passes payloads on digit by digit."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return b"" if data is None else orjson.dumps(data, default=str, option=orjson.OPT_UTC_Z)


@method_decorator(conditional_page, name="dispatch")
class Api(APIView):
    """A view of the API; `scope` is what the token needs."""

    scope = "read"
    authentication_classes: Sequence[Any] = (BearerAuthentication,)
    permission_classes: Sequence[Any] = (HasScope,)
    throttle_classes: Sequence[Any] = (TokenThrottle,)
    renderer_classes: Sequence[Any] = (JsonRenderer,)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        # what a client polls it may keep and ask about; payloads nobody keeps
        response["Cache-Control"] = "no-store" if self.scope == "records" else "private, no-cache"
        if (limit := getattr(self.request._request, "rate_limit", None)) is not None:
            response["RateLimit-Limit"], response["RateLimit-Remaining"], response["RateLimit-Reset"] = map(str, limit)
        return response

    @property
    def token(self) -> ApiToken:
        assert isinstance(self.request.auth, ApiToken)
        return self.request.auth

    @property
    def by(self) -> str:
        """What a run is started with here."""
        return f"token {self.token.name}"

    # rows of the token's organization

    def sync(self, sync_id: int, right: Role = access.SEE) -> Sync:
        sync = access.sync_for(self.request.user, sync_id, right)
        self._own(sync, f"there is no sync {sync_id} in {self.token.organization}")
        return sync

    def run(self, run_id: int, right: Role = access.SEE) -> Run:
        run = access.run_for(self.request.user, run_id, right)
        self._own(run.sync, f"there is no run {run_id} in {self.token.organization}")
        return run

    def export_of(self, export_id: int) -> Export:
        export = access.export_for(self.request.user, export_id)
        self._own(export.run.sync, f"there is no export {export_id} in {self.token.organization}")
        return export

    def syncs(self) -> QuerySet[Sync]:
        return access.syncs_of(self.request.user, self.token.organization)

    def workspaces(self) -> QuerySet[Workspace]:
        return access.workspaces_of(self.request.user, self.token.organization)

    def workspace(self, workspace_id: int, right: Role = access.SEE) -> Workspace:
        found = access.workspace_for(self.request.user, workspace_id, right)
        self._of(found.organization_id, f"there is no workspace {workspace_id} in {self.token.organization}")
        return found

    def alerts(self) -> QuerySet[Alert]:
        found = access.alerts_of(self.request.user, self.token.organization)
        return found.select_related("sync__workspace", "acknowledged_by")

    def alert(self, alert_id: int, right: Role = access.SEE) -> Alert:
        found = access.alert_for(self.request.user, alert_id, right)
        self._own(found.sync, f"there is no alert {alert_id} in {self.token.organization}")
        return found

    def alert_rule(self, rule_id: int, right: Role = access.SEE) -> AlertRule:
        found = access.alert_rule_for(self.request.user, rule_id, right)
        self._of(found.workspace.organization_id, f"there is no alert rule {rule_id} in {self.token.organization}")
        return found

    def alert_channel(self, channel_id: int, right: Role = access.SEE) -> AlertChannel:
        found = access.alert_channel_for(self.request.user, channel_id, right)
        self._of(found.organization_id, f"there is no alert channel {channel_id} in {self.token.organization}")
        return found

    def alert_delivery(self, delivery_id: int, right: Role = access.SEE) -> AlertDelivery:
        found = access.alert_delivery_for(self.request.user, delivery_id, right)
        self._of(found.channel.organization_id, f"there is no message {delivery_id} in {self.token.organization}")
        return found

    def _own(self, sync: Sync, otherwise: str) -> None:
        self._of(sync.workspace.organization_id, otherwise)

    def _of(self, organization_id: int, otherwise: str) -> None:
        if organization_id != self.token.organization_id:
            raise Http404(otherwise)


def scope_of(request: Request, writing: str) -> str:
    """What a view needs that is read by some and written by others."""
    return "read" if request.method in ("GET", "HEAD", "OPTIONS") else writing


def answer(data: Any, *, status: int = 200, pagination: Mapping[str, Any] | None = None) -> Response:
    body = {"status": "success", "data": data}
    return Response({**body, **({"pagination": pagination} if pagination else {})}, status=status)


class PageForm(serializers.Serializer[Any]):
    page = serializers.IntegerField(min_value=1, max_value=10_000_000, default=1)
    per_page = serializers.IntegerField(min_value=1, max_value=MOST_PER_PAGE, default=PER_PAGE)
    order = serializers.ChoiceField(choices=["asc", "desc"], default="desc")


def checked(form: type[serializers.Serializer[Any]], given: Any) -> dict[str, Any]:
    """The values that a request gave. Raises ValidationError."""
    read = form(data=given.dict() if hasattr(given, "dict") else given)
    read.is_valid(raise_exception=True)
    return dict(read.validated_data)


def paged(rows: QuerySet[Any] | Sequence[Any], given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """One page of rows, and Census's pagination."""
    total = rows.count() if isinstance(rows, QuerySet) else len(rows)
    size, number = given["per_page"], given["page"]
    return list(rows[(number - 1) * size : number * size]), pagination(total, number, size)


def pagination(total: int, page: int, per_page: int) -> dict[str, Any]:
    last = max(1, -(-total // per_page))
    return {
        "total_records": total,
        "per_page": per_page,
        "prev_page": page - 1 if page > 1 else None,
        "page": page,
        "next_page": page + 1 if page < last else None,
        "last_page": last,
    }


@csrf_exempt
def missing(request: HttpRequest, *args: Any) -> HttpResponse:
    """An address below /api/ that does not exist."""
    body = {
        "status": "error",
        "code": "not_found",
        "message": f"there is nothing at {request.path}; GET /api/v1/schema lists what there is",
    }
    return HttpResponse(orjson.dumps(body), status=404, content_type="application/json")
