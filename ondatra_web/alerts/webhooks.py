"""A message over HTTP: as Slack and those who speak like it take it, or as signed JSON for programs.

The signature is that of Standard Webhooks (standardwebhooks.com), for which there are libraries in most languages.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from typing import Any

import orjson

from ondatra_web.alerts import addresses
from ondatra_web.alerts.words import Message
from ondatra_web.models import AlertChannel, AlertDelivery
from ondatra_web.tracking import vault
from runtime.custody.redact import Redactor
from runtime.errors import OndatraError
from runtime.push.http.client import POOL, PooledTransport, TransportError

TIMEOUT = 10.0
PREFIX = "whsec_"
#: What of an answer is kept in the log.
MOST_OF_AN_ANSWER = 300
COLOURS = {"critical": "#b3261e", "warning": "#8a5a00", "resolved": "#1d7a3e", "test": "#5d675f"}
#: Statuses after which asking again may help.
AGAIN = (408, 425, 429)
#: Connects to no address in the install's own network, whatever a name stands for by now.
PUBLIC = PooledTransport(addresses.is_public)


@dataclass(frozen=True)
class Answered:
    """What came of one attempt; `again`: a later one may go through, at the earliest after `wait` seconds."""

    done: bool
    said: str
    status: int | None = None
    again: bool = False
    wait: float = 0.0


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """`v1,…`: HMAC-SHA256 over `id.timestamp.body`, in base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    told = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, told, hashlib.sha256).digest()).decode()


def send(delivery: AlertDelivery, message: Message) -> Answered:
    """Raises ConfigError where the address cannot be read or may not be used."""
    channel = delivery.channel
    url, hidden = vault.unseal(channel.url), Redactor()
    parts = addresses.check(url)
    hidden.add(url)
    hidden.add(parts.path)
    hidden.add(parts.query)
    body = orjson.dumps(slack(message) if channel.kind == AlertChannel.Kind.SLACK else message.data)
    headers = {"Content-Type": "application/json", "Accept": "*/*", **_signed(delivery, body, hidden)}
    pool = POOL if addresses.is_allowed(url) else PUBLIC
    try:
        answer = pool.send("POST", url, headers, body, TIMEOUT)
    except TransportError as error:
        return Answered(False, hidden.text(_reason(str(error), url)), again=True)
    except OndatraError as error:
        return Answered(False, hidden.text(_reason(str(error), url)))

    text = answer.body[: 4 * MOST_OF_AN_ANSWER].decode("utf-8", "replace").replace("\0", "�")
    said = hidden.text(text)[:MOST_OF_AN_ANSWER]
    if 200 <= answer.status < 300:
        return Answered(True, said, answer.status)
    wait = answer.headers.get("retry-after", "")
    seconds = min(float(wait), 3600.0) if wait.isascii() and wait.isdigit() else 0.0
    return Answered(False, said, answer.status, answer.status in AGAIN or answer.status >= 500, seconds)


def _reason(text: str, url: str) -> str:
    return text.removeprefix(f"POST {url}: ")


def _signed(delivery: AlertDelivery, body: bytes, hidden: Redactor) -> dict[str, str]:
    if delivery.channel.kind != AlertChannel.Kind.WEBHOOK:
        return {}
    secret, id, now = vault.unseal(delivery.channel.secret), f"msg_{delivery.pk}", int(time.time())
    hidden.add(secret)
    told = signature(secret, id, now, body)
    return {"Webhook-Id": id, "Webhook-Timestamp": str(now), "Webhook-Signature": told}


def slack(message: Message) -> dict[str, Any]:
    """`text` and one attachment: what Slack, Mattermost, Rocket.Chat and Discord (`…/slack`) all show."""
    fields = [{"title": label, "value": _plain(said), "short": len(said) < 40} for label, said in message.facts]
    links = " · ".join(f"<{url}|{label}>" for label, url in message.links)
    reasons = "\n".join(f"• {_plain(reason)}" for reason in message.reasons)
    syncs = "\n".join(f"• <{url}|{_plain(said)}>" for said, url in message.syncs)
    return {
        "text": f"{_plain(message.subject)}",
        "attachments": [
            {
                "color": COLOURS[message.tone],
                "fallback": _plain(message.headline),
                "fields": fields,
                "text": "\n".join(filter(None, (reasons, syncs, links))),
            }
        ],
    }


def _plain(text: str) -> str:
    """As Slack wants its three signs; nothing of it mentions anybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
