"""A server that gives tokens, for the tests of auth."""

from __future__ import annotations

from typing import Any

from push_bench import Bench
from web_server import Reply, Seen, WebServer


def oauth(bench: Bench, server: WebServer, lifetime: Any = 3600, refuse: int = 0) -> dict[str, Any]:
    """A server that gives token 1, 2, … and refuses the first `refuse` tokens."""
    given = 0

    def reply(seen: Seen) -> Reply:
        nonlocal given
        if seen.path == "/token":
            given += 1
            return 200, {}, {"access_token": f"t0ken-{given}", "expires_in": lifetime}
        return (401 if int(seen.headers["authorization"][-1]) <= refuse else 200), {}, {}

    server.reply = reply
    bench.secrets = {"I": "client-7", "S": "client-s3cr3t"}
    return {
        "auth": {
            "oauth2": {
                "token_url": f"{server.url}/token",
                "client_id": {"env": "I"},
                "client_secret": {"env": "S"},
                "scope": "crm.write",
            }
        }
    }
