"""An agent's turn, and what happens at its model: the spans `invoke_agent` and `chat`.

An agent that is asked outside of any run makes a run of its own.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.spans import NO_RESULT, awaited, current_run, guarded
from mast_trace_instrumentations.ag2.chat import Recorder
from mast_trace_instrumentations.ag2.reading import encoder, heard, seen
from mast_trace_instrumentations.ag2.run import channel_in
from mast_trace_instrumentations.ag2.state import here, nested

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from opentelemetry.context import Context

    from mast_trace.spans import AgentSpan, RunSpan, Telemetry


class Turn:
    """One turn of an agent; its span begins when it is driven, not when it is prepared.

    Attributes:
        telemetry: makes its spans.
        span: the turn's, None before it began.
    """

    def __init__(self, telemetry: Telemetry, agent: Any, event: Any, context: Any) -> None:
        self.telemetry = telemetry
        self.span: AgentSpan | None = None
        self._root: RunSpan | None = None
        self._agent = agent
        self._event = event
        self._conversation = str(context.stream.id)
        self._saw = False

    def recorder(self, event: Any, context: Any) -> Recorder:
        """Make the turn's middleware, as AG2 makes middleware."""
        return Recorder(self, event, context)

    @property
    def context(self) -> Context | None:
        """The context of the turn; None before it began."""
        return self.span.context if self.span else None

    def begin(self) -> Turn:
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
        channel = channel_in(parent)
        self.span = nested(
            self.telemetry.agent(
                self._agent.name,
                parent=parent,
                conversation_id=channel.id if channel else self._conversation,
            )
        )
        return self

    def saw(self, messages: Sequence[Message]) -> None:
        """Record what the agent was shown; the first model call of the turn knows best."""
        if self.span is None or self._saw:
            return
        self._saw = True
        channel = channel_in(self.span.context)
        view = heard(messages, channel.said if channel else {})
        self.span.set(self.telemetry.inputs(view, self.span.context))

    def end(self, reply: Any, error: BaseException | None) -> None:
        """End the spans with the agent's reply or what it failed with."""
        if self.span is None:
            return
        if not self._saw:
            self.saw(self._asked())
        if error is None and reply is not None and reply.body:
            self.span.reply(Message(reply.body))
        channel = channel_in(self.span.context)
        if error is not None and channel is not None:
            channel.failures.append(error)
        self.span.end(error)
        if self._root is not None:
            self._root.finish(_termination(error), error=error)

    async def drive(self, wrapped: Callable[[], Awaitable[Any]]) -> Any:
        """Run the turn inside its span."""
        return await awaited(wrapped, self.begin, "recording an agent's turn")

    def _asked(self) -> list[Message]:
        return seen([self._event], encoder(getattr(self._agent, "_serializer", None)))


class TurnScope:
    """AG2's scope of a turn, with a turn that is recorded once it is driven."""

    def __init__(self, scope: Any, turn: Turn) -> None:
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
