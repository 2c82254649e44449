"""`python -m ondatra_web.serving.alive web|pipeline|push|alerts|scheduler`: exit code 0 if this machine's process of
that kind lives, 1 if not, for health checks of containers."""

from __future__ import annotations

import socket
import sys
import urllib.error
import urllib.request


def answers() -> bool:
    """Whether the web server on this machine answers, whatever it says."""
    from runtime.config import read

    places = read()
    host = "127.0.0.1" if places.web_host in ("0.0.0.0", "") else places.web_host  # noqa: S104  # asked, not bound
    try:
        urllib.request.urlopen(f"http://{host}:{places.web_port}/login/", timeout=10).close()  # noqa: S310  # ours
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False
    return True


def beats(kind: str) -> bool:
    """Whether a process of that kind on this machine told the database that it lives, a moment ago."""
    import django

    django.setup()
    from ondatra_web import workers

    return workers.alive(kind, socket.gethostname()) > 0


if __name__ == "__main__":
    sys.exit(0 if (answers() if sys.argv[1] == "web" else beats(sys.argv[1])) else 1)
