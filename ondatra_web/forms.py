"""What pages take from the address or a form. Filters never fail: what is no known choice counts as not chosen."""

from __future__ import annotations

from typing import Any

from django import forms

from ondatra_web.audit import ACTIONS
from ondatra_web.models import AlertKind, AlertLevel, Run

STATES = [
    ("", "Any state"),
    ("completed", "Completed"),
    ("completed_with_rejects", "With rejects"),
    ("failed", "Failed"),
    ("held", "Held"),
    ("working", "Working"),
    ("cancelled", "Cancelled"),
    ("never", "Never run"),
    ("paused", "Paused"),
    ("archived", "Archived"),
]
SORTS = [("", "By name"), ("last", "Last run first"), ("next", "Next run first"), ("due", "Most due first")]
RUN_STATES = [("", "Any state"), *((state.value, state.label) for state in Run.Status)]
LEVELS = [("", "Any level"), ("info", "Info"), ("print", "Printed"), ("warn", "Warning"), ("error", "Error")]
SCHEDULES = [("", "All"), ("followed", "Followed"), ("paused", "Paused")]
TRIGGERS = [
    ("", "Any trigger"),
    ("schedule", "Schedule"),
    ("page", "Page"),
    ("command", "Command"),
    ("api", "API"),
    ("retry", "Retry"),
    ("confirm", "Confirmed"),
]
STATUSES = [
    ("", "All"),
    ("success", "Success"),
    ("rejected", "Rejected"),
    ("invalid", "Invalid"),
    ("waiting", "Waiting"),
    ("planned", "Planned"),
]
OUTCOMES = [
    ("", "Any answer"),
    ("ok", "Without a remark"),
    ("warn", "With a warning"),
    ("error", "Failed, due again"),
    ("reject", "Refused for good"),
]
WITHIN = [("identifier", "Identifier"), ("message", "Reason"), ("payload", "Payload")]
HOW = [("", "Any way"), ("beginning", "begins with"), ("anywhere", "contains"), ("whole", "is")]
FORMATS = [("csv", "CSV"), ("jsonl", "JSON lines"), ("json", "JSON"), ("parquet", "Parquet")]


class AddressForm(forms.Form):
    """A filter that lives in the address."""

    page = forms.IntegerField(required=False, min_value=1)

    @property
    def chosen(self) -> dict[str, Any]:
        """The valid values; a wrong one is left out."""
        self.is_valid()
        return {name: self.cleaned_data.get(name) or "" for name in self.fields}

    @property
    def number(self) -> int:
        return int(self.chosen["page"] or 1)


class SyncFilterForm(AddressForm):
    q = forms.CharField(required=False, max_length=200)
    state = forms.ChoiceField(required=False, choices=STATES)
    tag = forms.CharField(required=False, max_length=200)
    workspace = forms.CharField(required=False, max_length=50)
    sort = forms.ChoiceField(required=False, choices=SORTS)


class NameFilterForm(AddressForm):
    q = forms.CharField(required=False, max_length=200)


class ScheduleFilterForm(NameFilterForm):
    state = forms.ChoiceField(required=False, choices=SCHEDULES)


class SaveFilterForm(forms.Form):
    name = forms.CharField(max_length=60)


class RunFilterForm(AddressForm):
    """Runs of one sync; days are of UTC."""

    state = forms.ChoiceField(required=False, choices=RUN_STATES)
    trigger = forms.ChoiceField(required=False, choices=TRIGGERS)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)


class LogForm(AddressForm):
    """Lines of a run's log."""

    level = forms.ChoiceField(required=False, choices=LEVELS)
    find = forms.CharField(required=False, max_length=200)


class RecordFilterForm(AddressForm):
    status = forms.ChoiceField(required=False, choices=STATUSES)
    operation = forms.CharField(required=False, max_length=20)
    change_type = forms.CharField(required=False, max_length=20)
    reason = forms.IntegerField(required=False)  # id of a message group of the run
    outcome = forms.ChoiceField(required=False, choices=OUTCOMES)
    attempt = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    batch = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    q = forms.CharField(required=False, max_length=2_000, strip=False)
    within = forms.ChoiceField(required=False, choices=WITHIN)
    how = forms.ChoiceField(required=False, choices=HOW)
    record = forms.CharField(required=False, max_length=200)  # a record's address within the run: file and row


class FindForm(AddressForm):
    """One identifier in every sync. A search that goes on says where it is: behind which sync, of those that had run by
    when, with how much found."""

    q = forms.CharField(required=False, max_length=2_000, strip=False)
    how = forms.ChoiceField(required=False, choices=[("whole", "Whole identifier"), ("beginning", "Beginning")])
    after = forms.IntegerField(required=False, min_value=1)
    upto = forms.IntegerField(required=False, min_value=1)
    found = forms.IntegerField(required=False, min_value=0)


class DownloadForm(RecordFilterForm):
    format = forms.ChoiceField(choices=FORMATS)
    sample = forms.BooleanField(required=False)  # the first rows only, at once


class AuditForm(forms.Form):
    """Lines of the audit log; `before` is the line behind which an older page goes on."""

    who = forms.CharField(required=False, max_length=200)
    action = forms.ChoiceField(required=False, choices=[("", "Any action"), *ACTIONS.items()])
    sync = forms.CharField(required=False, max_length=200)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)
    before = forms.IntegerField(required=False, min_value=1)

    @property
    def chosen(self) -> dict[str, Any]:
        self.is_valid()
        return {name: value for name in self.fields if (value := self.cleaned_data.get(name))}


class StartForm(forms.Form):
    """A run that a person starts."""

    full = forms.BooleanField(required=False)
    dry_run = forms.BooleanField(required=False)
    baseline = forms.BooleanField(required=False)
    limit = forms.IntegerField(required=False, min_value=1)


class BucketForm(forms.Form):
    """A bucket of an organization's own; which words are allowed is said where it is saved."""

    bucket = forms.CharField(max_length=63)
    prefix = forms.CharField(required=False, max_length=300)  # type: ignore[assignment]  # no clash: fields leave the class
    region = forms.CharField(max_length=50, initial="us-east-1")
    endpoint = forms.CharField(required=False, max_length=500)
    by = forms.ChoiceField(choices=[("key", "Key pair"), ("role", "Role")], initial="key")
    access_key = forms.CharField(required=False, max_length=200)
    secret_key = forms.CharField(required=False, max_length=500, strip=False)
    role_arn = forms.CharField(required=False, max_length=300)
    retention_days = forms.IntegerField(required=False, min_value=1, max_value=36_500)


class RetentionForm(forms.Form):
    retention_days = forms.IntegerField(required=False, min_value=1, max_value=36_500)


def matches_state(state: str) -> dict[str, Any]:
    """The condition on a sync, annotated with `last_status`, for a choice of STATES."""
    if state == "paused":
        return {"paused_at__isnull": False}
    if state == "never":
        return {"last_status__isnull": True}
    if state == "working":
        return {"last_status__in": Run.ACTIVE}
    return {"last_status": state} if state and state != "archived" else {}


ALERT_STATES = [
    ("open", "Open"),
    ("acknowledged", "Acknowledged"),
    ("resolved", "Resolved"),
    ("all", "All"),
]


class AlertFilterForm(AddressForm):
    q = forms.CharField(required=False, max_length=200)
    state = forms.ChoiceField(required=False, choices=ALERT_STATES)
    kind = forms.ChoiceField(required=False, choices=AlertKind.choices)
    level = forms.ChoiceField(required=False, choices=AlertLevel.choices)


class AlertRuleForm(forms.Form):
    """One rule; what its numbers may be is said where it is saved. Kind and scope are those of its address."""

    sync = forms.CharField(required=False, max_length=200)
    tag = forms.CharField(required=False, max_length=100)
    enabled = forms.BooleanField(required=False)
    unit = forms.CharField(required=False, max_length=10)
    measure = forms.CharField(required=False, max_length=10)
    warning = forms.FloatField(required=False)
    critical = forms.FloatField(required=False)
    recovery = forms.BooleanField(required=False)
    quiet_from = forms.TimeField(required=False)
    quiet_until = forms.TimeField(required=False)
    quiet_zone = forms.CharField(required=False, max_length=60, empty_value="UTC")
    quiet_critical = forms.BooleanField(required=False)
    channels = forms.TypedMultipleChoiceField(required=False, coerce=int)


class AlertChannelForm(forms.Form):
    name = forms.CharField(required=False, max_length=100)
    recipients = forms.CharField(required=False, max_length=8_000)
    url = forms.CharField(required=False, max_length=2_000)
    level = forms.CharField(required=False, max_length=10)
    enabled = forms.BooleanField(required=False)
