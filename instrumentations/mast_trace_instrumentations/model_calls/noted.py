"""The span of a model call that a framework has begun, on which the client notes what only it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.spans import guarded, open_chat
from mast_trace.spans.alterations import with_earlier_marks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span

    from mast_trace.messages import Message
    from mast_trace.spans import Telemetry


class NotedSpan:
    """Stands for a `mast_trace.spans.ChatSpan` that its framework writes and ends.

    Frameworks pass a part of an answer on: reasoning, citations and refusals are seen by the client alone.

    Args:
        telemetry: has the policy of contents.
        span: of the framework.
    """

    context = None
    """The framework's context stays."""

    def __init__(self, telemetry: Telemetry, span: Span) -> None:
        self._telemetry = telemetry
        self.span = span

    def response(self, _message: Message | None, **about: Any) -> None:
        """Note the extra of an answer; the outermost client counts."""
        with guarded("noting a model's answer"):
            known = getattr(self.span, "attributes", None) or {}
            if self.span.is_recording() and semconv.RESPONSE_EXTRA not in known:
                extra = self._telemetry.writer.beside(about.get("extra"))
                self.span.set_attributes(with_earlier_marks(extra, self.span))

    def set(self, _attributes: Mapping[str, Any]) -> None:
        """Leave other attributes to the framework."""

    def end(self, error: BaseException | None = None) -> None:
        """Leave the end to the framework."""


def noted_span(telemetry: Telemetry) -> NotedSpan | None:
    """Return the open model call of a framework; None where it has none at hand, or no content is captured."""
    span = open_chat()
    if span is None or not span.is_recording() or not telemetry.writer.captures:
        return None
    return NotedSpan(telemetry, span)
