"""The admin site, for support: every table that people ask about, for looking; what may be changed is changed through
the homes that pages and commands use, asked for and written into the audit log.

looking     a page that looks: no count of a large table, no search without an index
columns     links, separators, sizes: what a person can read
deeds       what may be done to a row, with the page that asks first
people      persons, organizations, memberships, tokens, the audit log
places      workspaces, models, destinations, buckets
syncs       syncs, with `sync_deeds`
runs        runs, with `run_deeds`; message groups, exports
deliveries  chunks, deliveries, jobs, files
alerts      alerts, their rules, channels and messages
install     workers

A column is shown only where it is named here, and none that may hold values of records or a secret is: whoever has the
right to see records sees them on the pages of the product.
"""

from __future__ import annotations

from django.contrib.admin import site

from ondatra_web.admin import alerts, deliveries, install, people, places, runs, syncs

__all__ = ["alerts", "deliveries", "install", "people", "places", "runs", "site", "syncs"]
