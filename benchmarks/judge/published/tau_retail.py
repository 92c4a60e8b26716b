"""tau-bench retail runs: one assistant with tools and a simulated customer.

Their success was checked against the database. The failed ones have the failures that a team marked
(AgentRx, arXiv 2602.02475). Most of them succeeded, so that they show false accusations of a judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace.untrusted_json import read_json
from mast_trace_judge.study.labelled import LabelledRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

ASSISTANT, CUSTOMER = "assistant", "user"


def read_tau_retail(data: Path) -> list[LabelledRun]:
    """Read the runs; the labelled step is the one of the failure that is the root cause."""
    path = data / "tau-retail" / "runs.jsonl"
    return [_labelled(read_json(line)) for line in path.read_text("utf-8").splitlines() if line]


def _labelled(record: Mapping[str, Any]) -> LabelledRun:
    name = str(record["id"])
    steps, at = _steps(record["messages"])
    failures = {str(failure["failure_id"]): failure for failure in record["failures"] or ()}
    root = failures.get(str(record["root_cause_failure_id"]))
    # Labels count the messages, from 1; a message may hold several calls, or none of its own.
    marked = {key: at.get(int(failure["step_number"])) for key, failure in failures.items()}
    return LabelledRun(
        subset="tau-retail",
        name=name,
        trajectory=Trajectory(
            trace_id=f"tau-retail/{name}",
            steps=steps,
            framework="tau-bench",
            task=next((step.text for step in steps if step.agent == CUSTOMER), ""),
        ),
        group=name,
        step=None if root is None else marked[str(root["failure_id"])],
        agent="" if root is None else str(root.get("failed_agent") or ASSISTANT),
        marked=frozenset(step for step in marked.values() if step is not None),
        success=bool(record["success"]),
    )


def _steps(messages: Sequence[Mapping[str, Any]]) -> tuple[tuple[Step, ...], dict[int, int]]:
    """Return the steps, and the first step of each message by its number from 1."""
    results = {m["tool_call_id"]: m for m in messages if m["role"] == "tool"}
    shapes: list[dict[str, Any]] = []
    at: dict[int, int] = {}
    for number, message in enumerate(messages, start=1):
        at[int(message.get("index") or number)] = len(shapes)
        shapes.extend(_acts(message, results))
    last = len(shapes) - 1
    steps = tuple(
        Step(index=index, span_id=f"{index:016x}", start=index, end=index, **shape)
        for index, shape in enumerate(shapes)
    )
    return steps, {number: min(index, last) for number, index in at.items()}


def _acts(
    message: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    role, content = message["role"], str(message.get("content") or "")
    if role in {"user", "assistant"} and content:
        sender, recipient = (CUSTOMER, ASSISTANT) if role == "user" else (ASSISTANT, CUSTOMER)
        yield {
            "kind": StepKind.MESSAGE,
            "agent": sender,
            "text": content,
            "role": role,
            "recipients": (recipient,),
        }
    for call in message.get("tool_calls") or ():
        result = str(results.get(call["id"], {}).get("content") or "")
        yield {
            "kind": StepKind.TOOL,
            "agent": ASSISTANT,
            "text": result,
            "tool": call["function"]["name"],
            "arguments": call["function"]["arguments"],
            "call_id": call["id"],
            "error": result if result.startswith("Error") else None,
        }
