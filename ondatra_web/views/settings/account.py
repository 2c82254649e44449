"""A person's own account."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from ondatra_web.views.shown import SignedIn


@require_safe
@login_required
def account(request: SignedIn) -> HttpResponse:
    return render(request, "settings/account.html")


@sensitive_post_parameters()
@require_POST
@login_required
def change_password(request: SignedIn) -> HttpResponse:
    """This session goes on under the new password; all others end."""
    form = PasswordChangeForm(request.user, request.POST)
    if not form.is_valid():
        return render(request, "settings/account.html", {"password": form}, status=422)
    update_session_auth_hash(request, form.save())
    messages.success(request, "The password is changed. Your other sessions have ended.")
    return redirect("account")
