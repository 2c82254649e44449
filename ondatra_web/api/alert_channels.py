"""Where alerts are sent: channels, their tests, and the log of what went through them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from ondatra_web import access
from ondatra_web.access import ADMINISTER
from ondatra_web.alerts import channels
from ondatra_web.api.alert_shapes import ChannelShape, DeliveryShape, NewChannelShape
from ondatra_web.api.base import PAGES, Api, PageForm, answer, answers, checked, enveloped, paged, scope_of
from ondatra_web.api.errors import Conflict
from ondatra_web.models import AlertChannel, AlertDelivery, AlertLevel
from runtime.errors import ConfigError


class ChannelForm(serializers.Serializer[Any]):
    """What is left out stays as it is."""

    name = serializers.CharField(max_length=100, required=False)
    recipients = serializers.ListField(child=serializers.CharField(max_length=320), required=False, max_length=100)
    url = serializers.CharField(max_length=2_000, required=False, help_text="Kept encrypted, and said nowhere.")
    level = serializers.ChoiceField(choices=AlertLevel.choices, required=False)
    enabled = serializers.BooleanField(required=False)


class NewChannelForm(ChannelForm):
    name = serializers.CharField(max_length=100)
    kind = serializers.ChoiceField(choices=AlertChannel.Kind.choices)


class Channels(Api):
    @property
    def scope(self) -> str:  # type: ignore[override]
        return scope_of(self.request, "admin")

    @extend_schema(
        operation_id="list_alert_channels",
        parameters=PAGES,
        responses=answers(enveloped("ChannelPage", ChannelShape(many=True), paged=True)),
    )
    def get(self, request: Request) -> Response:
        """Channels of the organization."""
        given = checked(PageForm, request.query_params)
        found = AlertChannel.objects.filter(organization=self.token.organization_id).order_by("pk")
        rows, pages = paged(found, given)
        return answer(ChannelShape(rows, many=True).data, pagination=pages)

    @extend_schema(
        operation_id="make_alert_channel",
        request=NewChannelForm,
        responses=answers(enveloped("ChannelMade", NewChannelShape()), status=201),
    )
    def post(self, request: Request) -> Response:
        """A channel; of a webhook the secret that signs its messages, this once."""
        place = access.organization_for(self.token.user, self.token.organization_id, ADMINISTER)
        given = checked(NewChannelForm, request.data)
        made, secret = channels.save(place, channels.Wanted(**given), user=self.token.user)
        return answer({**ChannelShape(made).data, "secret": secret}, status=201)


class OneChannel(Api):
    @property
    def scope(self) -> str:  # type: ignore[override]
        return scope_of(self.request, "admin")

    @extend_schema(operation_id="get_alert_channel", responses=answers(enveloped("ChannelAnswer", ChannelShape())))
    def get(self, request: Request, channel_id: int) -> Response:
        """One channel."""
        return answer(ChannelShape(self.alert_channel(channel_id)).data)

    @extend_schema(
        operation_id="change_alert_channel",
        request=ChannelForm,
        responses=answers(enveloped("ChannelChanged", ChannelShape())),
    )
    def patch(self, request: Request, channel_id: int) -> Response:
        """Changes what the body names."""
        known = self.alert_channel(channel_id, ADMINISTER)
        given = checked(ChannelForm, request.data)
        kept = {name: getattr(known, name) for name in ("name", "kind", "recipients", "level", "enabled")}
        saved, _ = channels.save(
            known.organization, channels.Wanted(**{**kept, **given}), channel=known, user=self.token.user
        )
        return answer(ChannelShape(saved).data)

    @extend_schema(operation_id="delete_alert_channel", responses=answers(None) | {204: None})
    def delete(self, request: Request, channel_id: int) -> Response:
        """With its log."""
        channels.delete(self.alert_channel(channel_id, ADMINISTER), user=self.token.user)
        return Response(status=204)


class Secret(Api):
    scope = "admin"

    @extend_schema(
        operation_id="renew_alert_channel_secret",
        request=None,
        responses=answers(enveloped("ChannelSecret", NewChannelShape())),
    )
    def post(self, request: Request, channel_id: int) -> Response:
        """Another secret for a webhook, said this once; the one before signs nothing more."""
        found = self.alert_channel(channel_id, ADMINISTER)
        secret = channels.new_secret(found, user=self.token.user)
        return answer({**ChannelShape(found).data, "secret": secret})


class Test(Api):
    scope = "admin"

    @extend_schema(
        operation_id="test_alert_channel",
        request=None,
        responses=answers(enveloped("TestStarted", DeliveryShape()), 409, status=202),
    )
    def post(self, request: Request, channel_id: int) -> Response:
        """Sends a test; the log says what came of it."""
        try:
            made = channels.test(self.alert_channel(channel_id, ADMINISTER), user=self.token.user)
        except ConfigError as error:
            raise Conflict(str(error)) from None
        return answer(DeliveryShape(made).data, status=202)


class DeliveriesForm(PageForm):
    status = serializers.ChoiceField(choices=AlertDelivery.Status.choices, required=False)


class Deliveries(Api):
    @extend_schema(
        operation_id="list_alert_deliveries",
        parameters=[*PAGES, OpenApiParameter("status", str, enum=AlertDelivery.Status.values)],
        responses=answers(enveloped("DeliveryPage", DeliveryShape(many=True), paged=True)),
    )
    def get(self, request: Request, channel_id: int) -> Response:
        """The log of a channel, newest first: each message with each attempt to send it."""
        given = checked(DeliveriesForm, request.query_params)
        found = AlertDelivery.objects.filter(channel=self.alert_channel(channel_id)).select_related("event")
        if given.get("status"):
            found = found.filter(status=given["status"])
        rows, pages = paged(found.order_by("-pk"), given)
        return answer(DeliveryShape(rows, many=True).data, pagination=pages)


class Retry(Api):
    scope = "admin"

    @extend_schema(
        operation_id="retry_alert_delivery",
        request=None,
        responses=answers(enveloped("DeliveryAnswer", DeliveryShape()), 409, status=202),
    )
    def post(self, request: Request, delivery_id: int) -> Response:
        """Sends a message again that failed or was sent."""
        try:
            again = channels.send_again(self.alert_delivery(delivery_id, ADMINISTER), user=self.token.user)
        except ConfigError as error:
            raise Conflict(str(error)) from None
        return answer(DeliveryShape(again).data, status=202)
