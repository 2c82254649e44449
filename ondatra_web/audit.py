"""Who did what, for an organization's admins: every write of a person leaves a line, in the transaction of what was
done, and so does every read of payloads."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable
from typing import Any, cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User

from ondatra_web.models import AuditLog, Sync

#: What is written, as a person would say it.
ACTIONS = {
    "run": "ran models",
    "start_run": "started a run",
    "retry_run": "sent records again",
    "cancel_run": "cancelled a run",
    "confirm_run": "confirmed a run",
    "pause_sync": "paused a sync",
    "resume_sync": "resumed a sync",
    "discard": "discarded what waited",
    "release_run": "released the lease of a run",
    "write_record_files": "wrote record files that waited",
    "expire_run": "removed the records of a run",
    "recount_run": "recomputed the counts of a run",
    "recount_sync": "recomputed what waits of a sync",
    "read_records": "read records",
    "find_records": "found records",
    "read_history": "read a history",
    "read_undelivered": "read what is undelivered",
    "download_records": "downloaded records",
    "export_records": "started an export",
    "cancel_export": "cancelled an export",
    "download_export": "downloaded an export",
    "link_record_files": "asked for links to files",
    "download_record_file": "downloaded a file by link",
    "export_audit_log": "exported the audit log",
    "acknowledge_alert": "acknowledged an alert",
    "save_alert_rule": "saved an alert rule",
    "delete_alert_rule": "deleted an alert rule",
    "save_alert_channel": "saved an alert channel",
    "delete_alert_channel": "deleted an alert channel",
    "new_channel_secret": "renewed the secret of a channel",
    "test_alert_channel": "tested an alert channel",
    "send_alert_again": "sent an alert again",
    "make_token": "made a token",
    "revoke_token": "revoked a token",
    "save_organization": "saved an organization",
    "save_workspace": "saved a workspace",
    "save_bucket": "saved a bucket",
    "use_bucket": "switched to a bucket",
    "use_install_store": "switched to the install’s store",
    "forget_bucket": "forgot a bucket",
    "bucket_retention": "changed a retention",
    "invite": "invited somebody",
    "withdraw_invitation": "withdrew an invitation",
    "join": "joined",
    "change_role": "changed a role",
    "remove_member": "removed a member",
    "leave": "left",
    "change_password": "changed the password",
    "reset_password": "reset a password",
    "end_sessions": "ended sessions",
}


def write(
    organization_id: int,
    user: AbstractBaseUser | None,
    action: str,
    target: str,
    detail: dict[str, Any],
    *,
    sync: Sync | None = None,
) -> None:
    """Without a user it was a command. `detail` holds no secret and no plain form of a masked value."""
    line(organization_id, user, action, target, detail, sync=sync).save()


def write_all(lines: Iterable[AuditLog]) -> None:
    AuditLog.objects.bulk_create(lines)


def line(
    organization_id: int,
    user: AbstractBaseUser | None,
    action: str,
    target: str,
    detail: dict[str, Any],
    *,
    sync: Sync | None = None,
) -> AuditLog:
    """A line that is not written yet; as `write` has it."""
    return AuditLog(
        organization_id=organization_id,
        user=person(user),
        who=(user.get_username() if user else at_the_command_line())[:200],
        sync=sync,
        action=action,
        target=target[:200],
        detail=detail,
    )


def person(user: AbstractBaseUser | None) -> User | None:
    """The user table's own class, which is what a logged-in request carries."""
    return cast("User | None", user)


def at_the_command_line() -> str:
    """The system's user; environment variables that claim another are not asked."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run under a number alone
        name = f"user {os.getuid()}"
    return at_the_command_line_as(name)


def at_the_command_line_as(name: str) -> str:
    return f"{name} (command line)"
