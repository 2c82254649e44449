"""Ports of this machine."""

from __future__ import annotations

import socket
from contextlib import suppress

from runtime.config import from_env
from runtime.errors import ConfigError

HOST, WEB = (places := from_env()).web_host, places.web_port
REDIS = 6379
#: So many ports are tried before a person must decide.
TRIED = 50


def free(wanted: int, what: str) -> int:
    """The wanted port, or the next free one, said aloud. Raises ConfigError."""
    for port in range(wanted, wanted + TRIED):
        if not taken(port):
            if port != wanted:
                print(f"  port {wanted} is taken: {what} uses {port}", flush=True)
            return port
    raise ConfigError(
        f"ports {wanted} to {wanted + TRIED - 1} are all taken: end what uses them, or set another one for {what}"
    )


def taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False


def answers(port: int, host: str = HOST, seconds: float = 0.5) -> bool:
    with suppress(OSError), socket.create_connection((host, port), seconds):
        return True
    return False
