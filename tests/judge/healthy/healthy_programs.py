"""The register of healthy programs, and the tool calls that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mast_trace.manual.blocks

if TYPE_CHECKING:
    from collections.abc import Callable

Agent = mast_trace.manual.blocks.AgentBlock
say = mast_trace.message

PROGRAMS: dict[str, Callable[[], None]] = {}
"""Every program, by its name."""


def program(function: Callable[[], None]) -> Callable[[], None]:
    """Enter a program."""
    PROGRAMS[function.__name__] = function
    return function


def asked(run: str, task: str, name: str) -> Callable[[Callable[[Agent], None]], None]:
    """Enter a program of one agent: the function is its turn in a run of this name and task."""

    def enter(turn: Callable[[Agent], None]) -> None:
        def whole() -> None:
            with mast_trace.run(run, input=task), mast_trace.agent(name) as agent:
                turn(agent)

        PROGRAMS[turn.__name__] = whole

    return enter


def call(name: str, result: Any, /, **arguments: Any) -> Any:
    """Make a tool call that returns the result."""
    with mast_trace.tool(name, arguments) as made:
        made.result(result)
    return result


def fails(name: str, error: Exception, /, **arguments: Any) -> None:
    """Make a tool call that fails, and go on."""
    try:
        with mast_trace.tool(name, arguments):
            raise error
    except type(error):
        pass
