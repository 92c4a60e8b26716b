"""Runs of a team or of an environment, and the messages published in it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.spans import Run, current_agent, current_run, guarded
from mast_trace_instrumentations.metagpt import reading
from mast_trace_instrumentations.metagpt.state import answered

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.context import Context

    from mast_trace.spans import RunSpan, Telemetry

_MAX_WAITING = 64


class TeamWrappers:
    """Wrappers of `Team` and `Environment`."""

    telemetry: Telemetry

    def __init__(self) -> None:
        super().__init__()
        # run_project() publishes the task before run() begins: kept until the run is there.
        self._waiting: dict[int, list[tuple[int, Any]]] = {}
        self._errors: dict[int, BaseException] = {}

    async def run_team(
        self, wrapped: Callable[..., Any], team: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Make a team's run the root. `Team.run` swallows every exception and returns None."""
        span = self._begin(type(team).__name__, team.env, idea=kwargs.get("idea") or team.idea)
        if span is None:
            return await wrapped(*args, **kwargs)
        try:
            with span.attached():
                result = await wrapped(*args, **kwargs)
        except BaseException as error:
            self._end(span, team.env, error)
            raise
        self._end(span, team.env, None)
        return result

    async def run_environment(
        self, wrapped: Callable[..., Any], env: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Keep the error that `Team.run` swallows; without a team this is the root."""
        if current_run() is not None:
            return await self._noting(wrapped, args, kwargs)
        span = self._begin(type(env).__name__, env, idea="")
        if span is None:
            return await wrapped(*args, **kwargs)
        try:
            with span.attached():
                result = await wrapped(*args, **kwargs)
        except BaseException as error:
            self._end(span, env, error)
            raise
        self._end(span, env, None)
        return result

    def note_error(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Keep the error that `Team.run` swallows."""
        try:
            return wrapped(*args, **kwargs)
        except BaseException as error:
            self._note(error)
            raise

    def publish(
        self, wrapped: Callable[..., Any], env: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Record a message with those who take it up."""
        with guarded("recording a message of MetaGPT"):
            message = args[0] if args else kwargs["message"]
            if current_run() is not None:
                self._record(env, message, otel_context.get_current())
            else:
                waiting = self._waiting.setdefault(id(env), [])
                waiting.append((time.time_ns(), message))
                del waiting[:-_MAX_WAITING]
        return wrapped(*args, **kwargs)

    async def _noting(self, wrapped: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        try:
            return await wrapped(*args, **kwargs)
        except BaseException as error:
            self._note(error)
            raise

    def _note(self, error: BaseException) -> None:
        run = current_run()
        if run is not None:
            self._errors[id(run)] = error

    def _begin(self, name: str, env: Any, *, idea: str) -> RunSpan | None:
        """Begin a run with the messages that were published before it."""
        with guarded("beginning a run of MetaGPT"):
            waiting = self._waiting.pop(id(env), [])
            asked = [reading.message(message) for _, message in waiting] or (
                [Message(idea, role="user")] if idea else []
            )
            start = waiting[0][0] if waiting else None
            span = self.telemetry.run(name, input=asked, start_time=start)
            for moment, message in waiting:
                self._record(env, message, span.context, moment)
            return span
        return None

    def _end(self, span: RunSpan, env: Any, raised: BaseException | None) -> None:
        with guarded("ending a run of MetaGPT"):
            noted = self._errors.pop(id(span.run), None)
            error = raised or noted
            roles = list(env.roles.values())
            items = [item for role in roles for item in reading.open_items(role)]
            span.set({semconv.PLAN_OPEN_ITEMS: items or None})
            span.finish(_termination(error, env), error=reading.cause(error) if error else None)

    def _record(self, env: Any, source: Any, context: Context, moment: int | None = None) -> None:
        run = current_run(context)
        if not isinstance(run, Run) or not run.once(("message", source.id)):
            return
        addressed = _recipients(env, source)
        self.telemetry.message(
            current_agent(context) or reading.sender(source),
            addressed,
            reading.message(source),
            parent=context,
            in_reply_to=answered(context),
            attributes={"metagpt.cause_by": str(getattr(source, "cause_by", ""))},
            timestamp=moment,
        )


def _recipients(env: Any, message: Any) -> list[str]:
    """Return the roles that take a message up.

    The environment hands a message without an addressee to every role, its author included; a role
    acts on those that it watches for and those that name it, and passes over the others.
    """
    from metagpt.utils.common import is_send_to

    return [
        reading.name_of(role)
        for role, addresses in env.member_addrs.items()
        if is_send_to(message, addresses) and reading.takes_up(role, message)
    ]


def _termination(error: BaseException | None, env: Any) -> str:
    if error is not None:
        budget = type(error).__name__ == "NoMoneyException"
        return semconv.Termination.BUDGET if budget else semconv.Termination.ERROR
    return semconv.Termination.COMPLETED if env.is_idle else semconv.Termination.MAX_TURNS
