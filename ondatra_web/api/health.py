"""Whether the install works: for load balancers and monitors, and part by part for admins."""

from __future__ import annotations

from django.db import connection
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from ondatra_web import access, workers
from ondatra_web.api.base import Api, answer, answers, enveloped
from ondatra_web.environment.findings import BAD, OK, WARNING
from ondatra_web.environment.looking import look
from ondatra_web.models import Worker

SHAPE = inline_serializer(
    "HealthState",
    {
        "database": serializers.CharField(),
        "workers": serializers.DictField(child=serializers.IntegerField(), help_text="Living processes by kind."),
    },
)


class Health(Api):
    @extend_schema(operation_id="get_health", responses=answers(enveloped("HealthAnswer", SHAPE)))
    def get(self, request: Request) -> Response:
        """The database, and which processes are alive."""
        alive: dict[str, int] = {}
        for worker in Worker.objects.filter(ended_at=None):
            if not workers.is_dead(worker):
                alive[worker.kind] = alive.get(worker.kind, 0) + 1
        return answer({"database": connection.vendor, "workers": alive})


PART = inline_serializer(
    "Part",
    {
        "part": serializers.CharField(),
        "state": serializers.ChoiceField(choices=[OK, WARNING, BAD]),
        "found": serializers.CharField(),
        "seen": serializers.DateTimeField(allow_null=True, help_text="The last sign of workers."),
        "to_do": serializers.CharField(help_text="Empty where the part works."),
    },
    many=True,
)


class Environment(Api):
    @extend_schema(operation_id="get_environment", responses=answers(enveloped("EnvironmentAnswer", PART)))
    def get(self, request: Request) -> Response:
        """Each part that runs need (database, Redis, workers, Spark, store, disk, versions), with what to do. For
        tokens of admins; takes two seconds at most."""
        organization = access.organization_for(self.request.user, self.token.organization_id, access.ADMINISTER)
        found = look(organization.pk)
        told = [{"part": f.part, "state": f.state, "found": f.said, "seen": f.seen, "to_do": f.todo} for f in found]
        return answer(told)
