"""What the tests in a browser share."""

from tests.browser.installed import destination, home, install, mails, served, signed_in

__all__ = ["destination", "home", "install", "mails", "served", "signed_in"]
