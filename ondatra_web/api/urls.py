"""`/api/`: version 1, its schema, and the page that shows it."""

from __future__ import annotations

from django.urls import path, re_path, register_converter
from django.urls.converters import StringConverter
from drf_spectacular.views import SpectacularAPIView

from ondatra_web.api import alert_channels, alerts, docs, finding, health, records, runs, schedules, syncs
from ondatra_web.api.base import missing


class AnythingConverter(StringConverter):
    """An identifier may hold slashes and line ends."""

    regex = r"[\s\S]+"


register_converter(AnythingConverter, "anything")

urlpatterns = [
    path("v1/syncs", syncs.Syncs.as_view()),
    path("v1/syncs/<int:sync_id>", syncs.OneSync.as_view()),
    path("v1/syncs/<int:sync_id>/trigger", syncs.Trigger.as_view()),
    path("v1/syncs/<int:sync_id>/pause", syncs.Pause.as_view()),
    path("v1/syncs/<int:sync_id>/resume", syncs.Resume.as_view()),
    path("v1/syncs/<int:sync_id>/sync_runs", syncs.SyncRuns.as_view()),
    path("v1/sync_runs/<int:run_id>", runs.OneRun.as_view()),
    path("v1/sync_runs/<int:run_id>/cancel", runs.Cancel.as_view()),
    path("v1/sync_runs/<int:run_id>/confirm", runs.Confirm.as_view()),
    path("v1/sync_runs/<int:run_id>/retry", runs.Retry.as_view()),
    path("v1/sync_runs/<int:run_id>/message_groups", runs.Groups.as_view()),
    path("v1/sync_runs/<int:run_id>/log", runs.Log.as_view()),
    path("v1/sync_runs/<int:run_id>/records", records.Records.as_view()),
    path("v1/sync_runs/<int:run_id>/records_count", records.Count.as_view()),
    path("v1/sync_runs/<int:run_id>/records_export", records.Files.as_view()),
    path("v1/sync_runs/<int:run_id>/exports", records.Exports.as_view()),
    path("v1/exports/<int:export_id>", records.OneExport.as_view()),
    path("v1/exports/<int:export_id>/file", records.ExportFile.as_view()),
    path("v1/files/<str:signed>", records.File.as_view()),
    path("v1/records/<anything:identifier>/history", records.History.as_view()),
    path("v1/find", finding.Find.as_view()),
    path("v1/models", syncs.Models.as_view()),
    path("v1/schedules", schedules.Schedules.as_view()),
    path("v1/schedules/<int:sync_id>", schedules.OneSchedule.as_view()),
    path("v1/alerts", alerts.Alerts.as_view()),
    path("v1/alerts/<int:alert_id>", alerts.OneAlert.as_view()),
    path("v1/alerts/<int:alert_id>/acknowledge", alerts.Acknowledge.as_view()),
    path("v1/alert_rules", alerts.Rules.as_view()),
    path("v1/alert_rules/<int:rule_id>", alerts.OneRule.as_view()),
    path("v1/alert_channels", alert_channels.Channels.as_view()),
    path("v1/alert_channels/<int:channel_id>", alert_channels.OneChannel.as_view()),
    path("v1/alert_channels/<int:channel_id>/secret", alert_channels.Secret.as_view()),
    path("v1/alert_channels/<int:channel_id>/test", alert_channels.Test.as_view()),
    path("v1/alert_channels/<int:channel_id>/deliveries", alert_channels.Deliveries.as_view()),
    path("v1/alert_deliveries/<int:delivery_id>/retry", alert_channels.Retry.as_view()),
    path("v1/health", health.Health.as_view()),
    path("v1/environment", health.Environment.as_view()),
    path("v1/schema", SpectacularAPIView.as_view(authentication_classes=[], permission_classes=[]), name="api_schema"),
    path(
        "docs",
        docs.Docs.as_view(url_name="api_schema", authentication_classes=[], permission_classes=[]),
        name="api_docs",
    ),
    re_path(r"^[\s\S]*$", missing),  # of every method, and whatever characters it has,
]
