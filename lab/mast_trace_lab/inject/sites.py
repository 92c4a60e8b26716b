"""Sites of a run: the model answers and tool results at which a fault can be planted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from mast_trace.trajectory import StepKind
from mast_trace_judge.decision_points import decision_points

if TYPE_CHECKING:
    from mast_trace.messages import Message, ToolCall
    from mast_trace.trajectory import Invocation, Step, Trajectory

_CHECKS: Final = re.compile(
    r"\b(verif\w*|review\w*|check\w*|test\w*|validat\w*|audit\w*|critic\w*|approv\w*|inspect\w*|quality)\b",
    re.IGNORECASE,
)
ENDINGS: Final = frozenset({"finish", "end", "stop"})
"""Names of tools that end a run."""
_HANDS_OVER: Final = re.compile(r"^(transfer|hand_?off|delegate|handover|route)", re.IGNORECASE)


@dataclass(frozen=True)
class RecordedAnswer:
    """A recorded model answer.

    Attributes:
        run: the run.
        place: its number among the run's model answers, from 0.
        step: index of the first step that it made.
        agent: the answering agent.
        said: the answer.
        shown: the messages that the model was shown, in order.
    """

    run: Trajectory
    place: int
    step: int
    agent: str
    said: Message
    shown: tuple[Message, ...]

    @property
    def task(self) -> str:
        """The task of the run."""
        return self.run.task or next(
            (each.content for each in self.shown if each.role == "user"), ""
        )

    @property
    def prompt(self) -> str:
        """The agent's system prompt; empty if it has none."""
        return "\n".join(
            each.content for each in self.shown if each.role in {"system", "developer"}
        )

    @property
    def is_last(self) -> bool:
        """True if no model answer follows."""
        return self.place == len(answers_of(self.run)) - 1

    @property
    def checks(self) -> bool:
        """True if the agent's name or the beginning of its prompt says that it checks others' work."""
        return bool(_CHECKS.search(f"{self.agent} {self.prompt[:300]}"))

    @property
    def result_read(self) -> str:
        """The tool result that the answer follows directly; empty if it follows none."""
        last = self.shown[-1] if self.shown else None
        return last.content if last is not None and last.role == "tool" else ""

    @cached_property
    def earlier_calls(self) -> tuple[ToolCall, ...]:
        """Tool calls that the agent has made before, hand-offs excluded, oldest first."""
        return tuple(
            call
            for each in answers_of(self.run)[: self.place]
            if each.agent == self.agent
            for call in each.said.tool_calls
            if not hands_over(self.run, call.name)
        )


@dataclass(frozen=True)
class RecordedResult:
    """A recorded tool result.

    Attributes:
        run: the run.
        step: the tool step.
    """

    run: Trajectory
    step: Step

    @property
    def earlier(self) -> str:
        """The latest different result of the same tool; empty if there is none."""
        before = [
            each.text
            for each in self.run.steps[: self.step.index]
            if each.tool == self.step.tool and each.text and each.text != self.step.text
        ]
        return before[-1] if before else ""


def answers_of(run: Trajectory) -> tuple[RecordedAnswer, ...]:
    """Return the model answers of a run that made a step, in the order of their completion."""
    calls: dict[str, Invocation] = {each.span_id: each for each in run.invocations}
    found: list[RecordedAnswer] = []
    for point in decision_points(run):
        call = calls[point.span_id]
        said = run.texts.get(call.output_id)
        if said is not None:
            shown = tuple(run.seen_by(call))
            found.append(RecordedAnswer(run, len(found), point.step, point.agent, said, shown))
    return tuple(found)


def results_of(run: Trajectory) -> tuple[RecordedResult, ...]:
    """Return the tool results of a run; those of hand-offs and of tools that end the run steer it, and nobody reads them."""
    return tuple(
        RecordedResult(run, step)
        for step in run.steps
        if step.kind is StepKind.TOOL
        and not hands_over(run, step.tool)
        and step.tool.lower() not in ENDINGS
    )


def hands_over(run: Trajectory, tool: str) -> bool:
    """Return whether a tool hands control to another agent."""
    recorded = any(step.tool == tool and step.handoff_to for step in run.steps)
    return recorded or bool(_HANDS_OVER.match(tool))
