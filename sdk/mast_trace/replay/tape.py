"""The tape of a run: its model calls and tool calls with their results, in order of completion.

The calls of a replayed program are answered from it. A tape is plain data, so that it can be written to
a file which another process reads; `mast_trace.replay.recording` makes it from a run's trajectory.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mast_trace.messages import Message, ToolCall
from mast_trace.replay.canonical import Item, request_key
from mast_trace.result_types import value_of

VERSION = 1


@dataclass(frozen=True)
class Exchange:
    """One model call.

    Attributes:
        agent: name of the calling agent; empty if unknown.
        request: the messages shown to the model, in canonical form.
        answer: the model's answer; None if the call failed.
        model: name of the model.
        finish_reason: the provider's reason for the answer's end; empty if not recorded.
        error: text of the error; empty unless the call failed.
        span_id: id of the recorded span.
        branch: path of the parallel branch; empty outside of parallel branches.
        start: nanoseconds since the epoch; 0 if unknown.
        end: likewise.
        parameters: of the request, as ``name=value``; empty if not recorded.
        requested_model: name of the model in the request; empty if not recorded.
        extra: JSON of the parts of the answer beside its text and its tool calls; empty without any.
    """

    agent: str
    request: tuple[Item, ...]
    answer: Message | None
    model: str = ""
    finish_reason: str = ""
    error: str = ""
    span_id: str = ""
    branch: str = ""
    start: int = 0
    end: int = 0
    parameters: tuple[str, ...] = ()
    requested_model: str = ""
    extra: str = ""
    key: str = field(init=False, default="", compare=False)
    """The hash of ``request``."""

    def __post_init__(self) -> None:
        """Compute the key."""
        object.__setattr__(self, "key", request_key(self.request))


@dataclass(frozen=True)
class Execution:
    """One tool call.

    Attributes:
        agent: name of the calling agent; empty if unknown.
        tool: name of the tool.
        arguments: the arguments in canonical form.
        result: the result as text.
        call_id: the model's id of the call; empty if no model requested it.
        error: text of the tool's exception; None if it did not fail.
        span_id: id of the recorded span.
        branch: path of the parallel branch; empty outside of parallel branches.
        result_type: type of the result; empty if not recorded.
        start: nanoseconds since the epoch; 0 if unknown.
        end: likewise.
        parent: id of the recorded span around it; empty if unknown.
    """

    agent: str
    tool: str
    arguments: str
    result: str
    call_id: str = ""
    error: str | None = None
    span_id: str = ""
    branch: str = ""
    result_type: str = ""
    start: int = 0
    end: int = 0
    parent: str = ""

    @property
    def value(self) -> Any:
        """The result as the value that the tool returned; its text if the type was not recorded."""
        return value_of(self.result, self.result_type)


@dataclass(frozen=True)
class Tape:
    """The model calls and tool calls of a recorded run, from which a replay is answered.

    Attributes:
        run: trace id of the recorded run.
        exchanges: model calls, in order of completion.
        executions: tool calls, in order of completion, without hand-offs.
        handing_over: names of the hand-off tools of the run. They are control flow of the framework,
            without side effects outside the process, so a replay executes them.
        inputs: texts that a person typed, in order, each with the id of the span of the tool that
            asked; empty if no tool asked.
        lessons: answers of `mast_trace.feedback`, each as JSON, in order.
        plain_functions: names of what a replay executes: of functions that the program calls by itself when a
            model asks for them, without a span, and of tools whose code stands in a block.
        blocks: the latter alone.
        start: nanoseconds since the epoch at which the run began; None if unknown.
        environment: variables under which the program draws what it drew; see `mast_trace.spans.randomness`.
        masks: pairs of a pattern and a name, see `mast_trace.replay.normalize`.
    """

    run: str
    exchanges: tuple[Exchange, ...] = ()
    executions: tuple[Execution, ...] = ()
    handing_over: tuple[str, ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()
    lessons: tuple[str, ...] = ()
    plain_functions: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    start: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    masks: Sequence[tuple[str, str]] = ()

    def to_json(self) -> str:
        """Return the tape as JSON text."""
        shape = {
            "version": VERSION,
            "run": self.run,
            "exchanges": [_plain(each) for each in self.exchanges],
            "executions": [_plain(each) for each in self.executions],
            "handing_over": self.handing_over,
            "inputs": self.inputs,
            "lessons": self.lessons,
            "plain_functions": self.plain_functions,
            "blocks": self.blocks,
            "start": self.start,
            "environment": self.environment,
            "masks": self.masks,
        }
        return json.dumps(shape, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Tape:
        """Read what `to_json` wrote.

        Raises:
            ValueError: the text is not a tape, or a tape of another version.
        """
        shape = json.loads(text)
        if not isinstance(shape, dict) or shape.get("version") != VERSION:
            raise ValueError(f"The text is not a tape of version {VERSION}.")
        try:
            return cls(
                run=shape["run"],
                exchanges=tuple(_exchange(each) for each in shape["exchanges"]),
                executions=tuple(Execution(**each) for each in shape["executions"]),
                handing_over=tuple(shape["handing_over"]),
                inputs=tuple((text, span) for text, span in shape.get("inputs", ())),
                lessons=tuple(shape.get("lessons", ())),
                plain_functions=tuple(shape.get("plain_functions", ())),
                blocks=tuple(shape.get("blocks", ())),
                start=shape.get("start"),
                environment=shape.get("environment", {}),
                masks=tuple((pattern, name) for pattern, name in shape.get("masks", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"The tape is incomplete: {error}.") from None


def _plain(entry: Exchange | Execution) -> dict[str, Any]:
    shape = dataclasses.asdict(entry)
    shape.pop("key", None)
    return shape


def _exchange(shape: Mapping[str, Any]) -> Exchange:
    answer = shape["answer"]
    if answer is not None:
        calls = tuple(ToolCall(**call) for call in answer["tool_calls"])
        answer = Message(**{**answer, "tool_calls": calls})
    request = tuple(tuple(item) for item in shape["request"])
    parameters = tuple(shape.get("parameters", ()))
    fields = {**shape, "answer": answer, "request": request, "parameters": parameters}
    return Exchange(**fields)
