"""False accusations: verdicts on healthy runs, in every shape in which they may be recorded.

Their outcome is withheld, because most runs of users are healthy and have no recorded outcome.
Modes that people labelled do not count, for a run may reach its goal and show them.

Shapes of a run: the forms in which different tools record the same run.

A labelled run is a list of steps. `SHAPES` writes it as spans of other tools and of our own manual
interface, so that a rule is measured on realistic input, and not on the tidiest shape alone.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import SpanRecord, StepKind, read_trajectory
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.verdict import SHOWN_FROM, Evidence
from published.agent_loops import read_agent_loops
from published.mast import read_ag2_coding, read_mast_v0, read_mathchat
from published.tau_retail import read_tau_retail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.study.labelled import LabelledRun

_SECOND = 1_000_000_000


def as_labelled(run: Trajectory) -> Trajectory:
    """Return the run as its data set has it."""
    return run


def without_recipients(run: Trajectory) -> Trajectory:
    """Return the run with messages that have no recipients."""
    steps = tuple(dataclasses.replace(step, recipients=()) for step in run.steps)
    return dataclasses.replace(run, steps=steps)


def as_model_calls(run: Trajectory) -> Trajectory:
    """Return the run as another tool records it: turns, model calls with the whole history, tools."""
    return read_trajectory(_spans(run, messages=False))


def as_unnamed_calls(run: Trajectory) -> Trajectory:
    """Return the run of model calls as a client alone records it, which knows no agents."""
    spans = (
        dataclasses.replace(
            span,
            attributes={k: v for k, v in span.attributes.items() if k != "gen_ai.agent.name"},
        )
        for span in _spans(run, messages=False)
    )
    return read_trajectory(list(spans))


def as_messages(run: Trajectory) -> Trajectory:
    """Return the run as `mast_trace.message` and `mast_trace.tool` record it inside of one run."""
    return read_trajectory(_spans(run, messages=True))


SHAPES: Mapping[str, Callable[[Trajectory], Trajectory]] = {
    "labelled": as_labelled,
    "no recipients": without_recipients,
    "model calls": as_model_calls,
    "messages": as_messages,
    "no names": as_unnamed_calls,
}


def _spans(run: Trajectory, *, messages: bool) -> list[SpanRecord]:
    trace, root = "f" * 32, "e" * 16
    history: list[dict[str, Any]] = [_shape("user", run.task)]
    made = []
    for step in run.steps:
        at = (step.index + 1) * _SECOND
        attributes, name = _attributes(step, history, messages=messages)
        if attributes:
            made.append(
                SpanRecord(
                    trace_id=trace,
                    span_id=f"{step.index:016x}",
                    parent_span_id=root,
                    name=name,
                    start=at,
                    end=at + _SECOND // 2,
                    attributes=attributes,
                    status="Error" if step.error else "Unset",
                    status_message=step.error or "",
                    service="team",
                )
            )
    first = run.steps[0] if run.steps else None
    agent = next((step.agent for step in run.steps if step.role != "user"), "agent")
    whole = SpanRecord(
        trace_id=trace,
        span_id=root,
        parent_span_id="",
        name=f"invoke_agent {agent}",
        start=0 if first is None else first.start,
        end=(len(run.steps) + 2) * _SECOND,
        attributes={
            "gen_ai.operation.name": "invoke_workflow" if messages else "invoke_agent",
            **({"gen_ai.workflow.name": "team"} if messages else {"gen_ai.agent.name": agent}),
            "gen_ai.input.messages": json.dumps([{**_shape("user", run.task), "id": "task"}]),
            **({"mast.input.message_ids": ["task"]} if messages else {}),
        },
        service="team",
    )
    return [whole, *made]


def _attributes(
    step: Step, history: list[dict[str, Any]], *, messages: bool
) -> tuple[dict[str, Any], str]:
    if step.kind is StepKind.TOOL:
        history.append(_shape("tool", step.text))
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": step.tool,
            "gen_ai.agent.name": step.agent,
            "gen_ai.tool.call.arguments": step.arguments,
            "gen_ai.tool.call.result": step.text,
            **({"mast.message.id": f"m{step.index}"} if messages else {}),
        }, f"execute_tool {step.tool}"
    if messages:
        return {
            "gen_ai.operation.name": "send_message",
            "mast.message.id": f"m{step.index}",
            "mast.message.sender": step.agent,
            "mast.message.recipients": list(step.recipients),
            "mast.message.content": step.text,
            "mast.message.role": step.role or "assistant",
        }, f"send_message {step.agent}"
    if step.role == "user":
        history.append(_shape("user", step.text))
        return {}, ""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.name": step.agent,
        "gen_ai.request.model": "some-model",
        "gen_ai.input.messages": json.dumps(history),
        "gen_ai.output.messages": json.dumps([_shape("assistant", step.text)]),
    }
    history.append(_shape("assistant", step.text))
    return attributes, "chat some-model"


def _shape(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


@dataclass(frozen=True)
class HealthyRates:
    """Counts of a set's healthy runs that are accused, in one shape.

    Attributes:
        subset: the set.
        shape: of `SHAPES`.
        runs: in the set.
        possible: runs with any mode.
        shown: runs with a mode from `SHOWN_FROM` on.
        exact: runs with an exact finding.
        decisive: runs in which a step is called decisive.
    """

    subset: str
    shape: str
    runs: int
    possible: int
    shown: int
    exact: int
    decisive: int


def healthy_runs(data: Path) -> dict[str, list[LabelledRun]]:
    """Read the healthy runs of every set that the folder holds.

    Some of the loops without a fault and with unknown outcome fail by themselves: they are a set of
    their own.
    """
    found: dict[str, list[LabelledRun]] = {}
    if (data / "tau-retail").is_dir():
        found["tau-retail, succeeded"] = [run for run in read_tau_retail(data) if run.success]
    if (data / "agent-loops").is_dir():
        loops = [run for run in read_agent_loops(data) if not run.extra["fault"]]
        found["agent-loops, succeeded"] = [run for run in loops if run.success]
        found["agent-loops, undisturbed"] = [run for run in loops if run.success is None]
        right = json.loads(Path(__file__).parents[1].joinpath("recomputed.json").read_text())[
            "right"
        ]
        found["agent-loops, recomputed"] = [run for run in loops if run.name in right]
    if (data / "ag2-mathchat").is_dir():
        found["ag2-mathchat, correct"] = [run for run in read_mathchat(data) if run.success]
    if (data / "mast-v0").is_dir():
        found["mast-v0, solved"] = [run for run in read_mast_v0(data) if run.success]
    if (data / "ag2-coding").is_dir():
        coding = read_ag2_coding(data)
        found["ag2-coding, no mode"] = [run for run in coding if not any(run.modes.values())]
    return found


def accused(sets: Mapping[str, Sequence[LabelledRun]]) -> list[HealthyRates]:
    """Judge every run without its outcome, in every shape, and count accusations."""
    return [
        _rates(subset, shape, runs) for subset, runs in sets.items() for shape in SHAPES if runs
    ]


def _rates(subset: str, shape: str, runs: Sequence[LabelledRun]) -> HealthyRates:
    possible = shown = exact = decisive = 0
    for run in runs:
        trajectory = SHAPES[shape](
            replace(run.trajectory, outcome="", outcome_reason="", expected="")
        )
        found = judge_by_rules(trajectory)
        modes = [mode for mode in found.modes if not run.modes.get(mode.code)]
        possible += bool(modes)
        shown += any(mode.probability >= SHOWN_FROM for mode in modes)
        exact += any(mode.evidence is Evidence.EXACT for mode in modes)
        decisive += found.names_a_step
    return HealthyRates(subset, shape, len(runs), possible, shown, exact, decisive)
