"""Turns of agents: the span `invoke_agent`, and the messages that ask and answer.

An agent that is asked outside of any run begins a run of its own. In a channel, question and answer
are envelopes, which `run` records.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.spans import (
    NO_RESULT,
    AgentSpan,
    RunSpan,
    Telemetry,
    awaited,
    current_agent,
    current_run,
    guarded,
)
from mast_trace_instrumentations.ag2.chat import HUMAN, TurnMiddleware
from mast_trace_instrumentations.ag2.reading import encoder, heard, seen
from mast_trace_instrumentations.ag2.run import channel_in
from mast_trace_instrumentations.ag2.state import (
    failure,
    here,
    in_turn,
    is_delivery,
    nested,
    unlike_others,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context


class DrivenTurn:
    """One turn of an agent; its span begins when it is driven, not when it is prepared.

    Attributes:
        telemetry: makes its spans.
        span: the turn's span; None before it began.
    """

    def __init__(self, telemetry: Telemetry, agent: Any, event: Any, context: Any) -> None:
        self.telemetry = telemetry
        self.span: AgentSpan | None = None
        self._root: RunSpan | None = None
        self._agent = agent
        self._event = event
        self._asker = ""
        self._question: str | None = None
        self._conversation = str(context.stream.id)
        self._saw = False

    def recorder(self, event: Any, context: Any) -> TurnMiddleware:
        """Make the turn's middleware, as AG2 makes middleware."""
        return TurnMiddleware(self, event, context)

    @property
    def context(self) -> Context | None:
        """The context of the turn; None before it began."""
        return self.span.context if self.span else None

    def begin(self) -> DrivenTurn:
        """Begin the spans."""
        parent = here()
        asked = self._asked()
        if current_run(parent) is None:
            self._root = nested(
                self.telemetry.run(
                    self._agent.name,
                    parent=parent,
                    input=asked,
                    conversation_id=self._conversation,
                )
            )
            parent = self._root.context
        if not is_delivery(parent):
            self._asker = current_agent(parent) or HUMAN
            self._ask(asked, parent)
        channel = channel_in(parent)
        self.span = nested(
            self.telemetry.agent(
                self._agent.name,
                parent=parent,
                conversation_id=channel.id if channel else self._conversation,
            )
        )
        self.span.context = in_turn(self.span.context)
        return self

    def _ask(self, asked: Sequence[Message], parent: Context) -> None:
        """Record the question; a turn that goes on with results of tools has none."""
        for question in asked:
            if question.role == "user" and question.content:
                self._question = self._say(self._asker, self._agent.name, question, parent)

    def saw(self, messages: Sequence[Message]) -> None:
        """Record the agent's input; the first model call of the turn has the exact one."""
        if self.span is None or self._saw:
            return
        self._saw = True
        channel = channel_in(self.span.context)
        view = heard(messages, channel.sent if channel else {})
        self.span.set(self.telemetry.inputs(view, self.span.context))

    def end(self, reply: Any, error: BaseException | None) -> None:
        """End the spans with the agent's reply or its error."""
        if self.span is None:
            return
        try:
            if not self._saw:
                self.saw(self._asked())
            if error is None and reply is not None and reply.body:
                self._answer(Message(reply.body), self.span)
        finally:
            channel = channel_in(self.span.context)
            if error is not None and channel is not None:
                channel.failures.append(error)
            self.span.end(failure(error, self.span.context))
            if self._root is not None:
                self._root.finish(_termination(error), error=error)

    def _answer(self, reply: Message, span: AgentSpan) -> None:
        if self._asker:
            self._say(self._agent.name, self._asker, reply, span.context, self._question)
        span.reply(reply)

    def _say(
        self,
        sender: str,
        recipient: str,
        message: Message,
        parent: Context,
        in_reply_to: str | None = None,
    ) -> str:
        own = unlike_others(message, uuid.uuid4().hex, current_run(parent))
        return self.telemetry.message(
            sender, [recipient], own, parent=parent, in_reply_to=in_reply_to
        )

    async def drive(self, wrapped: Callable[[], Awaitable[Any]]) -> Any:
        """Run the turn inside its span."""
        return await awaited(wrapped, self.begin, "recording an agent's turn")

    def _asked(self) -> list[Message]:
        return seen([self._event], encoder(getattr(self._agent, "_serializer", None)))


class TurnScope:
    """AG2's scope of a turn, whose turn is recorded once it is driven."""

    def __init__(self, scope: Any, turn: DrivenTurn) -> None:
        self._scope = scope
        self._turn = turn

    async def __aenter__(self) -> Callable[[], Awaitable[Any]]:
        try:
            drive = await self._scope.__aenter__()
        except Exception as error:
            # A turn that cannot be prepared (no model, a prompt that raises) is a failed turn.
            with guarded("recording a turn that could not begin"):
                self._turn.begin().end(NO_RESULT, error)
            raise
        return partial(self._turn.drive, drive)

    async def __aexit__(self, *exc: object) -> Any:
        return await self._scope.__aexit__(*exc)


def _termination(error: BaseException | None) -> str:
    if error is None:
        return semconv.Termination.COMPLETED
    if isinstance(error, asyncio.CancelledError):
        return semconv.Termination.CANCELLED
    return semconv.Termination.ERROR
