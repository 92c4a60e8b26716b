"""Model calls of a replay that are sent to a model: counted, limited and logged before they are sent.

The log is a file beside the plan, so that all processes of a replay share one limit and a killed program
leaves a true count.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import format_span_id, format_trace_id

from mast_trace import semconv
from mast_trace.fork_safe import lock
from mast_trace.spans.run_state import innermost_span
from mast_trace.trajectory.span_tree import Paths

if TYPE_CHECKING:
    from opentelemetry.context import Context

in_live_call: ContextVar[bool] = ContextVar("mast_trace_live_call", default=False)
"""True if the code that runs is the HTTP client during a live call, which may open a connection."""
UNANSWERED: Final = 0
"""Status of a live call that failed without an HTTP response, or has not ended."""


class LiveBranches(SpanProcessor):
    """Notes the path of each span as it begins, as the recorded run's paths are read from its spans.

    Attributes:
        ended_runs: number of runs of the program that have ended.
    """

    def __init__(self) -> None:
        self.ended_runs = 0
        self._paths = Paths()
        self._lock = lock()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
        """Note a span."""
        context, parent = span.context, span.parent
        attributes = span.attributes or {}
        with self._lock:
            self._paths.add(
                format_trace_id(context.trace_id),
                format_span_id(context.span_id),
                format_span_id(parent.span_id) if parent else "",
                str(attributes.get(semconv.OPERATION_NAME) or ""),
                attributes,
            )

    def on_end(self, span: ReadableSpan) -> None:
        """Count the run whose root has ended."""
        with self._lock:
            self.ended_runs += span.parent is None

    def current(self) -> str:
        """Return the path of the innermost span that is open in the current context."""
        span = innermost_span()
        if span is None:
            return ""
        with self._lock:
            return self._paths.of(format_span_id(span.get_span_context().span_id))


@dataclass(frozen=True)
class LiveCall:
    """One live model call.

    Attributes:
        key: hash of the canonical request.
        model: name of the model that was asked.
        status: HTTP status of the response; `UNANSWERED` if there was none.
    """

    key: str
    model: str
    status: int = UNANSWERED


class LiveCalls:
    """The log of a replay's live calls.

    Args:
        path: the file; made by the first call.
        limit: number of calls that may be sent; None for any number.
    """

    def __init__(self, path: Path, limit: int | None = None) -> None:
        self._path = path
        self._limit = limit

    def begin(self, key: str, model: str) -> int | None:
        """Log a call that is about to be sent; return its number, or None if the limit is reached."""
        with self._path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            number = sum(1 for line in file if "key" in json.loads(line))
            if self._limit is not None and number >= self._limit:
                return None
            # One write under the lock: the count is on disk before the request leaves.
            file.write(json.dumps({"key": key, "model": model}) + "\n")
            file.flush()
        return number

    def end(self, number: int, status: int) -> None:
        """Log the HTTP status of a call's response; `UNANSWERED` for a failure without one."""
        with self._path.open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps({"number": number, "status": status}) + "\n")
            file.flush()

    def calls(self) -> Sequence[LiveCall]:
        """Return the calls so far, in the order in which they were sent."""
        if not self._path.exists():
            return ()
        lines = [json.loads(line) for line in self._path.read_text("utf-8").splitlines()]
        ended = {each["number"]: each["status"] for each in lines if "number" in each}
        begun = [each for each in lines if "key" in each]
        return [
            LiveCall(each["key"], each["model"], ended.get(number, UNANSWERED))
            for number, each in enumerate(begun)
        ]
