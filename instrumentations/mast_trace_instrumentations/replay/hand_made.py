"""Answers calls of functions that are decorated with `mast_trace.tool`."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

from mast_trace.manual.answered import answer_by
from mast_trace.replay.player import Blocked
from mast_trace.spans import current_agent
from mast_trace_instrumentations.replay.tools import ToolFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace.replay.player import Player
    from mast_trace.replay.tape import Execution


class HandMadeTools:
    """Answers calls of tools that are functions decorated with `mast_trace.tool`."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def start(self) -> None:
        """Start to answer calls."""
        answer_by(self)

    def stop(self) -> None:
        """Stop answering calls."""
        answer_by(None)

    def answered(self, name: str, arguments: Mapping[str, Any], function: Any) -> tuple[Any] | None:
        """Return the recorded value of a call in a tuple; None if the function is to run.

        Raises:
            Blocked: the run has no such call, or the type of its value is unknown.
            ToolFailed: the recorded call raised an exception.
        """
        recorded = self._player.execution(name, arguments, "", current_agent() or "")
        if recorded is None:
            return None
        self._player.tool_order.wait(recorded)
        return (self._value(recorded, name, function),)

    async def answered_async(
        self, name: str, arguments: Mapping[str, Any], function: Any
    ) -> tuple[Any] | None:
        """Return the recorded value of a call of a coroutine function likewise."""
        recorded = self._player.execution(name, arguments, "", current_agent() or "")
        if recorded is None:
            return None
        await self._player.tool_order.wait_async(recorded)
        return (self._value(recorded, name, function),)

    def _value(self, recorded: Execution, name: str, function: Any) -> Any:
        if recorded.error is not None:
            raise ToolFailed(recorded.error)
        if recorded.result_type:
            return recorded.value
        return self._untyped(name, recorded.result, function)

    def runs(self, name: str, arguments: Any) -> None:
        """Take a call off the tape whose code runs for real, as that of a block."""
        self._player.steer(name, arguments, "")

    def _untyped(self, name: str, text: str, function: Any) -> Any:
        returned = inspect.signature(function).return_annotation
        if returned in {str, "str"}:
            return text
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if returned is inspect.Signature.empty and not isinstance(value, str):
            divergence = self._player.refuse(
                f"The record does not say whether {name} returned a string or the value that it "
                "spells in JSON; annotate its return type: `-> str`, `-> float`, ..."
            )
            raise Blocked(divergence.text)
        return value
