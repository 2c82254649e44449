"""Ids and names of sources and destinations, as metadata.json and the fact tables call them."""
from __future__ import annotations

from ondatra_web.models import Run, Workspace
from runtime.model import Model
from runtime.push import PushFunction
from runtime.tracking import RunInfo


def run_info(workspace: Workspace, run: Run, model: Model, push: PushFunction) -> RunInfo:
    raise RuntimeError("run_info is not connected")
