"""Tool calls of a judge's correction, compared with those that the run has made.

A record can hold words that steer its judge, and replays run without anybody who is asked: no such words
may choose a tool that the run never had, nor the arguments with which a tool is executed.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from mast_trace.messages import parsed
from mast_trace.replay.executions import plain_name
from mast_trace.trajectory import StepKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace.messages import ToolCall
    from mast_trace.trajectory import Step, Trajectory

_LONGEST_NAME = 60


class KnownCalls:
    """The tool calls of a run.

    Names count in the form in which frameworks send them to models. A model may know a tool by another
    name than the one under which the call is recorded; ids of calls tell which belong together.

    Args:
        recorded: the run.
        live_tools: names of tools that may be executed; ``*`` for all.
    """

    def __init__(self, recorded: Trajectory, live_tools: Iterable[str] = ()) -> None:
        self._live = {name if name == "*" else plain_name(name) for name in live_tools}
        self._tools: dict[str, set[str]] = defaultdict(set)
        self._made: Counter[tuple[str, str]] = Counter()
        self._asked: Counter[tuple[str, str]] = Counter()
        by_id: dict[str, list[Step]] = defaultdict(list)
        for step in recorded.steps:
            if step.kind is StepKind.TOOL and step.tool:
                self._tools[plain_name(step.tool)].add(plain_name(step.tool))
                self._made[_form(step.tool, step.arguments)] += 1
                by_id[step.call_id].append(step)
        outputs = {call.output_id for call in recorded.invocations if call.kind == "model"}
        answers = [recorded.texts[identity] for identity in outputs if identity in recorded.texts]
        for asked in (call for answer in answers for call in answer.tool_calls):
            made = by_id.get(asked.id or "", []) if asked.id else []
            self._tools[plain_name(asked.name)].update(plain_name(step.tool) for step in made)
            self._asked[_form(asked.name, asked.arguments)] += bool(made)

    def objection(self, calls: Sequence[ToolCall], kept: Sequence[ToolCall] = ()) -> str:
        """Return the reason why calls cannot stand in an answer; empty if they can.

        Args:
            calls: all calls of the corrected answer.
            kept: the calls of the recorded answer, which may stay as they are.
        """
        forms = Counter(_form(call.name, call.arguments) for call in calls)
        stay = Counter(_form(call.name, call.arguments) for call in kept)
        names = {plain_name(call.name): call.name[:_LONGEST_NAME] for call in calls}
        for (name, arguments), count in forms.items():
            if count <= stay[name, arguments]:
                continue
            if name not in self._tools:
                return f"It calls {names[name]!r}, a tool that the run has not."
            if self._is_live(name) and count > self._times(name, arguments):
                return (
                    f"It calls {names[name]!r}, which may be executed, with arguments that are not "
                    "those of a call of the run, or more often than the run did."
                )
        return ""

    def _is_live(self, name: str) -> bool:
        """Return whether a call may execute a tool, also if it is unknown which one."""
        tools = self._tools[name]
        return bool(self._live) and (not tools or bool(self._live & {"*", name, *tools}))

    def _times(self, name: str, arguments: str) -> int:
        made = [self._made[tool, arguments] for tool in {name, *self._tools[name]}]
        return max(self._asked[name, arguments], *made)


def _form(name: str, arguments: Any) -> tuple[str, str]:
    """Return name and arguments of a call; another time or id makes another call, unlike in replays."""
    given = json.dumps(parsed(arguments) or {}, sort_keys=True, default=str)
    return plain_name(name), given
