"""A run as the pages show it; also one of a file that a visitor sends."""

from __future__ import annotations

import json
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException

from mast_trace.trajectory import Trajectory, trajectory_from_dict
from mast_trace_dashboards.found_run import FoundRun
from mast_trace_dashboards.senders import RunTelemetry, telemetry_of
from mast_trace_dashboards.web.finding.run_costs import RunCosts, run_costs
from mast_trace_dashboards.web.run_view import Page

if TYPE_CHECKING:
    from starlette.requests import Request


LARGEST: Final = 8 * 1024 * 1024
"""Bytes of the largest file."""
_ENVELOPE = 4096
_FIELD = "file"
_EXPECTED = "a file of `mast-trace replay --out`, the JSON download of a run, or one line of `mast-trace export`"


async def read_upload(request: Request) -> Trajectory:
    """Return the run of a form with one file.

    Raises:
        HTTPException: 413, the file is too large; 400, it holds no run.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST + _ENVELOPE:
            raise HTTPException(413, f"A file of at most {LARGEST >> 20} MiB can be compared.")
    return run_of(_file_in(bytes(body), request.headers.get("content-type", "")))


def run_of(content: bytes) -> Trajectory:
    """Return the run that a file holds.

    Raises:
        HTTPException: 400, it holds no run.
    """
    try:
        shape: Any = json.loads(content)
        if isinstance(shape, dict) and "trajectory" in shape:
            shape = shape["trajectory"]
        if isinstance(shape, str):
            shape = json.loads(shape)
        return trajectory_from_dict(shape)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise HTTPException(400, f"This is not {_EXPECTED}: {reason[:300]}") from None


def _file_in(body: bytes, content_type: str) -> bytes:
    """Return the file of a form of the kind ``multipart/form-data``."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    form = BytesParser(policy=HTTP).parsebytes(head + body)
    for part in form.iter_parts() if form.is_multipart() else ():
        if part.get_param("name", header="content-disposition") == _FIELD:
            content = part.get_payload(decode=True)
            return content if isinstance(content, bytes) else b""
    raise HTTPException(400, "The form has no file.")


@dataclass(frozen=True)
class LoadedRun(FoundRun):
    """A run as the pages show it."""

    @cached_property
    def page(self) -> Page:
        """Its steps; reading a long run takes seconds."""
        answers = self.points.answers
        return Page(
            self.stored,
            self.verdict,
            confirmation=self.confirmation,
            answers=answers,
            spent=self.costs.by_step,
        )

    @cached_property
    def costs(self) -> RunCosts:
        """The cost of its steps and agents."""
        return run_costs(self.stored)

    @cached_property
    def telemetry(self) -> RunTelemetry:
        """The instrumentation that sent it, and what its telemetry lacks."""
        return telemetry_of(self.stored)

    @property
    def steps(self) -> int | None:
        """The number of steps; None until they are counted."""
        if self.stored.is_ready:
            return self.page.count
        return self.row["Steps"] if self.row["State"] == "judged" else None

    @cached_property
    def task(self) -> str:
        """The task of the run, as far as it is known without reading all spans."""
        return self.page.outline.run.task if self.stored.is_ready else self.stored.task()
