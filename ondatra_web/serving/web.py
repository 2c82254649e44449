"""The server of the pages and the API: `python -m ondatra_web.serving.web`."""

from __future__ import annotations

from typing import Any

from django.conf import settings

#: Bytes of a request's head.
MOST_HEAD = 64 * 1024
THREADS = 8
#: Connections at a time, below the usual limit of a process's files; one that sends nothing for so many seconds ends.
MOST_CONNECTIONS, SILENT = 800, 30


def options() -> dict[str, Any]:
    """Waitress' own, for the settings of this install."""
    places = settings.ONDATRA
    told: dict[str, Any] = {
        "listen": f"{places.web_host}:{places.web_port}",
        "threads": THREADS,
        "max_request_header_size": MOST_HEAD,
        "max_request_body_size": settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        "connection_limit": MOST_CONNECTIONS,
        "channel_timeout": SILENT,
        "cleanup_interval": 10,
        "asyncore_use_poll": True,
        "ident": None,  # says no name and version
    }
    if places.tls_proxy:
        told |= {
            "trusted_proxy": places.tls_proxy,
            "trusted_proxy_headers": "x-forwarded-proto x-forwarded-for",
        }
    return told


def main() -> None:
    import waitress

    from ondatra_web.wsgi import application

    waitress.serve(application, **options())


if __name__ == "__main__":
    main()
