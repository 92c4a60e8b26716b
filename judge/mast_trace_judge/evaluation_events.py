"""Verdicts as OpenTelemetry events, for tools that show evaluations beside spans.

Each event is a ``gen_ai.evaluation.result`` of the GenAI conventions, tied to the run's trace and to
the span that it is about.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mast_trace.semconv import ERROR_TYPE
from mast_trace.taxonomy import FAILURE_MODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry._logs import LoggerProvider

    from mast_trace_judge.verdict import Verdict

EVENT_NAME = "gen_ai.evaluation.result"
_SCOPE = "mast_trace_judge"


@dataclass(frozen=True)
class EvaluationEvent:
    """One evaluation.

    Attributes:
        span_id: of the span that it is about; empty for the run as a whole.
        attributes: as the convention names them, and the judge's version.
    """

    trace_id: str
    span_id: str
    attributes: Mapping[str, str | float]


def evaluation_events(verdict: Verdict) -> list[EvaluationEvent]:
    """Return a verdict as events: its outcome, each failure mode, and the decisive error.

    An unscored run has one event, which says why there is no score.
    """
    if verdict.status == "unscored":
        event = _event(verdict, "mast.outcome", label="unscored", why=verdict.status_reason)
        return [replace(event, attributes={**event.attributes, ERROR_TYPE: "unscored"})]
    events = [
        _event(
            verdict,
            "mast.outcome",
            score=verdict.failure_probability,
            label=verdict.outcome,
            why=verdict.status_reason,
        )
    ]
    for mode in verdict.modes:
        known = FAILURE_MODES.get(mode.code)
        events.append(
            _event(
                verdict,
                f"mast.failure_mode.{mode.code}",
                score=mode.probability,
                label=known.name if known else mode.code,
                why=mode.reason,
                span_id=next(iter(mode.span_ids), ""),
            )
        )
    found = verdict.decisive
    if found is not None:
        events.append(
            _event(
                verdict,
                "mast.decisive_error",
                score=found.probability,
                label=found.agent,
                why=found.reason,
                span_id=found.span_id,
            )
        )
    return events


def emit(verdict: Verdict, provider: LoggerProvider) -> int:
    """Send a verdict's events through a logger provider; return how many there were.

    Events need opentelemetry-sdk 1.35 or newer.
    """
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    logger = provider.get_logger(_SCOPE)
    events = evaluation_events(verdict)
    for event in events:
        span = SpanContext(
            trace_id=_integer(event.trace_id),
            span_id=_integer(event.span_id),
            is_remote=True,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
        )
        logger.emit(
            LogRecord(
                timestamp=time.time_ns(),
                context=set_span_in_context(NonRecordingSpan(span)),
                severity_number=SeverityNumber.INFO,
                event_name=EVENT_NAME,
                attributes=dict(event.attributes),
            )
        )
    return len(events)


def _event(
    verdict: Verdict,
    name: str,
    *,
    label: str,
    score: float | None = None,
    why: str = "",
    span_id: str = "",
) -> EvaluationEvent:
    attributes: dict[str, str | float] = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.label": label,
        "mast.judge.version": verdict.judge_version,
    }
    if score is not None:
        attributes["gen_ai.evaluation.score.value"] = score
    if why:
        attributes["gen_ai.evaluation.explanation"] = why
    return EvaluationEvent(verdict.trace_id, span_id, attributes)


def _integer(identity: str) -> int:
    """Imported transcripts have ids that are no hexadecimal numbers; such events stand alone."""
    try:
        return int(identity or "0", 16)
    except ValueError:
        return 0
