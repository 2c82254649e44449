"""A person's own account: password, e-mail, sessions, organizations."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from ondatra_web import people
from ondatra_web.access import CHOSEN, organization_for
from ondatra_web.models import Membership
from ondatra_web.views.settings.forms import EmailForm
from ondatra_web.views.shown import SignedIn


@require_safe
@login_required
def account(request: SignedIn) -> HttpResponse:
    return _page(request)


def _page(request: SignedIn, status: int = 200, **more: Any) -> HttpResponse:
    mine = Membership.objects.filter(user=request.user).select_related("organization").order_by("organization")
    return render(request, "settings/account.html", {"memberships": mine, **more}, status=status)


@sensitive_post_parameters()
@require_POST
@login_required
def change_password(request: SignedIn) -> HttpResponse:
    """This session goes on under the new password; all others end."""
    form = PasswordChangeForm(request.user, request.POST)
    if not form.is_valid():
        return _page(request, 422, password=form)
    update_session_auth_hash(request, form.save())
    people.tell_everywhere(request.user, request.user, "change_password", {})
    messages.success(request, "The password is changed. Your other sessions have ended.")
    return redirect("account")


@sensitive_post_parameters()
@require_POST
@login_required
def change_email(request: SignedIn) -> HttpResponse:
    form = EmailForm(request.user, request.POST)
    if not form.is_valid():
        return _page(request, 422, email=form)
    User.objects.filter(pk=request.user.pk).update(email=form.cleaned_data["email"])
    messages.success(request, "The e-mail address is changed.")
    return redirect("account")


@require_POST
@login_required
def end_sessions(request: SignedIn) -> HttpResponse:
    """All but this one."""
    ended = people.end_sessions(request.user, user=request.user, keep=request.session.session_key)
    messages.success(request, f"{ended} other session{'' if ended == 1 else 's'} of yours ended.")
    return redirect("account")


@require_POST
@login_required
def choose_organization(request: SignedIn) -> HttpResponse:
    """Which organization the lists show from now on."""
    wanted = request.POST.get("organization", "")
    if not wanted.isdecimal():
        raise Http404("choose one of your organizations")
    request.session[CHOSEN] = organization_for(request.user, int(wanted)).pk
    return redirect("home")
