"""Records of a run: paged, counted, exported; what happened to one identifier over all runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from ondatra_web import access
from ondatra_web.access import PAYLOADS, SEE
from ondatra_web.api.base import ERROR, PAGES, Api, PageForm, answer, answers, checked, enveloped, paged, pagination
from ondatra_web.api.errors import Gone, TooEarly
from ondatra_web.api.shapes import ExportShape, HistoryShape, RecordShape, history, record
from ondatra_web.models import ApiToken, RecordFile, Run
from ondatra_web.tokens import usable
from ondatra_web.tracking import asked, exporting, reads, stores
from ondatra_web.tracking import records as web_records
from ondatra_web.tracking.history import history_of
from runtime.errors import ConfigError
from runtime.records import exports
from runtime.records.filter import OUTCOMES, STATUSES, Filter
from runtime.records.searching import HOW, WITHIN

#: Pages further behind are fetched with `cursor`.
FURTHEST = 100_000
#: How long the links to a run's files work, in seconds.
LINKS = 3600
SALT = "ondatra.api.files"
FILTERS = [
    OpenApiParameter("primary_identifier", str, description="The whole identifier, plain or masked."),
    OpenApiParameter("status", str, enum=list(STATUSES)),
    OpenApiParameter("operation", str),
    OpenApiParameter("change_type", str),
    OpenApiParameter("message", str, description="A part of the message in any case; % stands for anything."),
    OpenApiParameter("group", int, description="The id of a message group of the run."),
    OpenApiParameter("outcome", str, enum=list(OUTCOMES), description="What push() answered."),
    OpenApiParameter("attempt", int, description="The attempt within the run, from 1."),
    OpenApiParameter("batch", int, description="The number of the push call, from 1."),
    OpenApiParameter("q", str, description="A text that is looked for in any case."),
    OpenApiParameter("within", str, enum=list(WITHIN), description="Where; without it in identifiers."),
    OpenApiParameter(
        "how",
        str,
        enum=list(HOW),
        description="How it is compared; without it the beginning of an identifier, else anywhere. In payloads whole "
        "and beginning are those of a field's value.",
    ),
]


class FilterForm(serializers.Serializer[Any]):
    primary_identifier = serializers.CharField(required=False, trim_whitespace=False, max_length=2_000)
    status = serializers.ChoiceField(choices=list(STATUSES), required=False)
    operation = serializers.CharField(required=False, max_length=20)
    change_type = serializers.CharField(required=False, max_length=20)
    message = serializers.CharField(required=False, trim_whitespace=False, max_length=2_000)
    group = serializers.IntegerField(required=False, min_value=1)
    outcome = serializers.ChoiceField(choices=list(OUTCOMES), required=False)
    attempt = serializers.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    batch = serializers.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    q = serializers.CharField(required=False, trim_whitespace=False, max_length=2_000)
    within = serializers.ChoiceField(choices=list(WITHIN), required=False)
    how = serializers.ChoiceField(choices=list(HOW), required=False)


class RecordsForm(FilterForm, PageForm):
    cursor = serializers.CharField(required=False, max_length=200)


def filter_of(run: Run, given: Mapping[str, Any]) -> Filter:
    """Raises ValidationError."""
    try:
        return asked.filter_of(run, given)
    except ConfigError as error:
        raise ValidationError({"group": str(error)}) from None


def still_kept(run: Run) -> None:
    """Raises Gone for a run whose records are past their retention."""
    if web_records.visible(run) == "expired":
        raise Gone(
            f"the records of run {run.pk} were kept until {web_records.kept_until(run):%Y-%m-%d}; its counts remain"
        )


class Records(Api):
    scope = "records"

    @extend_schema(
        operation_id="list_records",
        parameters=[*FILTERS, *PAGES, OpenApiParameter("cursor", str, description="`next_cursor` of the page before.")],
        responses=answers(enveloped("RecordPage", RecordShape(many=True), paged=True), 410, 503),
    )
    def get(self, request: Request, run_id: int) -> Response:
        """Records with their payloads; they appear while the run goes on."""
        run = self.run(run_id, PAYLOADS)
        still_kept(run)
        given = checked(RecordsForm, request.query_params)
        chosen, size = filter_of(run, given), given["per_page"]
        offset = 0 if given.get("cursor") else (given["page"] - 1) * size
        if offset > FURTHEST:
            raise ValidationError({"page": f"pages behind row {FURTHEST:,} are fetched with `cursor`"})

        page = web_records.records_of(run, chosen, after=given.get("cursor"), offset=offset, limit=size)
        total = web_records.count_of(run, chosen)
        reads.of_run(
            self.token.user, "read_records", run, chosen, len(page.rows), page=given["page"], token=self.token.pk
        )
        rows = [record(row, place) for row, place in zip(page.rows, page.places, strict=True)]
        return answer(rows, pagination={**pagination(total, given["page"], size), "next_cursor": page.next})


class Count(Api):
    @extend_schema(
        operation_id="count_records",
        parameters=FILTERS,
        responses=answers(
            enveloped(
                "CountAnswer",
                inline_serializer("RecordCount", {"record_count": serializers.IntegerField()}, many=True),
            ),
            410,
            503,
        ),
    )
    def get(self, request: Request, run_id: int) -> Response:
        """How many records of a run the filter selects. To count by an identifier or by the text of a message takes the
        scope records."""
        given = checked(FilterForm, request.query_params)
        run = self.run(run_id, PAYLOADS if self._asks_for_text(given) else SEE)
        still_kept(run)
        count = web_records.count_of(run, filter_of(run, given))
        return answer([{"record_count": count}])

    def _asks_for_text(self, given: Mapping[str, Any]) -> bool:
        """Whether counts would tell what records say, letter by letter. Raises PermissionDenied."""
        asks = bool({"primary_identifier", "message", "q"} & set(given))
        if asks and "records" not in self.token.scopes:
            raise PermissionDenied("to count by primary_identifier, message or q a token needs the scope records")
        return asks


class Files(Api):
    scope = "records"

    @extend_schema(
        operation_id="list_record_files",
        responses=answers(
            enveloped(
                "FilesAnswer",
                inline_serializer("RecordFiles", {"urls": serializers.ListField(child=serializers.CharField())}),
            ),
            410,
            425,
        ),
    )
    def get(self, request: Request, run_id: int) -> Response:
        """Links to the run's parquet files, which work for an hour without the token. 425 while the run works."""
        run = self.run(run_id, PAYLOADS)
        still_kept(run)
        if run.status in Run.ACTIVE:
            raise TooEarly(f"run {run.pk} is {run.status}: its files are complete when it has ended")
        ids = RecordFile.objects.filter(run=run).order_by("pk").values_list("pk", flat=True)
        reads.of_run(self.token.user, "link_record_files", run, Filter(), files=len(ids), token=self.token.pk)
        return answer(
            {
                "urls": [
                    request.build_absolute_uri(f"/api/v1/files/{signing.dumps([i, self.token.pk], salt=SALT)}")
                    for i in ids
                ]
            }
        )


class ExportForm(FilterForm):
    format = serializers.ChoiceField(choices=list(exports.FORMATS), default="parquet")


class Exports(Api):
    scope = "records"

    @extend_schema(
        operation_id="start_export",
        request=ExportForm,
        responses=answers(enveloped("ExportStarted", ExportShape()), 410, 503, status=202),
    )
    def post(self, request: Request, run_id: int) -> Response:
        """Writes what the filter selects into one file, as a job."""
        run = self.run(run_id, PAYLOADS)
        still_kept(run)
        given = checked(ExportForm, request.data)
        made = exporting.start(run, filter_of(run, given), given["format"], user=self.token.user)
        return answer(ExportShape(made).data, status=202)


class OneExport(Api):
    scope = "records"

    @extend_schema(operation_id="get_export", responses=answers(enveloped("ExportAnswer", ExportShape())))
    def get(self, request: Request, export_id: int) -> Response:
        """How far an export has got, and where its file is."""
        return answer(ExportShape(self.export_of(export_id)).data)


class ExportFile(Api):
    scope = "records"

    @extend_schema(
        operation_id="download_export",
        responses=answers(None, 410, 425) | {(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, export_id: int) -> Response | FileResponse:
        """The file of an export that is done."""
        export = self.export_of(export_id)
        if export.status in export.OPEN:
            raise TooEarly(f"export {export.pk} is {export.status}: wait until it is done")
        place = exporting.fetched(export)
        if place is None:
            raise Gone(f"export {export.pk} has no file any more: start another")
        reads.of_export(self.token.user, export, token=self.token.pk)
        return FileResponse(place.open("rb"), as_attachment=True, filename=exporting.name_of(export))


class HistoryForm(PageForm):
    sync_id = serializers.IntegerField(min_value=1)


class History(Api):
    scope = "records"

    @extend_schema(
        operation_id="get_history",
        parameters=[*PAGES, OpenApiParameter("sync_id", int, required=True)],
        responses=answers(enveloped("HistoryPage", HistoryShape(many=True), paged=True), 503),
    )
    def get(self, request: Request, identifier: str) -> Response:
        """What happened to one identifier over all runs of a sync that are kept, newest first."""
        given = checked(HistoryForm, request.query_params)
        sync = self.sync(given["sync_id"], PAYLOADS)
        found = history_of(sync, identifier)
        reads.of_sync(self.token.user, "read_history", sync, identifier, len(found), token=self.token.pk)
        rows, pages = paged(found, given)
        return answer(
            [history(sync, row) for row in rows],
            pagination=pages,
        )


class File(Api):
    """A record file by its signed link, as `Files` gave it: the signature stands for the token."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    @extend_schema(
        operation_id="download_record_file",
        auth=[],
        responses={(200, "application/vnd.apache.parquet"): OpenApiTypes.BINARY}
        | dict.fromkeys((403, 404, 410, 503), ERROR),
    )
    def get(self, request: Request, signed: str) -> FileResponse:
        """One parquet file of a run."""
        kept, token = self._kept(signed)
        store = stores.of_run(kept.run)
        place = store.local(store.path_of(kept.url))
        name = f"run{kept.run_id}.{kept.batch_type}.{kept.number}.parquet"
        reads.of_run(token.user, "download_record_file", kept.run, Filter(), kept.rows, file=kept.pk, token=token.pk)
        return FileResponse(place.open("rb"), as_attachment=True, filename=name)

    def _kept(self, signed: str) -> tuple[RecordFile, ApiToken]:
        """The file, and the token that asked for the link: it works as long as the token may read the run. Raises
        Http404, PermissionDenied, Gone."""
        try:
            file_id, token_id = signing.loads(signed, salt=SALT, max_age=LINKS)
            kept = RecordFile.objects.select_related("run__bucket__organization").get(pk=file_id)
            token = ApiToken.objects.select_related("user", "organization").get(pk=token_id)
        except (signing.BadSignature, RecordFile.DoesNotExist, ApiToken.DoesNotExist):
            raise Http404("this link is wrong, older than an hour, or what it stands for was removed") from None
        if not usable(token) or "records" not in token.scopes:
            raise Http404("the token that asked for this link works no more")
        still_kept(access.run_for(token.user, kept.run_id, PAYLOADS))
        return kept, token
