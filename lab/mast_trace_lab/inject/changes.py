"""Changes that a planted fault makes, and the arm by which each is replayed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mast_trace_judge.arms import Fix, ReplayArm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.messages import ToolCall
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
