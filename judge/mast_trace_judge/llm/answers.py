"""The schemas of a model's answers, one for each question.

Numbers have no bounds in the schema, because some servers refuse a schema that has them; they are
checked afterwards. Agents are never asked for: they are derived from the step.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from mast_trace.exceptions import VerdictUnreadable
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.untrusted_json import well_formed_values

if TYPE_CHECKING:
    from collections.abc import Iterator

A = TypeVar("A", bound="ModelAnswer")

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder()

Code = Literal[
    "1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "3.1", "3.2", "3.3"
]


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


if get_args(Code) != tuple(FAILURE_MODES):  # a Literal cannot be computed
    raise AssertionError("the codes that may be answered are not those of the taxonomy")


def _between_0_and_1(value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError("a probability is a number from 0 to 1")
    return value


Probability = Annotated[float, AfterValidator(_between_0_and_1)]


class ModelAnswer(BaseModel):
    """The base of all answers: every field is required and no other is allowed."""

    model_config = ConfigDict(extra="forbid")


class FailurePoint(ModelAnswer):
    """An error at a step."""

    step: int
    what: str
    caused_by: int | None
    repaired_at: int | None
    severity: Literal["minor", "major", "decisive"]
    quotes: list[str]


class Reading(ModelAnswer):
    """A reader's account of the whole run, before it knows of any taxonomy."""

    outcome: Literal["success", "failure", "unclear"]
    failure_probability: Probability
    reason: str
    points: list[FailurePoint]


class SegmentNotes(ModelAnswer):
    """A reader's notes on a part of a long run."""

    summary: str
    points: list[FailurePoint]


class WrittenCall(ModelAnswer):
    """A tool call as it should have been; ``arguments`` are a JSON object as text."""

    name: str
    arguments: str


class Counterfactual(ModelAnswer):
    """The likely course of the run if one step had been right."""

    minimal_fix: str
    uses_only_earlier_information: bool
    flip_probability: Probability
    earlier_cause: int | None
    reason: str
    corrected_text: str
    corrected_calls: list[WrittenCall]


class MappedMode(ModelAnswer):
    """A failure mode of the taxonomy that follows from the points."""

    code: Code
    probability: Probability
    steps: list[int]
    reason: str
    quotes: list[str]


class Mapping(ModelAnswer):
    """All failure modes that follow from the points."""

    modes: list[MappedMode]


def json_schema(shape: type[ModelAnswer]) -> dict[str, Any]:
    """Return the JSON schema of an answer in the subset that strict servers accept.

    References are written out and titles and descriptions left away; every object is closed and
    all of its properties are required.
    """
    schema = shape.model_json_schema()
    definitions = schema.pop("$defs", {})

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return plain(definitions[value["$ref"].rpartition("/")[2]])
        return {
            key: (
                {name: plain(field) for name, field in item.items()}
                if key == "properties"
                else plain(item)
            )
            for key, item in value.items()
            if key not in {"title", "description"}
        }

    return dict(plain(schema))
