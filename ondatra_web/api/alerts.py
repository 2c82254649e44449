"""Alerts, and the rules that raise them."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from ondatra_web.access import ADMINISTER, OPERATE
from ondatra_web.alerts import rules, states
from ondatra_web.alerts.kinds import MEASURES, SORTS
from ondatra_web.api.alert_shapes import STATES, AlertShape, OneAlertShape, RuleShape
from ondatra_web.api.base import PAGES, Api, PageForm, answer, answers, checked, enveloped, paged, scope_of
from ondatra_web.api.errors import Conflict
from ondatra_web.models import AlertEvent, AlertKind, AlertLevel, AlertRule, Sync, Workspace
from runtime.errors import ConfigError

UNITS = sorted({unit for sort in SORTS.values() for unit in sort.units})
MOST = 1_000_000_000


class AlertsForm(PageForm):
    state = serializers.ChoiceField(choices=STATES, required=False)
    level = serializers.ChoiceField(choices=AlertLevel.choices, required=False)
    alert_type = serializers.ChoiceField(choices=AlertKind.choices, required=False)
    sync_id = serializers.IntegerField(min_value=1, max_value=2**62, required=False)


class Alerts(Api):
    @extend_schema(
        operation_id="list_alerts",
        parameters=[
            *PAGES,
            OpenApiParameter("order", str, enum=["asc", "desc"]),
            OpenApiParameter("state", str, enum=STATES),
            OpenApiParameter("level", str, enum=AlertLevel.values),
            OpenApiParameter("alert_type", str, enum=AlertKind.values),
            OpenApiParameter("sync_id", int),
        ],
        responses=answers(enveloped("AlertPage", AlertShape(many=True), paged=True)),
    )
    def get(self, request: Request) -> Response:
        """Alerts of the organization, newest first."""
        given = checked(AlertsForm, request.query_params)
        found = self.alerts()
        chosen = {"level": given.get("level"), "kind": given.get("alert_type"), "sync": given.get("sync_id")}
        found = found.filter(**{name: value for name, value in chosen.items() if value})
        if state := given.get("state"):
            found = found.filter(resolved_at__isnull=state != "resolved")
        if state in ("open", "acknowledged"):
            found = found.filter(acknowledged_at__isnull=state == "open")
        rows, pages = paged(found.order_by("pk" if given["order"] == "asc" else "-pk"), given)
        return answer(AlertShape(rows, many=True).data, pagination=pages)


class OneAlert(Api):
    @extend_schema(operation_id="get_alert", responses=answers(enveloped("AlertAnswer", OneAlertShape())))
    def get(self, request: Request, alert_id: int) -> Response:
        """One alert with its history."""
        self.alert(alert_id)
        events = Prefetch("alertevent_set", AlertEvent.objects.select_related("user").order_by("pk"))
        return answer(OneAlertShape(self.alerts().prefetch_related(events).get(pk=alert_id)).data)


class Acknowledge(Api):
    scope = "operate"

    @extend_schema(
        operation_id="acknowledge_alert",
        request=None,
        responses=answers(enveloped("AcknowledgeAnswer", AlertShape()), 409),
    )
    def post(self, request: Request, alert_id: int) -> Response:
        """Somebody has seen it; it stays open until what it tells of is over."""
        found = self.alert(alert_id, OPERATE)
        try:
            states.acknowledge(found, user=self.token.user)
        except ConfigError as error:
            raise Conflict(str(error)) from None
        return answer(AlertShape(self.alerts().get(pk=alert_id)).data)


# rules


class RuleForm(serializers.Serializer[Any]):
    """What of a rule can be changed; what is left out stays as it is, or as usual in a new one."""

    enabled = serializers.BooleanField(required=False)
    unit = serializers.ChoiceField(choices=UNITS, required=False)
    measure = serializers.ChoiceField(choices=list(MEASURES), required=False)
    warning = serializers.FloatField(min_value=0, max_value=MOST, allow_null=True, required=False)
    critical = serializers.FloatField(min_value=0, max_value=MOST, allow_null=True, required=False)
    recovery = serializers.BooleanField(required=False)
    quiet_from = serializers.TimeField(allow_null=True, required=False)
    quiet_until = serializers.TimeField(allow_null=True, required=False)
    quiet_zone = serializers.CharField(max_length=60, required=False)
    quiet_critical = serializers.BooleanField(required=False)
    channel_ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**62), required=False, max_length=100
    )


class NewRuleForm(RuleForm):
    """For one sync, or for every sync of a workspace with a tag."""

    alert_type = serializers.ChoiceField(choices=AlertKind.choices)
    sync_id = serializers.IntegerField(min_value=1, max_value=2**62, required=False)
    workspace_id = serializers.IntegerField(min_value=1, max_value=2**62, required=False)
    tag = serializers.CharField(max_length=100, required=False)


class RulesForm(PageForm):
    alert_type = serializers.ChoiceField(choices=AlertKind.choices, required=False)


class Rules(Api):
    @property
    def scope(self) -> str:  # type: ignore[override]
        return scope_of(self.request, "admin")

    @extend_schema(
        operation_id="list_alert_rules",
        parameters=[*PAGES, OpenApiParameter("alert_type", str, enum=AlertKind.values)],
        responses=answers(enveloped("RulePage", RuleShape(many=True), paged=True)),
    )
    def get(self, request: Request) -> Response:
        """Rules of every workspace; of a kind the narrowest holds for a sync: its own, its tag's, that of all."""
        given = checked(RulesForm, request.query_params)
        places = list(self.workspaces().values_list("pk", flat=True))
        rules.make_usual(places)
        found = AlertRule.objects.filter(workspace__in=places).select_related("sync").prefetch_related("channels")
        if given.get("alert_type"):
            found = found.filter(kind=given["alert_type"])
        rows, pages = paged(found.order_by("pk"), given)
        return answer(RuleShape(rows, many=True).data, pagination=pages)

    @extend_schema(
        operation_id="make_alert_rule",
        request=NewRuleForm,
        responses=answers(enveloped("RuleMade", RuleShape()), status=201),
    )
    def post(self, request: Request) -> Response:
        """A rule for one sync or a tag."""
        given = checked(NewRuleForm, request.data)
        place, sync, tag = self._whom(given)
        blank = AlertRule(workspace=place, sync=sync, tag=tag, **rules.usual(AlertKind(given["alert_type"])))
        made = rules.save(place, _wanted(self, blank, given), user=self.token.user)
        return answer(RuleShape(made).data, status=201)

    def _whom(self, given: dict[str, Any]) -> tuple[Workspace, Sync | None, str]:
        """Whom a new rule is for. Raises ValidationError."""
        tag = given.get("tag", "")
        if given.get("sync_id") and not tag:
            sync = self.sync(given["sync_id"])
            return self.workspace(sync.workspace_id, ADMINISTER), sync, ""
        if not tag or not given.get("workspace_id") or given.get("sync_id"):
            raise ValidationError({"sync_id": "name a sync, or a workspace_id and a tag of its syncs"})
        return self.workspace(given["workspace_id"], ADMINISTER), None, tag


class OneRule(Api):
    @property
    def scope(self) -> str:  # type: ignore[override]
        return scope_of(self.request, "admin")

    @extend_schema(operation_id="get_alert_rule", responses=answers(enveloped("RuleAnswer", RuleShape())))
    def get(self, request: Request, rule_id: int) -> Response:
        """One rule."""
        return answer(RuleShape(self.alert_rule(rule_id)).data)

    @extend_schema(
        operation_id="change_alert_rule",
        request=RuleForm,
        responses=answers(enveloped("RuleChanged", RuleShape())),
    )
    def patch(self, request: Request, rule_id: int) -> Response:
        """Changes what the body names."""
        rule = self.alert_rule(rule_id, ADMINISTER)
        given = checked(RuleForm, request.data)
        rules.save(rule.workspace, _wanted(self, rule, given), rule=rule, user=self.token.user)
        return answer(RuleShape(self.alert_rule(rule_id)).data)

    @extend_schema(operation_id="delete_alert_rule", responses=answers(None) | {204: None})
    def delete(self, request: Request, rule_id: int) -> Response:
        """The next wider rule holds; that of all syncs goes back to what it was at first."""
        rules.delete(self.alert_rule(rule_id, ADMINISTER), user=self.token.user)
        return Response(status=204)


def _wanted(view: Api, rule: AlertRule, given: dict[str, Any]) -> rules.Wanted:
    names = ("enabled", "unit", "measure", "warning", "critical", "recovery")
    quiet = ("quiet_from", "quiet_until", "quiet_zone", "quiet_critical")
    told = {name: given.get(name, getattr(rule, name)) for name in (*names, *quiet)}
    chosen = list(rule.channels.all()) if rule.pk else []
    if "channel_ids" in given:
        chosen = [view.alert_channel(pk) for pk in dict.fromkeys(given["channel_ids"])]
    return rules.Wanted(rule.kind, sync=rule.sync, tag=rule.tag, channels=chosen, **told)
