"""Messages: published in an environment, or written by people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace.messages import Message
from mast_trace.spans import Call, Inside, Telemetry, current_agent, current_run
from mast_trace_instrumentations.metagpt import reading

if TYPE_CHECKING:
    from opentelemetry.context import Context


_KEY = "mast-trace-metagpt-answering"

HUMAN = "Human"


def answered(context: Context) -> str | None:
    """Return the id of the message that the turn of ``context`` answers."""
    value = otel_context.get_value(_KEY, context)
    return value if isinstance(value, str) else None


def answering(message_id: str, context: Context) -> Context:
    """Return ``context`` for a turn that answers the message."""
    return otel_context.set_value(_KEY, message_id, context)


def record_message(
    telemetry: Telemetry, env: Any, source: Any, context: Context, moment: int | None = None
) -> None:
    """Record a message with the roles that take it up, once."""
    run = current_run(context)
    if run is None or not run.once(("message", source.id)):
        return
    telemetry.message(
        current_agent(context) or reading.sender(source),
        _recipients(env, source),
        reading.message(source),
        parent=context,
        in_reply_to=answered(context),
        attributes={"metagpt.cause_by": str(getattr(source, "cause_by", ""))},
        timestamp=moment,
    )


def begin_human(telemetry: Telemetry, prompt: Any) -> Call:
    """Record the question to a person in a model's place, and the answer."""
    agent = current_agent()
    asked: str | None = None
    if current_run() is not None and agent:
        asked = telemetry.message(agent, [HUMAN], Message(str(prompt)))

    def end(typed: Any, error: BaseException | None) -> None:
        if error is None:
            _record_answer(telemetry, typed, asked)

    return Inside(end=end)


def begin_review(telemetry: Telemetry) -> Call:
    """Record a person's comment on a plan or on the result of a task."""

    def end(result: Any, error: BaseException | None) -> None:
        if error is None:
            _record_answer(telemetry, result[0])

    return Inside(end=end)


def _record_answer(telemetry: Telemetry, typed: Any, asked: str | None = None) -> None:
    if current_run() is not None:
        agent = current_agent()
        telemetry.message(
            HUMAN,
            [agent] if agent else [],
            Message(str(typed), role="user"),
            in_reply_to=asked,
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
