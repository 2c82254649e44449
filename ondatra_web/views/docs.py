"""The docs, served beside the product that they are about."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web import manual
from ondatra_web.views.shown import SignedIn


@require_safe
@login_required
def index(request: SignedIn) -> HttpResponse:
    return render(request, "docs/index.html", {"groups": manual.groups()})


@require_safe
@login_required
def doc(request: SignedIn, name: str) -> HttpResponse:
    found = manual.page(name)
    if found is None:
        raise Http404(f"the docs have no page {name}: /docs/ lists them")
    groups = manual.groups()
    pages = [page for _, pages in groups for page in pages]
    at = pages.index(found)
    context = {
        "page": found,
        "groups": groups,
        "sections": [heading for heading in found.headings if heading.level == 2],
        "before": pages[at - 1] if at else None,
        "after": pages[at + 1] if at + 1 < len(pages) else None,
    }
    return render(request, "docs/doc.html", context)


@require_safe
@login_required
def file(request: SignedIn, name: str) -> HttpResponseBase:
    """A picture of a page, or a file that it names."""
    found = manual.file(name)
    if found is None:
        raise Http404(f"the docs have no file {name}: /docs/ lists the pages")
    return FileResponse(found.open("rb"), content_type=manual.SERVED[found.suffix])
