"""A message as e-mail, by the install's mail server (`EMAIL_URL`)."""

from __future__ import annotations

from email.utils import make_msgid
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.utils.html import format_html, format_html_join

from ondatra_web.alerts.words import Message
from ondatra_web.models import AlertDelivery


def send(delivery: AlertDelivery, message: Message) -> str:
    """What became of it. Raises smtplib.SMTPException, OSError."""
    mail = EmailMultiAlternatives(
        subject=" ".join(message.subject.split()),
        body=text(message),
        to=delivery.channel.recipients,
        headers=_headers(delivery),
    )
    mail.attach_alternative(html(message), "text/html")
    mail.send()
    return f"given to the mail server for {len(delivery.channel.recipients)} recipients"


def _headers(delivery: AlertDelivery) -> dict[str, str]:
    """What follows in an alert stands below its first message; what is sent twice has one id."""
    domain = urlsplit(settings.ONDATRA.site_url).hostname or "localhost"
    told = {"Auto-Submitted": "auto-generated", "X-Ondatra-Delivery": str(delivery.pk)}
    if delivery.event is None:
        return {**told, "Message-ID": make_msgid(f"test-{delivery.pk}", domain)}
    thread = f"<alert-{delivery.event.alert_id}.channel-{delivery.channel_id}@{domain}>"
    mine = f"<alert-{delivery.event.alert_id}.delivery-{delivery.pk}@{domain}>"
    return {**told, "Message-ID": mine, "In-Reply-To": thread, "References": thread}


def text(message: Message) -> str:
    width = max(len(label) for label, _ in message.facts)
    lines = [message.headline, "", *(f"{label:<{width}}  {said}" for label, said in message.facts)]
    if message.reasons:
        lines += ["", "Commonest reasons", *(f"  {reason}" for reason in message.reasons)]
    if message.syncs:
        lines += ["", "Syncs", *(line for said, url in message.syncs for line in (f"  {said}", f"    {url}"))]
    return "\n".join([*lines, "", *(f"{label}: {url}" for label, url in message.links), ""])


def html(message: Message) -> str:
    rows = format_html_join("", "<tr><td>{}</td><td>{}</td></tr>", message.facts)
    reasons = format_html_join("", "<li>{}</li>", ((reason,) for reason in message.reasons))
    syncs = format_html_join("", '<li><a href="{}">{}</a></li>', ((url, said) for said, url in message.syncs))
    lists = (("Commonest reasons", reasons), ("Syncs", syncs))
    told = format_html_join("", "<p>{}</p><ul>{}</ul>", ((head, lines) for head, lines in lists if lines))
    links = format_html_join(" · ", '<a href="{}">{}</a>', ((url, label) for label, url in message.links))
    return format_html(
        '<p><b>{}</b></p><table cellpadding="4">{}</table>{}<p>{}</p>', message.headline, rows, told, links
    )
