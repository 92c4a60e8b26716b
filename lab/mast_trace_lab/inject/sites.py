"""Sites of a run at which a fault can be planted, model answers and tool results; and the changes that a fault makes there."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_judge.arms import Fix, ReplayArm
from mast_trace_judge.decision_points import decision_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.messages import Message, ToolCall
    from mast_trace_judge.planted import Level


@dataclass(frozen=True)
class OtherRequest:
    """A change of the messages that the model is shown, once.

    Attributes:
        system: the system prompt; empty to leave it as it is.
        oldest: number of the oldest messages that are left out, system prompt and task excluded.
        latest: number of the latest messages that are left out.
        restart: whether everything but system prompt and task is left out.
        sent: the text of a message from another agent that is changed in transit; empty to change none.
        received: the text that the model is shown in its place.
    """

    system: str = ""
    oldest: int = 0
    latest: int = 0
    restart: bool = False
    sent: str = ""
    received: str = ""

    def to_plain(self) -> dict[str, object]:
        """Return the change as a mapping; faults and stored replays of earlier versions have no messages."""
        shape = asdict(self)
        if not self.sent:
            del shape["sent"], shape["received"]
        return shape


@dataclass(frozen=True)
class Change:
    """A change at one step.

    Attributes:
        step: index of the step.
        level: the level of the change.
        text: new text of the answer or of the tool's result.
        calls: new tool calls of the answer; None for an answer whose calls go with its text.
        error: text of the exception that the tool raises; empty if it raises none.
        request: the other request, at the levels ``request`` and ``message``.
        phrasing: number of the phrasing that was chosen, from 0; those of a model follow those of the rules.
        phrased_by: name of the model that wrote the phrasing; empty for a rule's.
    """

    step: int
    level: Level
    text: str = ""
    calls: tuple[ToolCall, ...] | None = None
    error: str = ""
    request: OtherRequest | None = None
    phrasing: int = 0
    phrased_by: str = ""

    @property
    def arm(self) -> ReplayArm:
        """The arm whose replay makes the change and lets the rest run live."""
        if self.level in {"request", "message"}:
            request = self.request or OtherRequest()
            return ReplayArm("request", self.step, self._fix(json.dumps(request.to_plain())))
        if self.level == "result":
            if self.error:
                return ReplayArm("error", self.step, self._fix(self.error))
            return ReplayArm("result", self.step, Fix("injection", self.text, result=True))
        shape = {"text": self.text, "tool_calls": _plain(self.calls or ())}
        return ReplayArm("fix", self.step, self._fix(json.dumps(shape, ensure_ascii=False)))

    def to_plain(self) -> dict[str, Any]:
        """Return the change as a mapping; texts of calls stay as they are."""
        shape = asdict(self)
        if self.request is not None:
            shape["request"] = self.request.to_plain()
        return shape

    @staticmethod
    def _fix(text: str) -> Fix:
        return Fix("injection", text)


def _plain(calls: Sequence[ToolCall]) -> list[dict[str, object]]:
    from mast_trace.messages import parsed

    return [{"name": call.name, "arguments": parsed(call.arguments) or {}} for call in calls]


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
