"""Turns of roles."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.spans import (
    AgentSpan,
    Call,
    Inside,
    RunSpan,
    Telemetry,
    current_agent,
    current_run,
    restore,
)
from mast_trace_instrumentations.metagpt import reading
from mast_trace_instrumentations.metagpt.message import answering

if TYPE_CHECKING:
    from opentelemetry.context import Context


@dataclass
class _Turn:
    """A call of `Role.run`; it has a span once the role has observed something."""

    role: Any
    outside: Context
    root: RunSpan | None = None
    span: AgentSpan | None = None


_turn: ContextVar[_Turn | None] = ContextVar("mast_trace_metagpt_turn", default=None)


class RoleTurns:
    """Records the turns of roles.

    Args:
        telemetry: makes their spans.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def begin(self, role: Any) -> Call:
        """Wrap a role's turn. Every role runs in every round, and most have nothing to do."""
        turn = _Turn(role, otel_context.get_current())
        token = _turn.set(turn)

        def end(result: Any, error: BaseException | None) -> None:
            restore(token)
            self._end_turn(turn, None if error is not None else result, error)

        return Inside(end=end)

    def begin_observing(self, role: Any) -> Call:
        """Begin the turn's span when the role observes something new."""

        def end(found: Any, error: BaseException | None) -> None:
            turn = _turn.get()
            ours = turn is not None and turn.role is role and turn.span is None
            if error is None and found and turn is not None and ours:
                self._begin_turn(turn, role)

        return Inside(end=end)

    def _begin_turn(self, turn: _Turn, role: Any) -> None:
        seen = [reading.message(message) for message in role.rc.news]
        name = reading.name_of(role)
        context = turn.outside
        if current_run(context) is None:
            turn.root = self._telemetry.run(name, parent=context, input=seen)
            context = turn.root.context
        if role.rc.env is None:
            self._record_asked(role, context)
        turn.span = self._telemetry.agent(
            name,
            parent=context,
            agent_id=reading.own_name(role) or None,
            description=str(role.goal or "") or None,
            input=seen,
        )
        # Same task as the rest of the turn; `_end_turn` restores the context.
        otel_context.attach(answering(str(role.rc.news[-1].id), turn.span.context))

    def _record_asked(self, role: Any, context: Context) -> None:
        """Record the request to a role without an environment, which nobody publishes."""
        for source in role.rc.news:
            self._telemetry.message(
                _asker(context, source),
                [reading.name_of(role)],
                reading.message(source),
                parent=context,
            )

    def _end_turn(self, turn: _Turn, result: Any, error: BaseException | None) -> None:
        if turn.span is None:
            return
        otel_context.attach(turn.outside)
        items = reading.open_items(turn.role)
        turn.span.set({semconv.PLAN_OPEN_ITEMS: items or None})
        if result is not None:
            self._record_reply(turn, turn.span, result)
        failure = reading.cause(error) if error else None
        turn.span.end(failure)
        if turn.root is not None:
            turn.root.set({semconv.PLAN_OPEN_ITEMS: items or None})
            ended = semconv.Termination
            turn.root.finish(ended.ERROR if error else ended.COMPLETED, error=failure)

    def _record_reply(self, turn: _Turn, span: AgentSpan, result: Any) -> None:
        """Record the result of a turn; a role in an environment has published it itself."""
        reply = reading.message(result)
        if turn.role.rc.env is None:
            asked = turn.role.rc.news[-1]
            self._telemetry.message(
                reading.name_of(turn.role),
                [_asker(turn.outside, asked)],
                reply,
                parent=span.context,
                in_reply_to=str(asked.id),
            )
        span.reply(reply)


def _asker(context: Context, source: Any) -> str:
    """Return the agent that asks a role: the acting one, else the one that the message names."""
    return current_agent(context) or reading.sender(source)
