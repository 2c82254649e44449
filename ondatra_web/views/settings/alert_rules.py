"""When people are called: the rules of a workspace."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ondatra_web.access import ADMINISTER, alert_rule_for, chosen_organization, may, workspace_for, workspaces_of
from ondatra_web.alerts import rules
from ondatra_web.alerts.kinds import MEASURES, SORTS
from ondatra_web.forms import AlertRuleForm
from ondatra_web.models import AlertChannel, AlertKind, AlertRule, Sync, Workspace
from ondatra_web.views.shown import SignedIn
from runtime.errors import ConfigError, OndatraError


@require_safe
@login_required
def index(request: SignedIn) -> HttpResponse:
    first = workspaces_of(request.user, chosen_organization(request)).order_by("pk").first()
    if first is None:
        raise Http404("you have no workspace: a command makes one, `workspace SLUG --project DIR`")
    return redirect("alert_rules", first.pk)


@require_safe
@login_required
def listed(request: SignedIn, workspace_id: int) -> HttpResponse:
    workspace = workspace_for(request.user, workspace_id)
    found = list(rules.of_workspace(workspace).order_by("tag", "sync__name", "pk"))
    sorts = [(kind, sort, [r for r in found if r.kind == kind]) for kind, sort in SORTS.items()]
    context = {
        "workspace": workspace,
        "workspaces": workspaces_of(request.user, workspace.organization).order_by("slug"),
        "sorts": sorts,
        "channels": AlertChannel.objects.filter(organization=workspace.organization_id, enabled=True).count(),
        "may_change": may(request.user, ADMINISTER, workspace),
    }
    return render(request, "settings/alerts/rules.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def add(request: SignedIn, workspace_id: int) -> HttpResponse:
    """A rule for one sync or a tag; its kind stands in the address."""
    workspace = workspace_for(request.user, workspace_id, ADMINISTER)
    kind = request.GET.get("kind", "")
    if kind not in SORTS:
        raise Http404(f"there is no rule {kind!r}; there are: {', '.join(SORTS)}")
    blank = AlertRule(workspace=workspace, **rules.usual(AlertKind(kind)))
    return _form(request, blank)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def rule(request: SignedIn, rule_id: int) -> HttpResponse:
    return _form(request, alert_rule_for(request.user, rule_id, ADMINISTER))


def _form(request: SignedIn, rule: AlertRule) -> HttpResponse:
    problem = ""
    if request.method == "POST":
        try:
            saved = rules.save(
                rule.workspace, _wanted(request, rule), rule=rule if rule.pk else None, user=request.user
            )
        except OndatraError as error:
            problem = str(error)
        else:
            messages.success(request, f"{SORTS[AlertKind(saved.kind)].label} of {saved.scope} is saved.")
            return redirect("alert_rules", saved.workspace_id)
    context: dict[str, Any] = {
        "rule": rule,
        "sort": SORTS[AlertKind(rule.kind)],
        "measures": MEASURES,
        "told": request.POST if problem else _told(request, rule),
        "channels": AlertChannel.objects.filter(organization=rule.workspace.organization_id).order_by("name"),
        "chosen": _chosen(request, rule, problem),
        "problem": problem,
        "is_for_all": rule.pk and not rule.sync_id and not rule.tag,
    }
    return render(request, "settings/alerts/rule.html", context, status=422 if problem else 200)


def _told(request: SignedIn, rule: AlertRule) -> dict[str, Any]:
    """What the form shows at first."""
    names = ("unit", "measure", "quiet_zone", "enabled", "recovery", "quiet_critical")
    told = {name: getattr(rule, name) for name in names}
    for name in ("warning", "critical"):
        value = getattr(rule, name)
        told[name] = "" if value is None else f"{value:g}"
    for name in ("quiet_from", "quiet_until"):
        told[name] = f"{getattr(rule, name):%H:%M}" if getattr(rule, name) else ""
    return {**told, "sync": request.GET.get("sync", ""), "tag": request.GET.get("tag", "")}


def _chosen(request: SignedIn, rule: AlertRule, problem: str) -> set[int]:
    if problem:
        return {int(i) for i in request.POST.getlist("channels") if i.isdigit()}
    return {c.pk for c in rule.channels.all()} if rule.pk else set()


def _wanted(request: SignedIn, rule: AlertRule) -> rules.Wanted:
    """Raises ConfigError that names the field."""
    form = AlertRuleForm(request.POST)
    channels = {c.pk: c for c in AlertChannel.objects.filter(organization=rule.workspace.organization_id)}
    form.fields["channels"].choices = [(str(pk), c.name) for pk, c in channels.items()]  # type: ignore[attr-defined]
    if not form.is_valid():
        raise ConfigError("; ".join(f"{name.replace('_', ' ')}: {said[0]}" for name, said in form.errors.items()))
    told = dict(form.cleaned_data)
    name, tag = told.pop("sync").strip(), told.pop("tag").strip()
    chosen = [channels[pk] for pk in told.pop("channels")]
    if rule.pk:
        return rules.Wanted(rule.kind, sync=rule.sync, tag=rule.tag, channels=chosen, **told)
    if bool(name) == bool(tag):
        raise ConfigError("name a sync or a tag, one of both: the rule of all syncs is there already")
    return rules.Wanted(rule.kind, sync=_sync(rule.workspace, name), tag=tag, channels=chosen, **told)


def _sync(workspace: Workspace, name: str) -> Sync | None:
    """Raises ConfigError."""
    if not name:
        return None
    found = Sync.objects.filter(workspace=workspace, name=name.lower()).first()
    if found is None:
        raise ConfigError(
            f"there is no sync {name} in {workspace.slug}: its name is that of its model, with the schema"
        )
    return found


@require_POST
@login_required
def delete(request: SignedIn, rule_id: int) -> HttpResponse:
    found = alert_rule_for(request.user, rule_id, ADMINISTER)
    label, scope = SORTS[AlertKind(found.kind)].label, found.scope
    rules.delete(found, user=request.user)
    again = "is as it was at first" if scope == "all syncs" else "is deleted; the next wider rule holds"
    messages.success(request, f"{label} of {scope} {again}.")
    return redirect("alert_rules", found.workspace_id)
