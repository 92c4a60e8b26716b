"""Parses a model's answer as JSON of a known schema, with any text around it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from mast_trace.exceptions import VerdictUnreadable
from mast_trace.untrusted_json import well_formed_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_judge.llm.answers import ModelAnswer

A = TypeVar("A", bound="ModelAnswer")

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder()


def parse_answer(text: str, shape: type[A]) -> A:
    """Return the last JSON object in the text that fits the schema.

    The last one counts, because a model that repeats parts of the run does so before its answer.

    Raises:
        VerdictUnreadable: there is none; the text has the fault of the last object.
    """
    problem = "there is no complete JSON object in the answer"
    for value in reversed(list(_objects(_THOUGHTS.sub("", text)))):
        try:
            return shape.model_validate(value)
        except ValidationError as error:
            if problem.startswith("there is no"):
                problem = _explain(error)
    raise VerdictUnreadable(problem)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Find the outermost JSON objects of a text, in order."""
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
            value = well_formed_values(value)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = text.find("{", end)


def _explain(error: ValidationError) -> str:
    problems = [
        f"{'.'.join(map(str, problem['loc'])) or 'the object'}: {problem['msg']}"
        for problem in error.errors(include_input=False, include_url=False, include_context=False)
    ]
    return "; ".join(problems[:5])
