"""What a process says of itself, without the secrets that it knows: log lines, tracebacks, Django's error reports."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from pprint import pformat
from types import FrameType, TracebackType
from typing import Any

from django.http import HttpRequest
from django.utils.safestring import SafeString, mark_safe
from django.views.debug import ExceptionReporter, SafeExceptionReporterFilter

from runtime.custody.redact import everywhere


class LineFormatter(logging.Formatter):
    """A line of a log with its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return everywhere.text(super().format(record))


class Reporter(ExceptionReporter):
    """An error as a page or a mail."""

    def get_traceback_html(self) -> SafeString:
        return mark_safe(everywhere.text(super().get_traceback_html()))  # noqa: S308  what it escaped stays so

    def get_traceback_text(self) -> SafeString:
        return mark_safe(everywhere.text(super().get_traceback_text()))  # noqa: S308


class ReporterFilter(SafeExceptionReporterFilter):
    """Variables are cut by the reporter; of a secret across the cut nothing must be left."""

    def get_traceback_frame_variables(self, request: HttpRequest | None, tb_frame: FrameType) -> Any:
        found = super().get_traceback_frame_variables(request, tb_frame)
        return [(name, _Said(everywhere.text(_formatted(value)))) for name, value in found]


class _Said:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _formatted(value: Any) -> str:
    try:
        return pformat(value)
    except Exception as error:  # an object that cannot be shown must not hide the error that is
        return f"{type(value).__name__} ({type(error).__name__} while it was shown)"


def uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """An error that ends the process: for `sys.excepthook`."""
    sys.stderr.write(everywhere.text("".join(traceback.format_exception(kind, error, trace))))


def uncaught_in_thread(told: threading.ExceptHookArgs) -> None:
    """An error that ends a thread: for `threading.excepthook`."""
    if told.exc_type is not SystemExit:
        uncaught(told.exc_type, told.exc_value, told.exc_traceback)
