"""The members of an organization: who they are, for its admins to invite, change and remove, and for each to leave."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import send_mail
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.views.decorators.http import require_POST, require_safe

from ondatra_web import people
from ondatra_web.access import (
    ADMINISTER,
    administers,
    invitation_for,
    membership_for,
    organization_for,
    own_organization,
    workspace_for,
)
from ondatra_web.models import Invitation, Membership, Organization, Role, Workspace
from ondatra_web.views.settings.forms import GIVEN, ROLES, InviteForm, RoleForm, WorkspaceRoleForm, said
from ondatra_web.views.shown import SignedIn
from runtime.errors import OndatraError


@require_safe
@login_required
def members(request: SignedIn) -> HttpResponse:
    return _page(request, own_organization(request))


def _page(request: SignedIn, organization: Organization, status: int = 200, **more: Any) -> HttpResponse:
    may_change = administers(request.user, organization)
    known = Membership.objects.filter(organization=organization).select_related("user")
    open_ones = Invitation.objects.filter(organization=organization).select_related("workspace", "created_by")
    context = {
        "organization": organization,
        "members": known.prefetch_related("workspace_roles__workspace").order_by("user__username"),
        "invitations": open_ones.order_by("-pk") if may_change else [],
        "may_change": may_change,
        "roles": GIVEN,
        "workspaces": Workspace.objects.filter(organization=organization).order_by("slug"),
        "mails": settings.MAIL_IS_SET,
        **more,
    }
    return render(request, "settings/members.html", context, status=status)


@require_POST
@login_required
def invite(request: SignedIn) -> HttpResponse:
    """The link is shown this once; with an address and a server of e-mail it is also sent."""
    organization = own_organization(request, ADMINISTER)
    form = InviteForm(request.POST, workspaces=Workspace.objects.filter(organization=organization))
    if not form.is_valid():
        return _page(request, organization, 422, problem=said(form), invite=form)
    told = form.cleaned_data
    made, secret = people.invite(
        organization, Role(told["role"]), email=told["email"], workspace=told["workspace"], user=request.user
    )
    link = request.build_absolute_uri(reverse("invitation", args=[secret]))
    sent = _sent(made, link, request.user.get_username())
    return _page(request, organization, link=link, invited=made, sent=sent)


def _sent(invitation: Invitation, link: str, by: str) -> bool:
    """Whether the link went out by e-mail; a server that refuses it is no reason to have no link."""
    if not (invitation.email and settings.MAIL_IS_SET):
        return False
    text = render_to_string("people/invitation.txt", {"invitation": invitation, "link": link, "by": by})
    try:
        return bool(send_mail(f"{invitation.organization} on Ondatra", text, None, [invitation.email]))
    except OSError:
        return False


@require_POST
@login_required
def withdraw(request: SignedIn, invitation_id: int) -> HttpResponse:
    people.withdraw(invitation_for(request.user, invitation_id), user=request.user)
    messages.success(request, "The link of the invitation works no more.")
    return redirect("members")


@require_safe
@login_required
def member(request: SignedIn, membership_id: int) -> HttpResponse:
    return _member(request, membership_for(request.user, membership_id))


def _member(request: SignedIn, found: Membership, **more: Any) -> HttpResponse:
    own = dict(found.workspace_roles.values_list("workspace", "role"))
    spaces = Workspace.objects.filter(organization=found.organization).order_by("slug")
    context = {
        "member": found,
        "organization": found.organization,
        "roles": ROLES,
        "workspaces": [(workspace, own.get(workspace.pk, "")) for workspace in spaces],
        "may_change": administers(request.user, found.organization),
        "is_you": found.user_id == request.user.pk,
        "may_reset": people.belongs_here_alone(found),
        **more,
    }
    return render(request, "settings/member.html", context)


@require_POST
@login_required
def change(request: SignedIn, membership_id: int) -> HttpResponse:
    """A role, the sessions, a link for a new password: the name of the button says which."""
    found = membership_for(request.user, membership_id)
    organization_for(request.user, found.organization_id, ADMINISTER)  # nobody changes a role of one's own
    if "reset" in request.POST:
        return _reset(request, found)
    try:
        messages.success(request, _changed(request, found))
    except OndatraError as error:
        messages.error(request, str(error))
    return redirect("member", membership_id)


def _changed(request: SignedIn, found: Membership) -> str:
    """What was done, as a sentence."""
    name = found.user.get_username()
    if "sessions" in request.POST:
        return f"{people.end_sessions(found.user, user=request.user)} sessions of {name} have ended."
    if "workspace" in request.POST:
        form = WorkspaceRoleForm(request.POST)
        if not form.is_valid():
            raise OndatraError(said(form))
        workspace = workspace_for(request.user, form.cleaned_data["workspace"])
        role = form.cleaned_data["role"]
        people.change_workspace_role(found, workspace, Role(role) if role else None, user=request.user)
        return f"{name} is now {Role(role).label.lower() if role else 'in'} {workspace.slug} as said."
    return _new_role(request, found, name)


def _new_role(request: SignedIn, found: Membership, name: str) -> str:
    form = RoleForm(request.POST)
    if not form.is_valid():
        raise OndatraError(said(form))
    role = Role(form.cleaned_data["role"])
    people.change_role(found, role, user=request.user)
    return f"{name} has now the role {role.label.lower()} in {found.organization}."


def _reset(request: SignedIn, found: Membership) -> HttpResponse:
    """A link with which the person sets a new password; only where nobody else's rights hang on it."""
    if not people.belongs_here_alone(found):
        messages.error(request, f"{found.user} has rights elsewhere, too: only whoever runs the install can help.")
        return redirect("member", found.pk)
    token = default_token_generator.make_token(found.user)
    address = reverse("new_password", args=[urlsafe_base64_encode(force_bytes(found.user.pk)), token])
    people.tell_everywhere(found.user, request.user, "reset_password", {"by": "link"})
    return _member(request, found, link=request.build_absolute_uri(address))


@require_POST
@login_required
def remove(request: SignedIn, membership_id: int) -> HttpResponse:
    """Somebody else by an admin, or oneself."""
    found = membership_for(request.user, membership_id)
    try:
        people.remove(found, user=request.user)
    except OndatraError as error:
        messages.error(request, str(error))
        return redirect("member", membership_id)
    if found.user_id == request.user.pk:
        messages.success(request, f"You left {found.organization}.")
        return redirect("account")
    messages.success(request, f"{found.user} is no member of {found.organization} any more.")
    return redirect("members")
