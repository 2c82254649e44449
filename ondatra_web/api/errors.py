"""One form for everything that goes wrong: `{"status": "error", "code": …, "message": …}`, with a way out."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from runtime.errors import ConfigError, OndatraError, StoreError


class Conflict(exceptions.APIException):
    """Something is under way already; `data` names it."""

    status_code = 409
    default_code = "conflict"

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.data = data


class TooEarly(exceptions.APIException):
    status_code = 425
    default_code = "too_early"


class Gone(exceptions.APIException):
    status_code = 410
    default_code = "expired"


def handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to an error that a person can mend; None leaves what nobody foresaw to Django."""
    headers: dict[str, str] = {}
    data: dict[str, Any] = {}

    match error:
        case Http404():
            status, code, message = 404, "not_found", str(error) or "there is nothing at this address"
        case PermissionDenied():
            status, code, message = 403, "forbidden", str(error) or "your role does not allow this"
        case StoreError():
            status, code, message = 503, "store_unavailable", str(error)
        case ConfigError():
            status, code, message = 400, "refused", str(error)
        case OndatraError():
            status, code, message = 400, "failed", str(error)
        case exceptions.ValidationError():
            status, code, message = 400, "invalid", _fields(error.detail)
        case exceptions.APIException():
            status, code, message = error.status_code, str(error.get_codes()), str(error.detail)
            data = getattr(error, "data", {})
            if (wait := getattr(error, "wait", None)) is not None:
                headers["Retry-After"] = str(max(1, round(wait)))
            if (told := getattr(error, "auth_header", None)) is not None:
                headers["WWW-Authenticate"] = told
        case _:
            return None

    set_rollback()
    told_body: dict[str, Any] = {"status": "error", "code": code, "message": message}
    return Response({**told_body, **({"data": data} if data else {})}, status=status, headers=headers)


def _fields(detail: Any) -> str:
    """`status: "x" is not a valid choice.; page: …` of a serializer's complaints."""
    if isinstance(detail, dict):
        return "; ".join(f"{name}: {_fields(said)}" for name, said in detail.items())
    return " ".join(map(_fields, detail)) if isinstance(detail, list) else str(detail)
