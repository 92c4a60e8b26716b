"""The corrected step of a model judge: the step itself, not a description of the change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from mast_trace.messages import parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

WRITTEN_FROM: Final = 3
"""Version of the prompt from which on a model writes the corrected step itself."""
_LONGEST: Final = 8000
"""Characters beyond which a corrected step is not taken: a part of it would be another step."""


class CorrectedCall(BaseModel):
    """A tool call of a corrected step; ``arguments`` are a JSON object as text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    arguments: str


class CorrectedStep(BaseModel):
    """A step as a model would have it.

    Attributes:
        prompt: version of the prompt that the model has answered.
        text: the step's text; empty for one of tool calls alone.
        tool_calls: tool calls of the step.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: int
    text: str = ""
    tool_calls: tuple[CorrectedCall, ...] = ()

    @property
    def is_answer(self) -> bool:
        """True if it can stand in place of a recorded answer."""
        named = all(
            each.name.strip() and isinstance(parsed(each.arguments), dict)
            for each in self.tool_calls
        )
        size = len(self.text) + sum(
            len(each.name) + len(each.arguments) for each in self.tool_calls
        )
        something = bool(self.text.strip() or self.tool_calls)
        return self.prompt >= WRITTEN_FROM and named and something and size <= _LONGEST


def as_fix(text: str, calls: Sequence[CorrectedCall]) -> str:
    """Return an answer of text and calls in the form in which people give fixes."""
    listed = [{"name": each.name, "arguments": parsed(each.arguments)} for each in calls]
    return json.dumps({"text": text, "tool_calls": listed}, ensure_ascii=False)


def packed(description: str, corrected: CorrectedStep | None) -> str:
    """Return a description and a corrected step as the text of one column, each in a line of its own."""
    return f"{description}\n{corrected.model_dump_json()}" if corrected else description


def unpacked(stored: str) -> tuple[str, CorrectedStep | None]:
    """Return description and corrected step of a column; None in verdicts of earlier versions."""
    description, line, rest = stored.rpartition("\n")
    try:
        return (description, CorrectedStep.model_validate_json(rest)) if line else (stored, None)
    except ValidationError:
        return stored, None
