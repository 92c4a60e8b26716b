"""Every attribute of recorded spans, left out or of another value: the trajectory is what it was before.

``attributes.golden.json`` holds a number and a hash for each instrumentation. `MAST_TRACE_WRITE_GOLDEN=1 pytest
tests/foreign/test_attributes.py` writes it anew; ``build/attributes`` then has a line for each change: compare those
of before and after.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from foreign.test_foreign import RECORDED, spans_of

from mast_trace.trajectory import SpanRecord, read_trajectory, to_dict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GOLDEN = Path(__file__).with_name("attributes.golden.json")
SHOWN = Path(__file__).parents[2] / "build" / "attributes"
OTHERS: list[Any] = ["", "x", 7, True, "{}", "[]", '["x"]', '{"x": 1}', ["x"], -1.5, "chat", "null"]


def test_what_is_read_of_changed_spans_stays_the_same() -> None:
    """Each attribute of an instrumentation is changed once, in all spans of the first recording that has it."""
    lines: dict[tuple[str, str], str] = {}
    for path in sorted(RECORDED.rglob("*.json")):
        spans = spans_of(path.relative_to(RECORDED).as_posix().removesuffix(".json"), as_text=True)
        known = {(span.scope, name) for span in spans for name in (*span.attributes, *_FIELDS)}
        for scope, name in sorted(known - lines.keys()):
            told = [_hash(changed(spans, scope, name, other)) for other in (False, True)]
            lines[scope, name] = f"{name} of {path.stem}: {', '.join(told)}\n"
    found: dict[str, str] = {}
    for (scope, _), line in lines.items():
        found[scope] = found.get(scope, "") + line
    golden = {
        scope: f"{text.count(chr(10))} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        for scope, text in found.items()
    }
    for scope, text in found.items() if os.environ.get("MAST_TRACE_WRITE_GOLDEN") else ():
        SHOWN.mkdir(parents=True, exist_ok=True)
        (SHOWN / f"{scope.replace('/', '_')}.txt").write_text(text, "utf-8")
        GOLDEN.write_text(json.dumps(golden, indent=0) + "\n", "utf-8")
    assert golden == json.loads(GOLDEN.read_text("utf-8"))


_FIELDS: dict[str, tuple[Any, Any]] = {
    "its name": ("", "chat x"),
    "its parent": ("", "f" * 16),
    "its status": ("Unset", "Error"),
    "its end": (0, 2**62),
}
"""Fields of a span, and two other values of each."""


def changed(spans: Sequence[SpanRecord], scope: str, name: str, other: bool) -> Iterator[Any]:
    """Yield spans of which those of a scope lack an attribute, or have another value of it."""
    for span in spans:
        if span.scope != scope:
            yield span
        elif name in _FIELDS:
            field = {"its parent": "parent_span_id"}.get(name, name.removeprefix("its "))
            yield replace(span, **{field: _FIELDS[name][other]})
        elif name in span.attributes:
            given = {key: each for key, each in span.attributes.items() if key != name}
            strange = OTHERS[crc32(f"{scope} {name}".encode()) % len(OTHERS)]
            yield replace(span, attributes={**given, name: strange} if other else given)
        else:
            yield span


def _hash(spans: Iterator[SpanRecord]) -> str:
    traces: dict[str, list[SpanRecord]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    largest = max(traces.values(), key=len)
    shape = json.dumps(to_dict(read_trajectory(largest)), sort_keys=True, default=str)
    return hashlib.sha256(shape.encode()).hexdigest()[:8]
