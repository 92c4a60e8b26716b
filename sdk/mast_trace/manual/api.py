"""Runs, agents, tools and messages of hand-made agents.

`run`, `agent` and `tool` work as ``with`` and ``async with`` blocks and as decorators of functions
and coroutine functions. Without `instrument()` they do nothing. An error of the traced block is
recorded and passes through; an error of mast-trace never reaches the block.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from mast_trace import semconv
from mast_trace.content import is_a
from mast_trace.manual import given
from mast_trace.manual.blocks import (
    AgentBlock,
    F,
    RunBlock,
    ToolBlock,
    active_telemetry,
    is_time_limit,
)
from mast_trace.manual.threads import warn_of_lost_run
from mast_trace.spans.guard import guarded, misused
from mast_trace.spans.randomness import draw, seeds
from mast_trace.spans.run_state import current_agent, current_run, last_run
from mast_trace.spans.within import run_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext

    from mast_trace.messages import Message

logger = logging.getLogger("mast_trace")


@overload
def run(name: F, /) -> F: ...
@overload
def run(
    name: str | None = None,
    *,
    input: Any = None,
    conversation_id: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> RunBlock: ...
def run(
    name: str | F | None = None,
    *,
    input: Any = None,  # noqa: A002  # the convention's word
    conversation_id: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> RunBlock | F:
    """Record a run: ``with mast_trace.run("refund"):``, or ``@mast_trace.run``.

    Args:
        name: of the workflow: few different values. A decorated function's name if absent.
        input: the task of the run: text, a `Message`, or a list of these.
        conversation_id: id shared by several runs of one dialogue.
        attributes: more attributes.
    """
    if callable(name):
        return run()(name)
    return RunBlock(name, input=input, conversation_id=conversation_id, attributes=attributes)


@overload
def agent(name: F, /) -> F: ...
@overload
def agent(
    name: str | None = None,
    *,
    input: Any = None,
    agent_id: str | None = None,
    description: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> AgentBlock: ...
def agent(
    name: str | F | None = None,
    *,
    input: Any = None,  # noqa: A002
    agent_id: str | None = None,
    description: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> AgentBlock | F:
    """Record an agent's turn: ``with mast_trace.agent("planner"):``, or ``@mast_trace.agent``.

    The return value of a decorated function is recorded as the agent's reply; the items of a
    generator are joined at its end.

    Args:
        name: of the agent. A decorated function's name if absent.
        input: the messages that the agent sees: text, a `Message`, or a list of these.
        agent_id: its id, where it has one.
        description: of the agent.
        attributes: more attributes.
    """
    if callable(name):
        return agent()(name)
    return AgentBlock(
        name, input=input, agent_id=agent_id, description=description, attributes=attributes
    )


@overload
def tool(name: F, /) -> F: ...
@overload
def tool(
    name: str | None = None,
    arguments: Any = None,
    *,
    call_id: str | None = None,
    description: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> ToolBlock: ...
def tool(
    name: str | F | None = None,
    arguments: Any = None,
    *,
    call_id: str | None = None,
    description: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> ToolBlock | F:
    """Record a tool's execution: ``with mast_trace.tool("search", {"q": q}) as call:``.

    As a decorator, ``@mast_trace.tool``, it takes the arguments and the result from the call.

    Args:
        name: of the tool. A decorated function's name if absent.
        arguments: of the call: a mapping, or JSON text.
        call_id: the model's id of the call.
        description: of the tool.
        attributes: more attributes.
    """
    if callable(name):
        return tool()(name)
    return ToolBlock(
        name, arguments=arguments, call_id=call_id, description=description, attributes=attributes
    )


def message(
    sender: str,
    recipients: str | Sequence[str],
    content: str | Message,
    *,
    in_reply_to: str | None = None,
    performative: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> str:
    """Record a message from one agent to others.

    Args:
        sender: name of the speaking agent.
        recipients: name or names of those who receive it.
        content: the text, or any value.
        in_reply_to: id of the message that it answers.
        performative: the speech act, where your protocol names one.
        attributes: more attributes.

    Returns:
        The id of the message; empty if nothing is recorded.
    """
    with guarded("recording a message"):
        telemetry = active_telemetry()
        if telemetry is not None:
            warn_of_lost_run("message")
            if sender is None:
                misused("message", "sender is None; the acting agent is taken for it")
            return telemetry.message(
                given.word(sender, "message", "sender") or current_agent() or given.UNKNOWN,
                given.words(recipients, "message", "recipients"),
                given.message(content, "assistant"),
                in_reply_to=given.word(in_reply_to, "message", "in_reply_to"),
                performative=given.word(performative, "message", "performative"),
                attributes=given.attributes(attributes, "message"),
            )
    return ""


def seed(number: int | None = None) -> int:
    """Seed Python's `random`, and record the number with the current run and those that begin later.

    A replay gets the recorded number where none is given here. Call it once, before the program draws anything.

    Args:
        number: the seed; a new one if absent.

    Returns:
        The seed, for other generators.
    """
    used = draw(number)
    with guarded("recording a seed"):
        if run := current_run():
            run.root.set_attributes({name: value for name, value in seeds().items() if value})
    return used


def record_outcome(
    success: bool, reason: str = "", *, expected: Any = None, run: RunBlock | None = None
) -> None:
    """Record whether the run reached its goal; the judge then need not guess.

    Inside a run (in a `run` block, in a node or a tool of an instrumented framework) the outcome is
    written on the root span. After the run, such as after ``graph.invoke()`` has returned, it is
    recorded for the run that ended last in this task, or in this thread where no event loop runs; in an
    ``except`` block, for the run that ended with this error, such as one that `asyncio.wait_for` has
    cancelled; for a run that ended elsewhere only if no other ran at the same time. Use ``run`` or
    ``mast-trace outcome`` for any other run. The last call counts.

    Args:
        success: whether the goal was reached.
        reason: the reason, for people.
        expected: the right answer, where the program knows it, as text or as what JSON can hold. The judge's model is
            told it. The rules for texts apply: it is redacted, cut, or left out as they are.
        run: the block of the run that is meant, ended or not: ``with mast_trace.run("desk") as run:``.
    """
    with guarded("recording an outcome"):
        telemetry = active_telemetry()
        if telemetry is None:
            return
        outcome = _outcome(success)
        if outcome is None:
            return
        if run is not None and not isinstance(run, RunBlock):
            misused("record_outcome", f"run is no block of a run but {type(run).__name__}")
        root: Span | SpanContext | None
        ended_by = None
        if isinstance(run, RunBlock):
            root = run.root
        elif inside := current_run():
            root = inside.root
        else:
            error = sys.exc_info()[1]
            failed = run_of(error)
            root = last_run(failed)
            if failed and root == failed.root.get_span_context() and is_time_limit(error):
                ended_by = semconv.Termination.TIME_LIMIT  # the run was only told to stop
        if root is None:
            logger.warning(
                "mast_trace.record_outcome() does not know which run is meant, nothing is recorded: "
                "call it where the run was, name it by run=, or use `mast-trace outcome`."
            )
            return
        telemetry.outcome(root, outcome, given.text(reason), ended_by, expected)


def _outcome(success: Any) -> str | None:
    """Return an outcome, given as a truth value or as ``success`` or ``failure``; None if it is neither."""
    word = given.text(success).strip().lower() if is_a(success, str) else ""
    if word in {"success", "failure"}:
        return word
    try:
        if success is not None:
            return "success" if success else "failure"
    except Exception:  # noqa: BLE001  # values of the program's own may be neither
        word = type(success).__name__
    problem = f"success is neither true nor false but {word or None}; nothing is recorded"
    misused("record_outcome", problem)
    return None
