"""Tokens of the HTTP API, for an organization's admins: made, shown once, revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from ondatra_web import tokens
from ondatra_web.access import ADMINISTER, own_organization, token_for
from ondatra_web.models import ApiToken, Organization
from ondatra_web.views.settings.forms import TokenForm, said
from ondatra_web.views.shown import SignedIn
from runtime.errors import OndatraError


@require_safe
@login_required
def index(request: SignedIn) -> HttpResponse:
    return _page(request, own_organization(request, ADMINISTER))


def _page(request: SignedIn, organization: Organization, status: int = 200, **more: Any) -> HttpResponse:
    known = ApiToken.objects.filter(organization=organization).select_related("user").order_by("-pk")
    context = {"organization": organization, "tokens": known, "scopes": tokens.SCOPES.items(), "now": timezone.now()}
    answer = render(request, "settings/tokens.html", {**context, **more}, status=status)
    answer["Cache-Control"] = "no-store"
    return answer


@require_POST
@login_required
def make(request: SignedIn) -> HttpResponse:
    """Its text stands on this one page and is kept nowhere."""
    organization = own_organization(request, ADMINISTER)
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, organization, 422, problem=said(form), form=form)
    told = form.cleaned_data
    ends = timezone.now() + timedelta(days=told["days"]) if told["days"] else None
    try:
        made, text = tokens.make(organization, request.user, told["name"], told["scopes"], expires_at=ends)
    except OndatraError as error:
        return _page(request, organization, 422, problem=str(error), form=form)
    return _page(request, organization, made=made, text=text)


@require_POST
@login_required
def revoke(request: SignedIn, token_id: int) -> HttpResponse:
    found = token_for(request.user, token_id)
    tokens.revoke(found, user=request.user)
    messages.success(request, f"The token {found.name} works no more.")
    return redirect("tokens")
