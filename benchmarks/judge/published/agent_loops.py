"""Loops of one agent with tools, over small local models (arXiv 2608.02464).

About half of the runs had a fault injected into them, from a known step on. A few of the others
record whether the answer was right; the rest are only known to be undisturbed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace.untrusted_json import read_json
from mast_trace_judge.study.labelled import LabelledRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

AGENT = "assistant"
_CALL = re.compile(r"\[(\w+)\((\{.*?\})\) -> (.*)\]\s*$", re.DOTALL)


def read_agent_loops(data: Path) -> list[LabelledRun]:
    """Read every file of the folder, in the order of names; ``extra`` has the injected fault."""
    return [
        _labelled(read_json(line), path.stem)
        for path in sorted((data / "agent-loops").glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
        if line
    ]


def _labelled(record: Mapping[str, Any], file: str) -> LabelledRun:
    shapes: list[dict[str, Any]] = []
    at: list[int] = []
    for entry in record["steps"]:
        at.append(len(shapes))
        shapes.extend(_acts(entry))
    steps = tuple(
        Step(index=index, agent=AGENT, span_id=f"{index:016x}", start=index, end=index, **shape)
        for index, shape in enumerate(shapes)
    )
    faulty = record["first_faulty_step"]
    task = str(record["steps"][0].get("task") or "") if record["steps"] else ""
    return LabelledRun(
        subset=f"agent-loops/{file}",
        name=str(record["id"]),
        trajectory=Trajectory(trace_id=str(record["id"]), steps=steps, task=task),
        group=task or str(record["id"]),
        step=None if faulty is None else at[int(faulty)],
        agent="" if faulty is None else AGENT,
        success=record["success"],
        extra={"fault": record["failure_class"] or ""},
    )


def _acts(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the text and the calls of a turn; older files have its calls in the text alone."""
    text = str(entry["text"])
    call = _CALL.search(text) if entry["action"] == "tool_call" else None
    words = (text[: call.start()] if call else text).strip()
    if words:
        yield {"kind": StepKind.MESSAGE, "text": words, "role": "assistant"}
    events = entry.get("tool_events")
    if events:
        for event in events:
            yield _ran(event["name"], event["args"], str(event["result"]), event["is_error"])
    elif call:
        yield _ran(call[1], call[2], call[3], entry["error"])


def _ran(tool: str, arguments: Any, result: str, failed: bool) -> dict[str, Any]:
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "kind": StepKind.TOOL,
        "text": result,
        "tool": tool,
        "arguments": given,
        "error": result if failed else None,
    }
