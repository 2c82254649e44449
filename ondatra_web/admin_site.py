"""The admin site: its groups, and who comes in. What stands there is `ondatra_web.admin`."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

#: What stands together, in the order of the index.
GROUPS = {
    "People": ("User", "Group", "Organization", "Membership", "WorkspaceRole", "Invitation", "ApiToken", "AuditLog"),
    "Workspaces": ("Workspace", "ModelState", "Destination", "Bucket"),
    "Syncs and runs": ("Sync", "Run", "MessageGroup", "Export"),
    "Delivery": ("Chunk", "Delivery", "Job", "RecordFile", "ApiCallFile"),
    "Alerts": ("Alert", "AlertRule", "AlertChannel", "AlertDelivery"),
    "The install": ("Worker",),
}


class Site(admin.AdminSite):
    site_title = site_header = "Ondatra support"
    index_title = "What there is"

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # type: ignore[override]
        """There is one way to sign in, with one limit of tries."""
        if self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index"))
        if request.user.is_authenticated:
            raise PermissionDenied("the admin site is for staff: an administrator of the install can make you a member")
        return redirect_to_login(request.GET.get("next", reverse("admin:index")))

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        apps = super().get_app_list(request, app_label)  # type: ignore[arg-type]
        known = {table["object_name"]: table for app in apps for table in app["models"]}
        return [
            {
                "name": title,
                "app_label": title.split()[0].lower(),
                "app_url": f"{reverse('admin:index')}#{title}",
                "has_module_perms": True,
                "models": tables,
            }
            for title, names in GROUPS.items()
            if (tables := [known[name] for name in names if name in known])
        ]
