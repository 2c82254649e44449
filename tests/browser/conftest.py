"""What the tests in a browser share."""

from tests.browser.installed import home, install, mails, served, signed_in

__all__ = ["home", "install", "mails", "served", "signed_in"]
