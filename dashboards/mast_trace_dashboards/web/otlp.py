"""Stored spans as an OTLP/JSON request for any other collector, written part by part."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mast_trace.trajectory import SpanRecord

_STATUS = {"Ok": 1, "Error": 2}


def as_otlp_json(pages: Iterable[Sequence[SpanRecord]]) -> Iterator[str]:
    """Yield the text of a run's spans; attributes are texts, as the store keeps them.

    Args:
        pages: the spans, some at a time; those of one service and scope are grouped in each page.
    """
    yield '{"resourceSpans": ['
    begun = False
    for spans in pages:
        by_source: dict[tuple[str, str], list[SpanRecord]] = {}
        for span in spans:
            if span.is_open:  # the text is not sent yet
                continue
            by_source.setdefault((span.service, span.scope), []).append(span)
        for (service, scope), group in by_source.items():
            resource = {
                "resource": {"attributes": [_attribute("service.name", service)]},
                "scopeSpans": [{"scope": {"name": scope}, "spans": [_span(s) for s in group]}],
            }
            yield (", " if begun else "") + json.dumps(resource, ensure_ascii=False)
            begun = True
    yield "]}"


def _span(span: SpanRecord) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_span_id,
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": [_attribute(name, value) for name, value in span.attributes.items()],
        "status": {"code": _STATUS.get(span.status, 0), "message": span.status_message},
    }


def _attribute(name: str, value: Any) -> dict[str, Any]:
    return {"key": name, "value": {"stringValue": str(value)}}
