"""Where messages may go: a name in an address must not lead into the install's own network.

An address is looked at when it is saved, and each connection once more before it is made, with the number that the name
stands for by then.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from runtime.errors import ConfigError

LONGEST = 2_000
#: IPv6 addresses that stand for one of IPv4 behind a translator.
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")


def check(url: str) -> SplitResult:
    """Raises ConfigError; asks no name server. The URL may be a password: no error shows more than its host."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ConfigError("the address is no URL: https://HOST/… is expected") from None
    if len(url) > LONGEST or not url.isascii() or any(c <= " " or c == "\x7f" for c in url):
        raise ConfigError(f"the address is no URL: https://HOST/… of at most {LONGEST:,} plain characters is expected")
    if not host or parts.scheme not in ("https", "http") or parts.username is not None:
        raise ConfigError("https://HOST/… is expected, without a user and password in it")
    if is_allowed(url):
        return parts
    if parts.scheme != "https":
        raise ConfigError(f"http://{host} is not encrypted: https://… is expected, or {_way_out()}")
    if _is_number(host) and not is_public(host) or host == "localhost" or host.endswith((".localhost", ".internal")):
        raise ConfigError(f"{host} lies in the install's own network: name a public address, or {_way_out()}")
    return parts


def is_allowed(url: str) -> bool:
    """Whether the operator named its server."""
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}".lower()
    return place in {e.lower() for e in settings.ONDATRA.webhook_endpoints}


def is_public(number: str) -> bool:
    """Whether an IP address is reached over the internet: no loopback, no private network, no metadata service."""
    try:
        address = ipaddress.ip_address(number.split("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
        elif address.teredo is not None:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _is_number(host: str) -> bool:
    """Whether it is an IP address, however it is written: 127.1 and 0x7f000001 are loopback."""
    if ":" in host:
        return True
    try:
        socket.inet_aton(host)
    except OSError:
        return False
    return True


def _way_out() -> str:
    return "ask the operator of this install to add the server to ONDATRA_WEBHOOK_ENDPOINTS"
