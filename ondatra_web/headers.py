"""What every answer says to browsers and caches, and how large a request may be."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

#: Pages take everything from here, in files of their own: no script, style or handler stands in a page, nobody frames
#: it, and its forms go nowhere else.
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}


def policy(**others: str) -> str:
    """The header's value; `img_src="'self' data:"` replaces one of its rules."""
    rules = POLICY | {name.replace("_", "-"): value for name, value in others.items()}
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def middleware(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """The outermost one: errors of all others pass through it as well."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = _too_large(request) or get_response(request)
        if not (settings.DEBUG and response.status_code in (404, 500)):  # Django's pages for developers
            response.headers.setdefault("Content-Security-Policy", policy())
        response.headers.setdefault("Cache-Control", "no-store")  # pages hold payloads; static files say otherwise
        return response

    return answer


def _too_large(request: HttpRequest) -> HttpResponse | None:
    """Refuses a body by the length that it announces; one that announces none is cut by the server."""
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    length = request.META.get("CONTENT_LENGTH") or ""
    if not length.isdecimal() or int(length) <= most:
        return None

    why = f"this request has {int(length):,} bytes and may have {most:,}: send less at a time"
    if request.path.startswith("/api/"):
        return JsonResponse({"status": "error", "code": "too_large", "message": why}, status=413)
    return HttpResponse(why, status=413, content_type="text/plain")
