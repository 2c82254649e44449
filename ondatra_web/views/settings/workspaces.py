"""Workspaces of an organization: where each has its project folder, its env file, and what else its models may read."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from ondatra_web import workspaces
from ondatra_web.access import ADMINISTER, administers, own_organization, workspace_for, workspaces_of
from ondatra_web.models import Organization, Workspace
from ondatra_web.views.settings.forms import WorkspaceForm, said
from ondatra_web.views.shown import SignedIn
from runtime.errors import OndatraError


@require_safe
@login_required
def index(request: SignedIn) -> HttpResponse:
    """For whoever administers one of them."""
    organization = own_organization(request)
    known = workspaces_of(request.user, organization, ADMINISTER).order_by("slug")
    may_add = administers(request.user, organization)
    if not (may_add or known):
        raise PermissionDenied(f"only an admin of {organization} or of a workspace sees where its files lie")
    context = {"organization": organization, "workspaces": known, "may_add": may_add}
    return render(request, "settings/workspaces.html", context)


@require_safe
@login_required
def new(request: SignedIn) -> HttpResponse:
    return _page(request, own_organization(request, ADMINISTER))


@require_safe
@login_required
def workspace(request: SignedIn, workspace_id: int) -> HttpResponse:
    found = workspace_for(request.user, workspace_id, ADMINISTER)
    told = {
        "slug": found.slug,
        "project": found.project_dir,
        "env_file": found.env_file,
        "allow_paths": "\n".join(map(str, found.allow_paths)),
    }
    return _page(request, found.organization, found, WorkspaceForm(initial=told))


def _page(
    request: SignedIn,
    organization: Organization,
    found: Workspace | None = None,
    form: WorkspaceForm | None = None,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    context = {
        "organization": organization,
        "workspace": found,
        "form": form or WorkspaceForm(),
        "roots": settings.ONDATRA.workspace_roots,
        "anywhere": request.user.is_superuser,
        **more,
    }
    return render(request, "settings/workspace.html", context, status=status)


@require_POST
@login_required
def add(request: SignedIn) -> HttpResponse:
    return _saved(request, own_organization(request, ADMINISTER), None)


@require_POST
@login_required
def save(request: SignedIn, workspace_id: int) -> HttpResponse:
    found = workspace_for(request.user, workspace_id, ADMINISTER)
    return _saved(request, found.organization, found)


def _saved(request: SignedIn, organization: Organization, found: Workspace | None) -> HttpResponse:
    form = WorkspaceForm({**request.POST.dict(), **({"slug": found.slug} if found else {})})
    if not form.is_valid():
        return _page(request, organization, found, form, 422, problem=said(form))
    told = form.cleaned_data
    if found is None and Workspace.objects.filter(slug=told["slug"]).exists():
        return _page(
            request, organization, None, form, 422, problem=f"the name {told['slug']} is taken: choose another"
        )

    wanted = workspaces.Wanted(told["slug"], told["project"], told["env_file"], form.paths)
    guest = None if request.user.is_superuser else organization
    try:
        saved, _ = workspaces.save(wanted, organization, user=request.user, guest=guest)
    except OndatraError as error:
        return _page(request, organization, found, form, 422, problem=str(error))
    messages.success(request, f"{saved.slug} is saved. Its next run reads {saved.project_dir}.")
    return redirect("workspaces")
