"""Where an organization's records are kept: the install's store or a bucket of its own, with what the last check
found."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from ondatra_web.access import ADMINISTER, administers, organization_for, organizations_of, own_organization
from ondatra_web.forms import BucketForm, RetentionForm
from ondatra_web.models import Bucket, Organization, Run
from ondatra_web.tracking import buckets, stores
from ondatra_web.views.shown import SignedIn
from runtime.errors import OndatraError


@require_safe
@login_required
def index(request: SignedIn) -> HttpResponse:
    return redirect("store", own_organization(request).pk)


@require_safe
@login_required
def store(request: SignedIn, organization_id: int) -> HttpResponse:
    return _page(request, organization_for(request.user, organization_id))


def _page(
    request: SignedIn, organization: Organization, form: BucketForm | None = None, problem: str = "", status: int = 200
) -> HttpResponse:
    kept = Count("run", filter=Q(run__rows_expired_at=None) & (Q(run__planned__gt=0) | Q(run__invalid__gt=0)))
    known = list(Bucket.objects.filter(organization=organization).annotate(runs=kept).order_by("-in_use", "-saved_at"))
    used = next((b for b in known if b.in_use), None)
    told = (
        {
            f: getattr(used, f) or ""
            for f in ("bucket", "prefix", "region", "endpoint", "access_key", "role_arn", "retention_days")
        }
        if used
        else {}
    )
    context: dict[str, Any] = {
        "organization": organization,
        "organizations": organizations_of(request.user),
        "buckets": known,
        "used": used,
        "form": form or BucketForm(initial={**told, "by": "role" if used and used.role_arn else "key"}),
        "problem": problem,
        "endpoints": buckets.endpoints(),
        "may_change": administers(request.user, organization),
        "unwritten": stores.unwritten(organization.pk),
        "most_unwritten": settings.ONDATRA.most_unwritten,
        "pending": Run.objects.filter(sync__workspace__organization=organization, tracking="pending").count(),
    }
    return render(request, "store/store.html", context, status=status)


@sensitive_post_parameters("secret_key")
@require_POST
@login_required
def save(request: SignedIn, organization_id: int) -> HttpResponse:
    organization = organization_for(request.user, organization_id, ADMINISTER)
    form = BucketForm(request.POST)
    if not form.is_valid():
        return _page(
            request,
            organization,
            form,
            "; ".join(f"{name.replace('_', ' ')}: {said[0]}" for name, said in form.errors.items()),
            422,
        )
    told = dict(form.cleaned_data)
    by = told.pop("by")
    told |= {"access_key": "", "secret_key": ""} if by == "role" else {"role_arn": ""}
    try:
        made = buckets.save(organization, buckets.Wanted(**told), user=request.user)
    except OndatraError as error:
        return _page(request, organization, form, str(error), 422)
    messages.success(request, f"{made.url} was written, read and cleaned up. New runs keep their records there.")
    return redirect("store", organization.pk)


@require_POST
@login_required
def use_install(request: SignedIn, organization_id: int) -> HttpResponse:
    organization = organization_for(request.user, organization_id, ADMINISTER)
    buckets.use_install(organization, user=request.user)
    messages.success(
        request,
        "New runs keep their records in the install's own store. Earlier runs stay where they are and are still shown.",
    )
    return redirect("store", organization.pk)


@require_POST
@login_required
def change(request: SignedIn, organization_id: int, bucket_id: int) -> HttpResponse:
    """Check, use again, forget, or another retention: the name of the button says which."""
    organization = organization_for(request.user, organization_id, ADMINISTER)
    bucket = Bucket.objects.filter(organization=organization, pk=bucket_id).select_related("organization").first()
    if bucket is None:
        raise Http404(f"there is no bucket {bucket_id} of {organization.name}")
    try:
        messages.success(request, _changed(request, bucket))
    except OndatraError as error:
        messages.error(request, str(error))
    return redirect("store", organization.pk)


def _changed(request: SignedIn, bucket: Bucket) -> str:
    """What was done, as a sentence."""
    if "use" in request.POST:
        buckets.use(bucket, user=request.user)
        return f"New runs keep their records in {bucket.url}."
    if "forget" in request.POST:
        buckets.forget(bucket, user=request.user)
        return f"{bucket.url} is forgotten; its files were not touched."
    if "retention" in request.POST:
        form = RetentionForm(request.POST)
        days = form.cleaned_data["retention_days"] if form.is_valid() else 0
        buckets.set_retention(bucket, days, user=request.user)
        return (
            f"Records in {bucket.url} are kept for {days} days."
            if days
            else f"Nothing in {bucket.url} is ever removed."
        )
    buckets.check(bucket)
    return f"{bucket.url} was written, read and cleaned up."
