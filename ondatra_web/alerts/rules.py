"""Rules: which one holds for a sync, and how people change them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import time
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from ondatra_web import audit
from ondatra_web.alerts import states
from ondatra_web.alerts.kinds import MEASURES, SORTS
from ondatra_web.models import AlertChannel, AlertKind, AlertLevel, AlertRule, Sync, Workspace
from runtime.errors import ConfigError


@dataclass(frozen=True)
class Wanted:
    """What a person typed in of a rule."""

    kind: str
    unit: str = ""
    measure: str = ""
    warning: float | None = None
    critical: float | None = None
    enabled: bool = True
    recovery: bool = True
    quiet_from: time | None = None
    quiet_until: time | None = None
    quiet_zone: str = "UTC"
    quiet_critical: bool = False
    sync: Sync | None = None
    tag: str = ""
    channels: Sequence[AlertChannel] = field(default=())


class Holding:
    """The rules of some workspaces, asked for by sync and kind."""

    def __init__(self, rules: Iterable[AlertRule]) -> None:
        self._of: defaultdict[tuple[int, str], list[AlertRule]] = defaultdict(list)
        for rule in rules:
            self._of[rule.workspace_id, rule.kind].append(rule)

    def of(self, sync: Sync, kind: str) -> AlertRule | None:
        """The narrowest: the sync's own, then one of its tags (the oldest), then that of all syncs. None where that is
        switched off."""
        rules = self._of[sync.workspace_id, kind]
        own = [r for r in rules if r.sync_id == sync.pk]
        tagged = [r for r in rules if r.tag and r.tag in sync.tags]
        everybody = [r for r in rules if not r.sync_id and not r.tag]
        found = next(iter([*own, *tagged, *everybody]), None)
        return found if found is not None and found.enabled else None


def holding(workspace_ids: Iterable[int]) -> Holding:
    ids = set(workspace_ids)
    make_usual(ids)
    return Holding(AlertRule.objects.filter(workspace__in=ids).order_by("pk").prefetch_related("channels"))


def of_workspace(workspace: Workspace) -> QuerySet[AlertRule]:
    make_usual([workspace.pk])
    return AlertRule.objects.filter(workspace=workspace).select_related("sync").prefetch_related("channels")


def make_usual(workspace_ids: Iterable[int]) -> None:
    """Every workspace has a rule of each kind for all its syncs."""
    ids = set(workspace_ids)
    known = set(
        AlertRule.objects.filter(workspace__in=ids, sync=None, tag="").values_list("workspace_id", "kind").order_by()
    )
    missing = [(i, kind) for i in sorted(ids) for kind in SORTS if (i, kind) not in known]
    if missing:
        AlertRule.objects.bulk_create(
            [AlertRule(workspace_id=i, **usual(k)) for i, k in missing], ignore_conflicts=True
        )


def usual(kind: AlertKind) -> dict[str, Any]:
    sort = SORTS[kind]
    measure = "source" if kind == AlertKind.DEVIATION else ""
    return {"kind": kind, "unit": sort.unit, "warning": sort.warning, "critical": sort.critical, "measure": measure}


def level(rule: AlertRule, value: float | None) -> str:
    """The level that a value reaches; empty below both, and where there is no value."""
    if value is None:
        return ""
    if rule.critical is not None and value >= rule.critical:
        return AlertLevel.CRITICAL
    return AlertLevel.WARNING if rule.warning is not None and value >= rule.warning else ""


# people's changes


def save(
    workspace: Workspace, wanted: Wanted, *, rule: AlertRule | None = None, user: AbstractBaseUser | None = None
) -> AlertRule:
    """A new rule, or a change of one. Raises ConfigError that names the field."""
    check(workspace, wanted)
    made = rule or AlertRule(workspace=workspace, kind=wanted.kind, sync=wanted.sync, tag=wanted.tag)
    fields = ("warning", "critical", "enabled", "recovery", "quiet_from", "quiet_until", "quiet_zone", "quiet_critical")
    for name in fields:
        setattr(made, name, getattr(wanted, name))
    sort = SORTS[AlertKind(wanted.kind)]
    made.unit = wanted.unit or sort.unit
    made.measure = (wanted.measure or "source") if wanted.kind == AlertKind.DEVIATION else ""
    made.changed_at = timezone.now()
    try:
        with transaction.atomic():
            made.save()
            made.channels.set(wanted.channels)
            told = {"kind": made.kind, "enabled": made.enabled, "warning": made.warning, "critical": made.critical}
            audit.write(workspace.organization_id, user, "save_alert_rule", f"rule {made.pk} ({made})", told)
            _close_unruled(workspace, made.kind)
    except IntegrityError:
        raise ConfigError(f"there is a rule for {made} already: change that one") from None
    return made


def delete(rule: AlertRule, *, user: AbstractBaseUser | None = None) -> None:
    """The next wider rule holds. That of all syncs goes back to what it was at first."""
    with transaction.atomic():
        audit.write(rule.workspace.organization_id, user, "delete_alert_rule", f"rule {rule.pk} ({rule})", {})
        workspace, kind = rule.workspace, rule.kind
        rule.delete()
        make_usual([workspace.pk])
        _close_unruled(workspace, kind)


def check(workspace: Workspace, wanted: Wanted) -> None:
    """Raises ConfigError."""
    if wanted.kind not in SORTS:
        raise ConfigError(f"there is no rule {wanted.kind!r}; there are: {', '.join(SORTS)}")
    sort = SORTS[AlertKind(wanted.kind)]
    if wanted.unit and wanted.unit not in sort.units:
        raise ConfigError(f"{wanted.kind} is not measured in {wanted.unit!r}; there are: {', '.join(sort.units)}")
    if wanted.measure and wanted.measure not in MEASURES:
        raise ConfigError(f"there is no measure {wanted.measure!r}; there are: {', '.join(MEASURES)}")
    _check_thresholds(wanted)
    _check_quiet(wanted)
    if wanted.sync is not None and (wanted.tag or wanted.sync.workspace_id != workspace.pk):
        raise ConfigError("a rule is for one sync of its workspace, for a tag, or for all: name one of these")
    for channel in wanted.channels:
        if channel.organization_id != workspace.organization_id:
            raise ConfigError(f"there is no channel {channel.pk} in {workspace.organization}")


def _check_thresholds(wanted: Wanted) -> None:
    sort = SORTS[AlertKind(wanted.kind)]
    given: Mapping[str, float | None] = {"warning": wanted.warning, "critical": wanted.critical}
    for name, value in given.items():
        if value is not None and not sort.least <= value <= sort.most:
            raise ConfigError(f"{name}: a number from {sort.least:g} on is expected; found {value:g}")
    if wanted.warning is None and wanted.critical is None:
        raise ConfigError(
            "warning, critical: at least one of both is needed; to be told of nothing, switch the rule off"
        )
    if wanted.warning is not None and wanted.critical is not None and wanted.warning > wanted.critical:
        raise ConfigError(f"warning is {wanted.warning:g}: it cannot be above critical, which is {wanted.critical:g}")


def _check_quiet(wanted: Wanted) -> None:
    if (wanted.quiet_from is None) != (wanted.quiet_until is None):
        raise ConfigError("quiet hours have a begin and an end: give both, or none")
    if wanted.quiet_from is not None and wanted.quiet_from == wanted.quiet_until:
        raise ConfigError("quiet hours that end when they begin are none: leave both empty, or switch the rule off")
    try:
        ZoneInfo(wanted.quiet_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            f"there is no time zone {wanted.quiet_zone!r}: for example Europe/Stockholm, or UTC"
        ) from None


def _close_unruled(workspace: Workspace, kind: str) -> None:
    """Alerts that no rule holds for any more."""
    rules = holding([workspace.pk])
    for alert in states.open_of(workspace_id=workspace.pk).filter(kind=kind):
        if rules.of(alert.sync, kind) is None:
            states.resolve(alert, "its rule was switched off")
