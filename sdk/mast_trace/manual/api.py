"""Runs, agents, tools and messages of hand-made agents.

`run`, `agent` and `tool` work as ``with`` and ``async with`` blocks and as decorators of functions
and coroutine functions. Without `instrument()` they do nothing. An error of the traced block is
recorded and passes through; an error of mast-trace never reaches the block.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, overload

from mast_trace.content import as_text
from mast_trace.manual.blocks import (
    AgentBlock,
    F,
    RunBlock,
    ToolBlock,
    active_telemetry,
    as_message,
)
from mast_trace.spans.ended_runs import last_run
from mast_trace.spans.guard import guarded
from mast_trace.spans.run_state import current_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        input: what the run is asked to do: text, a `Message`, or a list of these.
        conversation_id: what several runs of one dialogue share.
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

    A decorated function that returns text has that recorded as the agent's reply.

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
        arguments: with which it is called: a mapping, or JSON text.
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
    """Record that one agent said something to others.

    Args:
        sender: name of the speaking agent.
        recipients: name or names of those who receive it.
        content: what was said.
        in_reply_to: id of the message that it answers.
        performative: the speech act, where your protocol names one.
        attributes: more attributes.

    Returns:
        The id of the message; empty if nothing is recorded.
    """
    with guarded("recording a message"):
        telemetry = active_telemetry()
        if telemetry is not None:
            return telemetry.message(
                sender,
                [recipients] if isinstance(recipients, str) else list(recipients),
                as_message(content, "assistant"),
                in_reply_to=in_reply_to,
                performative=performative,
                attributes=attributes,
            )
    return ""


def record_outcome(success: bool, reason: str = "") -> None:
    """Say whether the run reached its goal; the judge then need not guess.

    Inside a run (in a `run` block, in a node or a tool of an instrumented framework) it goes on the
    root span. After the run, such as after ``graph.invoke()`` has returned, it goes to the run that
    ended last in this task, or thread where no event loop runs; to one that ended elsewhere only
    if no other ran beside it. For any other run there is ``mast-trace outcome``. The last word
    counts.

    Args:
        success: whether the goal was reached.
        reason: why, for people.
    """
    with guarded("recording an outcome"):
        telemetry = active_telemetry()
        if telemetry is None:
            return
        inside = current_run()
        root = inside.root if inside else last_run()
        if root is None:
            logger.warning(
                "mast_trace.record_outcome() does not know which run is meant, nothing is "
                "recorded: call it where the run was, or use `mast-trace outcome`."
            )
            return
        telemetry.outcome(root, "success" if success else "failure", as_text(reason))
