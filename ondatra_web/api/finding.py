"""One identifier looked for in all syncs that a token may read."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from ondatra_web.api.base import Api, answer, answers, checked, enveloped
from ondatra_web.api.shapes import HistoryShape, history
from ondatra_web.tracking import finding

SHAPE = inline_serializer(
    "Found",
    {
        "records": HistoryShape(many=True),
        "syncs_searched": serializers.IntegerField(help_text="With those of the pages before."),
        "syncs": serializers.IntegerField(help_text="That have run and may be read."),
        "problems": serializers.ListField(child=serializers.CharField(), help_text="Syncs that could not be searched."),
        "next_cursor": serializers.CharField(allow_null=True, help_text="null where all syncs were searched."),
    },
)


class FindForm(serializers.Serializer[Any]):
    q = serializers.CharField(trim_whitespace=False, max_length=2_000)
    how = serializers.ChoiceField(choices=["whole", "beginning"], default="whole")
    cursor = serializers.RegexField(r"^[0-9]{1,18}-[0-9]{1,18}\Z", required=False, max_length=40)


class Find(Api):
    scope = "records"

    @extend_schema(
        operation_id="find_records",
        parameters=[
            OpenApiParameter("q", str, required=True, description="An identifier, plain or masked, or its beginning."),
            OpenApiParameter("how", str, enum=["whole", "beginning"]),
            OpenApiParameter("cursor", str, description="`next_cursor` of the answer before."),
        ],
        responses=answers(enveloped("FindPage", SHAPE)),
    )
    def get(self, request: Request) -> Response:
        """The newest record of each thing that is called so, in as many syncs as one request takes."""
        given = checked(FindForm, request.query_params)
        here = self.token.organization
        upto, after = map(int, given.get("cursor", "0-0").split("-"))
        upto = upto or finding.newest_run()
        begins = given["how"] == "beginning"
        found = finding.search(
            self.token.user, here, given["q"], begins=begins, upto=upto, after=after, token=self.token.pk
        )
        return answer(
            {
                "records": [history(row["sync"], row) for row in found.rows],
                "syncs_searched": found.searched,
                "syncs": found.total,
                "problems": found.problems,
                "next_cursor": None if found.ended else f"{upto}-{found.after}",
            }
        )
