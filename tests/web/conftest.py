"""What the tests of alerts share as fixtures; a file's own of the same name come first."""

from tests.web.alerting import alert, channel, mailbox, place, sync, there

__all__ = ["alert", "channel", "mailbox", "place", "sync", "there"]
