"""The schemas of a model's answers, one for each question, and a lenient reader of them.

Every field of a schema stands after those that it follows from, because a model writes an answer in that
order. Agents are never asked for: they are derived from the step. A real model's answer is seldom what a
schema asks for, so whatever cannot be read costs no more than the point that it stands in. Numbers have no
bounds in the schema, because some servers refuse a schema that has them.
"""

from __future__ import annotations

import contextlib
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from mast_trace.exceptions import VerdictUnreadable
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.trajectory.vocabulary import loaded
from mast_trace.untrusted_json import well_formed_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

A = TypeVar("A", bound=BaseModel)

_THOUGHTS = re.compile(r"(?:<think(?:ing)?>|\A).*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder()
_DENIED = re.compile(r"\b(?:no|not|never|without|neither|nor|un\w+)\b|n't")
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?|(?<![\w.])\.\d+)(?:e-\d+)?", re.IGNORECASE)
_RATIO = re.compile(r"\D*(\d{1,9}(?:\.\d{1,9})?)\s*(?:/|out of)\s*([1-9]\d{0,8})", re.IGNORECASE)
_STEPS = re.compile(r"(?:steps?|and|[\s,;#\[\]-]|\d+)+", re.IGNORECASE)
_STEP = re.compile(r"step|index|\bid\b", re.IGNORECASE)
_QUOTE = re.compile(r"quote|text|passage", re.IGNORECASE)
_NOTHING = {"", "null", "none", "n/a", "-"}
_OTHER_NAMES = {"id": "step", "index": "step", "step_id": "step", "quote": "quotes"}
_DEEPEST = 8
"""Depth to which an answer is sought in objects around it."""

Code = Literal[
    "1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "3.1", "3.2", "3.3"
]
if get_args(Code) != tuple(FAILURE_MODES):  # a Literal cannot be computed
    raise AssertionError("the codes that may be answered are not those of the taxonomy")


def parse_answer(text: str, shape: type[A], *, repair: bool = True) -> A:
    """Return the last JSON object in the text that has at least half of the schema's fields, else two.

    The last one counts, because a model that repeats parts of the run does so before its answer. Text that is
    no JSON is repaired: trailing commas, comments, single quotes, raw line breaks.

    Args:
        text: of the answer.
        shape: that it should have.
        repair: whether text that is no JSON is repaired.

    Raises:
        VerdictUnreadable: there is none; the text has the fault of the last object.
    """
    said = _THOUGHTS.sub("", text)
    problem = "there is no complete JSON object in the answer"
    half = -(-len(shape.model_fields) // 2)
    whole, mended = [*_objects(said)], [*_repaired(said)] if repair else []
    # An answer that was cut is no short one: it is asked for again.
    for least, values in ((half, whole), (half, mended), (min(half, 2), whole)):
        for value in reversed(values):
            if len(_plain_names(value).keys() & shape.model_fields.keys()) < least:
                continue
            try:
                return shape.model_validate(value)
            except ValidationError as error:
                if problem.startswith("there is no"):
                    problem = _explain(error)
    raise VerdictUnreadable(problem)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Find the JSON objects of a text, in order; those inside of others stand before them."""
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield from _nested(well_formed_values(value))
        at = text.find("{", end)


def _repaired(text: str) -> Iterator[dict[str, Any]]:
    """Find the objects of a text after its JSON was repaired."""
    import json_repair  # in the extra `judge`: without a model no answer is read

    at = text.find("{")
    try:
        value = json_repair.loads(text[at:], skip_json_loads=True) if at >= 0 else None
    except (ValueError, RecursionError):
        return
    yield from _nested(well_formed_values(value))


def _nested(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the objects in a value, and those that texts hold, as arguments of a tool call do."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = loaded(value)
    if isinstance(value, dict) and _is_schema(value):
        return
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner if depth < _DEEPEST else ():
        yield from _nested(each, depth + 1)
    if isinstance(value, dict):
        yield value


def _is_schema(value: dict[str, Any]) -> bool:
    """Return whether an object describes answers, as an echo of the question does, and is none itself."""
    fields = value.get("properties")
    return isinstance(fields, dict) and all(isinstance(each, dict) for each in fields.values())


def _explain(error: ValidationError) -> str:
    problems = [
        f"{'.'.join(map(str, problem['loc'])) or 'the object'}: {problem['msg']}"
        for problem in error.errors(include_input=False, include_url=False, include_context=False)
    ]
    return "; ".join(problems[:5])


def _plain_names(value: dict[str, Any]) -> dict[str, Any]:
    """Read "Minimal fix", "minimal-fix" and "minimalFix" as minimal_fix."""
    apart = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)): each for name, each in value.items()}
    return {re.sub(r"\W+", "_", name).strip("_").lower(): each for name, each in apart.items()}


def _number(value: Any) -> Any:
    """Read "[5]", [5], {"step": 5}, "step 5" and 5.0 as 5; a word for nothing is none."""
    if isinstance(value, dict):
        value = [each for name, each in value.items() if _STEP.search(str(name))]
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    if isinstance(value, str):
        found = _NUMBER.search(value)
        value = float(found[0]) if found else None if value.strip().lower() in _NOTHING else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _share(value: Any) -> float:
    """Read "85%", 85, "0.85", "0,85" and "17/20" as 0.85; other numbers are none."""
    if isinstance(value, str) and (ratio := _RATIO.match(value)):
        value = f"{100 * float(ratio[1]) / int(ratio[2])}%"
    number = _number(value.replace(",", ".") if isinstance(value, str) else value)
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        percent = "%" in str(value) or 1 < number <= 100
        share = number / 100 if percent else float(number)
        if 0.0 <= share <= 1.0:
            return share
    raise ValueError("a probability is a number from 0 to 1")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _texts(value: Any, depth: int = 0) -> list[str]:
    """Read one text, several, also in lists of lists, or objects that hold them, such as {"step": 5, "quote": "..."}."""
    if isinstance(value, dict):
        value = [text for name, text in value.items() if _QUOTE.search(str(name))] or _text(value)
    if isinstance(value, list) and depth < _DEEPEST:
        return [text for each in value for text in _texts(each, depth + 1)]
    text = _text(value)
    return [text] if text else []


def _yes(value: Any) -> Any:
    return (
        str(value).strip().lower() in {"true", "yes", "1"} if not isinstance(value, bool) else value
    )


def _word(value: Any, *, of: tuple[str, ...]) -> Any:
    """Read a word by its beginning, in any case: "FAILED" and "The run failed" are "failure", "cutoff" is "cut off"."""
    said = str(value).strip().lower()
    joined = re.sub(r"[\s_-]+", "", "nothing" if value and said in _NOTHING else said)
    begins = [each for each in of if joined.startswith(each.replace(" ", "")[:4])]
    # In a sentence one word has to stand alone: "not a success" and "a success at first, then it failed" are neither.
    inside = [] if _DENIED.search(said) else [each for each in of if f" {each[:4]}" in said]
    return next(iter(begins or (inside if len(inside) == 1 else [])), value)


def _code(value: Any) -> Any:
    """Read "2.3 Task derailment" and "task derailment" as 2.3."""
    said = str(value).strip().lower()
    found = re.search(r"\b[123]\.\d\b", said)
    named = (mode.code for mode in FAILURE_MODES.values() if _letters(mode.name) in _letters(said))
    return found[0] if found else next(named, value)


def _letters(text: str) -> str:
    return re.sub(r"[\W\d_]+", "", text.lower())


def _readable(value: Any, *, of: Any) -> list[Any]:
    """Return the items of a list that can be read.

    One alone counts as a list, and so do "3, 5", {"2.3": {...}}, {"errors": [...]} and a list in JSON.
    """
    if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"}:
        value = loaded(value) or value
    if isinstance(value, dict) and len(value) == 1:
        (only,) = value.values()
        value = only if isinstance(only, list) else value
    if of is Step and isinstance(value, str) and _STEPS.fullmatch(value):
        value = re.findall(r"\d+", value)
    elif (
        isinstance(value, dict) and value and all(isinstance(each, dict) for each in value.values())
    ):
        value = [{"code": name, "step": name} | each for name, each in value.items()]
    kept = []
    for each in value if isinstance(value, list) else [] if value is None else [value]:
        with contextlib.suppress(ValidationError):
            kept.append(TypeAdapter(of).validate_python(each))
    return kept


Step = Annotated[int, BeforeValidator(_number)]
OptionalStep = Annotated[int | None, BeforeValidator(_number)]
Probability = Annotated[float, BeforeValidator(_share)]
Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[list[str], BeforeValidator(_texts)]
Yes = Annotated[bool, BeforeValidator(_yes)]


class ModelAnswer(BaseModel):
    """The base of all answers; fields that a schema does not have are left out."""

    model_config = ConfigDict(extra="ignore")
    _alone: ClassVar[tuple[str, ...]] = ()
    """Fields that a text or a number alone stands for."""

    @model_validator(mode="wrap")
    @classmethod
    def _leniently(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """A field that cannot be read is as good as left out."""
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, (str, int, float)):
            value = dict.fromkeys(cls._alone, value) or value
        if not isinstance(value, dict):
            return handler(value)
        value = _plain_names(value)
        value = {
            other: value[name] for name, other in _OTHER_NAMES.items() if name in value
        } | value
        try:
            return handler(value)
        except ValidationError as error:
            unread = {problem["loc"][0] for problem in error.errors() if problem["loc"]}
            return handler({name: each for name, each in value.items() if name not in unread})


class NotedError(ModelAnswer):
    """An error at a step."""

    step: Step
    what: Text = ""
    right: Text = ""
    inherited_from: OptionalStep = None
    harmless: Yes = False
    quotes: Texts = []


class DecisiveStep(ModelAnswer):
    """The earliest step whose correction alone would have brought success, or why there is none."""

    _alone = ("step", "reason")
    reason: Text = ""
    quotes: Texts = []
    kind: Annotated[
        Literal["single", "several", "cut off", "nothing"],
        BeforeValidator(partial(_word, of=("single", "several", "cut off", "nothing"))),
    ] = "single"
    step: OptionalStep = None
    minimal_fix: Text = ""

    @property
    def as_errors(self) -> list[NotedError]:
        """The step as an error, if there is one."""
        if self.step is None:
            return []
        return [
            NotedError(step=self.step, what=self.reason, right=self.minimal_fix, quotes=self.quotes)
        ]


class MappedMode(ModelAnswer):
    """A failure mode of the taxonomy that the run shows."""

    _alone = ("code", "reason")
    steps: Annotated[list[Step], BeforeValidator(partial(_readable, of=Step))] = []
    quotes: Texts = []
    reason: Text = ""
    harmless: Yes = False
    code: Annotated[Code, BeforeValidator(_code)]
    probability: Probability = 0.5


class Reading(ModelAnswer):
    """A reader's account of the whole run.

    Attributes:
        marks: those of the beginning and the end of what the reader was shown; None from one that leaves them out.
    """

    marks: Text | None = None
    solution: Text = ""
    errors: Annotated[list[NotedError], BeforeValidator(partial(_readable, of=NotedError))] = []
    outcome: Annotated[
        Literal["success", "failure", "unclear"],
        BeforeValidator(partial(_word, of=("success", "failure", "unclear"))),
    ] = "unclear"
    failure_probability: Probability = 0.5
    decisive: DecisiveStep = DecisiveStep()
    ranking: Annotated[list[Step], BeforeValidator(partial(_readable, of=Step))] = []
    confidence: Probability = 0.5
    modes: Annotated[list[MappedMode], BeforeValidator(partial(_readable, of=MappedMode))] = []


class SegmentNotes(ModelAnswer):
    """A reader's notes on a part of a long run."""

    summary: Text
    errors: Annotated[list[NotedError], BeforeValidator(partial(_readable, of=NotedError))] = []


class WrittenCall(ModelAnswer):
    """A tool call as it should have been; ``arguments`` are a JSON object as text."""

    name: Text
    arguments: Text = "{}"


class Correction(ModelAnswer):
    """A step as it should have been."""

    reason: Text = ""
    minimal_fix: Text = ""
    uses_only_earlier_information: Yes = False
    corrected_text: Text = ""
    corrected_calls: Annotated[
        list[WrittenCall], BeforeValidator(partial(_readable, of=WrittenCall))
    ] = []


def json_schema(shape: type[ModelAnswer]) -> dict[str, Any]:
    """Return the JSON schema of an answer in the subset that strict servers accept.

    References are written out; titles, descriptions and defaults are left away; every object is closed, and
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
        told = {
            key: (
                {name: plain(field) for name, field in item.items()}
                if key == "properties"
                else plain(item)
            )
            for key, item in value.items()
            if key not in {"title", "description", "default"}
        }
        if "properties" in told:
            told |= {"required": list(told["properties"]), "additionalProperties": False}
        return told

    return dict(plain(schema))
