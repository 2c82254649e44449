"""Which payload columns a person looks at."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from ondatra_web.models.syncs import Sync


class ShownColumns(models.Model):
    """The fields of a sync's payloads that stand as columns in a person's windows of records."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    sync = models.ForeignKey(Sync, models.CASCADE)
    names = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "sync"], name="one_choice_of_columns")]

    def __str__(self) -> str:
        return ", ".join(self.names)
