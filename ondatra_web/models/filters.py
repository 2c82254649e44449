"""Filters of the list of syncs that a person keeps under a name."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from ondatra_web.models.organizations import Organization


class SavedFilter(models.Model):
    """What the address of the list held when the person kept it; of one organization, since lists show one."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    organization = models.ForeignKey(Organization, models.CASCADE)
    name = models.CharField(max_length=60)
    chosen = models.JSONField()  # name of a choice -> its value

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "organization", "name"], name="one_filter_a_name")]

    def __str__(self) -> str:
        return self.name
