"""URLs: how a function's own joins the API's, and where auth may go."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit

from runtime.errors import OndatraError


def join_url(base_url: str, url: str) -> str:
    """base_url, one slash, the URL; an absolute URL as it is. Raises OndatraError."""
    if url[:1] in "hH" and url.lower().startswith(("http://", "https://")):
        return url
    if not base_url:
        raise OndatraError(f"the URL {url!r} is relative, but the API dict has no base_url")
    if ".." in url and front(base_url) != base_url.rstrip("/") and _climbs(url):
        raise OndatraError(
            f"the URL {url!r} leads out of base_url {base_url}: quote what comes from data with url_quote(), or give "
            "the whole URL"
        )
    return f"{base_url.rstrip('/')}/{url.lstrip('/')}"


def _climbs(url: str) -> bool:
    """Whether `..` in the path leads above where it begins."""
    depth = 0
    for segment in re.split(r"[?#]", url, maxsplit=1)[0].split("/"):
        depth += -1 if segment == ".." else segment not in ("", ".")
        if depth < 0:
            return True
    return False


def same_host(base_url: str, url: str) -> bool:
    """Whether auth may go there: the same host and port, and never from https down to http."""
    base, other = _place(front(base_url)), _place(front(url))
    return bool(base[1]) and base[1:] == other[1:] and not (base[0] == "https" and other[0] == "http")


def front(url: str) -> str:
    """Scheme and host of a URL, so that few texts are parsed."""
    return "/".join(url.split("/", 3)[:3])


@lru_cache(maxsize=1024)
def _place(front: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(front)
        return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", "", None
