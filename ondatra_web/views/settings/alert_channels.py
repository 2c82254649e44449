"""Where people are called: the channels of an organization, and what went through them."""

from __future__ import annotations

import re
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ondatra_web.access import (
    ADMINISTER,
    SEE,
    administers,
    alert_channel_for,
    alert_delivery_for,
    organization_for,
    organizations_of,
    own_organization,
)
from ondatra_web.alerts import channels
from ondatra_web.forms import AddressForm, AlertChannelForm
from ondatra_web.models import AlertChannel, AlertDelivery, AlertLevel, Organization
from ondatra_web.views.shown import SignedIn, page_of
from runtime.errors import ConfigError, OndatraError

LOG = 25
SECRET = "channel_secret"  # noqa: S105  of a session key


@require_safe
@login_required
def index(request: SignedIn) -> HttpResponse:
    return redirect("alert_channels", own_organization(request).pk)


@require_safe
@login_required
def listed(request: SignedIn, organization_id: int) -> HttpResponse:
    organization = organization_for(request.user, organization_id)
    last = AlertDelivery.objects.filter(channel=OuterRef("pk")).order_by("-pk")
    found = AlertChannel.objects.filter(organization=organization).order_by("name")
    context = {
        "organization": organization,
        "organizations": organizations_of(request.user),
        "channels": found.annotate(
            last_status=Subquery(last.values("status")[:1]), last_at=Subquery(last.values("created_at")[:1])
        ),
        "kinds": AlertChannel.Kind.choices,
        "may_change": administers(request.user, organization),
    }
    return render(request, "settings/alerts/channels.html", context)


@sensitive_post_parameters("url")
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def add(request: SignedIn, organization_id: int) -> HttpResponse:
    organization = organization_for(request.user, organization_id, ADMINISTER)
    kind = request.GET.get("kind", "")
    if kind not in AlertChannel.Kind.values:
        raise Http404(f"there is no channel {kind!r}; there are: {', '.join(AlertChannel.Kind.values)}")
    return _form(request, organization, AlertChannel(organization=organization, kind=kind))


@sensitive_post_parameters("url")
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def channel(request: SignedIn, channel_id: int) -> HttpResponse:
    found = alert_channel_for(request.user, channel_id, ADMINISTER if request.method == "POST" else SEE)
    return _form(request, found.organization, found)


def _form(request: SignedIn, organization: Organization, channel: AlertChannel) -> HttpResponse:
    problem = ""
    if request.method == "POST":
        try:
            known = channel if channel.pk else None
            saved, secret = channels.save(organization, _wanted(request, channel), channel=known, user=request.user)
        except OndatraError as error:
            problem = str(error)
        else:
            if secret:
                request.session[SECRET] = [saved.pk, secret]
            messages.success(request, f"{saved.name} is saved. Send a test to see that it arrives.")
            return redirect("alert_channel", saved.pk)
    told = request.POST if problem else _told(channel)
    context = {**_log(request, channel), "told": told, "problem": problem, "levels": AlertLevel.choices}
    context |= {"organization": organization, "may_change": administers(request.user, organization)}
    context["secret"] = _secret_once(request, channel)
    return render(request, "settings/alerts/channel.html", context, status=422 if problem else 200)


def _told(channel: AlertChannel) -> dict[str, Any]:
    told = {"name": channel.name, "level": channel.level, "enabled": channel.enabled}
    return {**told, "recipients": "\n".join(channel.recipients)}


def _wanted(request: SignedIn, channel: AlertChannel) -> channels.Wanted:
    """Raises ConfigError that names the field."""
    form = AlertChannelForm(request.POST)
    if not form.is_valid():
        raise ConfigError("; ".join(f"{name}: {said[0]}" for name, said in form.errors.items()))
    told = dict(form.cleaned_data)
    recipients = [r for r in re.split(r"[\s,;]+", told.pop("recipients")) if r]
    return channels.Wanted(kind=channel.kind, recipients=recipients, **{**told, "level": told["level"] or "warning"})


def _secret_once(request: SignedIn, channel: AlertChannel) -> str:
    """A secret that was just made, for this page alone."""
    kept = request.session.pop(SECRET, None)
    return str(kept[1]) if kept and kept[0] == channel.pk else ""


def _log(request: SignedIn, channel: AlertChannel) -> dict[str, Any]:
    sent = AlertDelivery.objects.filter(channel=channel.pk).select_related("event__alert__sync").order_by("-pk")
    page = page_of(sent, AddressForm(request.GET).number, LOG)
    waits = any(d.status == AlertDelivery.Status.WAITING for d in page.object_list)
    return {"channel": channel, "page": page, "waits": waits}


@require_safe
@login_required
def log(request: SignedIn, channel_id: int) -> HttpResponse:
    """The log alone, for a page that looks again."""
    found = alert_channel_for(request.user, channel_id)
    context = {**_log(request, found), "may_change": administers(request.user, found.organization)}
    return render(request, "settings/alerts/_log.html", context)


@require_POST
@login_required
def change(request: SignedIn, channel_id: int) -> HttpResponse:
    """Test, a new secret, or delete: the name of the button says which."""
    found = alert_channel_for(request.user, channel_id, ADMINISTER)
    try:
        if "delete" in request.POST:
            channels.delete(found, user=request.user)
            messages.success(request, f"{found.name} is deleted, with its log.")
            return redirect("alert_channels", found.organization_id)
        if "secret" in request.POST:
            request.session[SECRET] = [found.pk, channels.new_secret(found, user=request.user)]
        else:
            channels.test(found, user=request.user)
            messages.success(request, "A test is on its way: the log below says what came of it.")
    except OndatraError as error:
        messages.error(request, str(error))
    return redirect("alert_channel", found.pk)


@require_POST
@login_required
def send_again(request: SignedIn, delivery_id: int) -> HttpResponse:
    found = alert_delivery_for(request.user, delivery_id, ADMINISTER)
    try:
        channels.send_again(found, user=request.user)
    except OndatraError as error:
        messages.error(request, str(error))
    return redirect("alert_channel", found.channel_id)
