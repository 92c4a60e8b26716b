"""Messages between people and those who ask them: agents whose answers they judge, and flows."""

from __future__ import annotations

from typing import Any

from mast_trace.content import as_text, joined
from mast_trace.messages import Message
from mast_trace_instrumentations.crewai import reading, state
from mast_trace_instrumentations.crewai.state import Recorder


class MessageEvents(Recorder):
    """Records events of people who are asked."""

    def human_input(self, draft: str | None, comment: str) -> None:
        """Record a person's comment on an agent's answer; plain approval is no message.

        Args:
            draft: the answer; the model's last one if absent.
            comment: the person's text.
        """
        frame = state.top("agent")
        if frame is None or not comment.strip():
            return
        shown = Message(draft or frame.notes.get("answered", ""))
        role = frame.notes["role"]
        answer = self._telemetry.message(
            role, [reading.USER], shown, in_reply_to=frame.notes["asked"]
        )
        frame.notes["asked"] = self._telemetry.message(
            reading.USER,
            [role],
            Message(comment, role="user"),
            in_reply_to=answer,
        )

    def _on_human_feedback_requested(self, _flow: Any, event: Any) -> None:
        self._ask(event.flow_name, joined("\n\n", (str(event.message), as_text(event.output))))

    def _on_human_feedback_received(self, _flow: Any, event: Any) -> None:
        self._answer(event.flow_name, event.feedback)

    def _on_flow_input_requested(self, _flow: Any, event: Any) -> None:
        self._ask(event.flow_name, event.message)

    def _on_flow_input_received(self, _flow: Any, event: Any) -> None:
        if event.response is not None:
            self._answer(event.flow_name, event.response)

    def _ask(self, flow: str, question: str) -> None:
        run = state.top("run")
        asked = self._telemetry.message(flow, [reading.USER], Message(question))
        if run is not None:
            run.notes["asked"] = asked

    def _answer(self, flow: str, answer: str) -> None:
        run = state.top("run")
        self._telemetry.message(
            reading.USER,
            [flow],
            Message(answer, role="user"),
            in_reply_to=run.notes.get("asked") if run is not None else None,
        )
