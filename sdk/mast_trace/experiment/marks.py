"""`mast_trace.using_feedback`: marks runs with their arm and with the lessons that they were given."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextvars import Token
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.content import is_a
from mast_trace.experiment.assignment import NONE, Arm
from mast_trace.spans.calls import EitherWith, restore
from mast_trace.spans.given_lessons import give, with_given
from mast_trace.spans.guard import guarded, misused
from mast_trace.spans.run_state import Given, current_run, with_marks

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from typing_extensions import Self

_TEXTS = ("agent", "mode", "quote", "advice", "evidence", "run")


@dataclass(frozen=True)
class Lesson:
    """One lesson: what went wrong in an earlier run, and what to do.

    Attributes:
        agent: the agent that erred.
        step: index of the step in its run.
        mode: code of the MAST failure mode; empty if none is known.
        quote: words of that step, verified in the run; untrusted text.
        advice: what to do.
        evidence: ``confirmed``, ``labelled`` or ``exact``.
        run: trace id of the run.
    """

    agent: str
    step: int
    mode: str
    quote: str
    advice: str
    evidence: str
    run: str


@dataclass(frozen=True)
class Feedback:
    """Lessons for a run, or nothing.

    Attributes:
        text: to be put into a system prompt as it is; empty if there is nothing to say.
        items: the lessons behind it; none for a placebo.
        id: of the text; empty if there is none.
        version: of the frozen lessons; empty if they are not frozen.
        arm: of the run in its experiment; ``none`` outside of experiments.
        reason: one sentence why there is no text; empty if there is one.
    """

    text: str = ""
    items: tuple[Lesson, ...] = ()
    id: str = ""
    version: str = ""
    arm: Arm | None = None
    reason: str = ""
    # No field: `dataclasses.asdict` of a program's log would hold every text twice.
    _recorded: ClassVar[Given | None] = None

    def __bool__(self) -> bool:
        """Return whether there is something to say."""
        return bool(self.text)

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    @property
    def arm_name(self) -> str:
        """Name of the arm; ``none`` outside of experiments."""
        return NONE if self.arm is None else str(self.arm)


def task_hash(task: str) -> str:
    """Return the hash by which equal tasks are recognised: case and white space do not count."""
    words = " ".join(task.split()).casefold()
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest() if words else ""


def read_answer(answer: Any, *, placebo: bool, budget: int, arm: Arm | None) -> Feedback:
    """Return the lessons in an answer of the web view.

    Raises:
        ValueError: it is none of its answers, or longer than was asked for.
    """
    if not isinstance(answer, dict) or "text" not in answer or "placebo" not in answer:
        raise ValueError("it is no answer of mast-trace")
    text = answer["placebo" if placebo else "text"]
    if not isinstance(text, str) or len(text) > budget:
        raise ValueError("its text is longer than was asked for")
    items = () if placebo else tuple(map(_lesson, answer.get("items") or ()))
    return Feedback(
        text=text,
        items=items if text else (),
        id=_digest(text),
        version=str(answer.get("version") or "")[:64] if text else "",
        arm=arm,
        reason="" if text else str(answer.get("reason") or "There is nothing to say.")[:300],
    )


def recorded_form(found: Feedback) -> Given | None:
    """Return the parts of lessons as they are recorded; None of lessons that were not fetched."""
    return found._recorded  # noqa: SLF001  # its own module


def set_recorded_form(found: Feedback, key: str) -> None:
    """Give lessons the parts by which they are recorded.

    Args:
        found: the lessons.
        key: hash of the question.
    """
    shape = {
        "key": key,
        "text": found.text,
        "items": [asdict(each) for each in found.items],
        "id": found.id,
        "version": found.version,
        "reason": found.reason,
    }
    parts = Given({name: each for name, each in shape.items() if each})
    object.__setattr__(found, "_recorded", parts)


def from_record(shape: Mapping[str, Any], arm: Arm | None) -> Feedback:
    """Return recorded lessons.

    Raises:
        ValueError: a lesson among them has no step.
    """
    return Feedback(
        text=str(shape.get("text", "")),
        items=tuple(map(_lesson, shape.get("items") or ())),
        id=str(shape.get("id", "")),
        version=str(shape.get("version", "")),
        arm=arm,
        reason=str(shape.get("reason", "")),
    )


def _lesson(item: Any) -> Lesson:
    step = item.get("step") if isinstance(item, dict) else None
    if isinstance(step, int):
        return Lesson(step=step, **{name: str(item.get(name, "")) for name in _TEXTS})
    raise ValueError("a lesson in it has no step")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16] if text else ""


class using_feedback(EitherWith):  # noqa: N801  # it reads as the words that it is: with using_feedback(lessons)
    """Marks the runs inside of a block with the lessons that they are given, and with their arm.

    It works as ``with`` and ``async with``. Begin the block before the run, and record the outcome inside of it or
    right after; inside of a run the open run is marked as well.

    Args:
        given: the lessons of `mast_trace.feedback`, or the arm of `mast_trace.assign` where the
            variant is of another kind.
    """

    def __init__(self, given: Feedback | Arm) -> None:
        self._token: Token[Context] | None = None
        self._attributes: dict[str, Any] = {}
        self._given: Given | None = None
        with guarded("marking a run with its lessons"):
            self._given = recorded_form(given) if isinstance(given, Feedback) else None
            self._attributes = _attributes(given)

    def __enter__(self) -> Self:
        with guarded("marking a run with its lessons"):
            run = current_run()
            if run is not None and self._attributes:
                root = (run.outermost or run).root
                if root.is_recording():
                    root.set_attributes(self._attributes)
            if run is not None and self._given is not None:
                give(run.outermost or run, (self._given,))
            marked = with_given(with_marks(self._attributes), self._given)
            self._token = otel_context.attach(marked)
        return self

    def __exit__(self, *_: object) -> None:
        token, self._token = self._token, None
        if token is not None:
            restore(token)


def _attributes(given: Any) -> dict[str, Any]:
    arm, found = None, {}
    if is_a(given, Feedback):
        arm = given.arm
        found = {semconv.FEEDBACK_ID: given.id, semconv.FEEDBACK_VERSION: given.version}
    elif is_a(given, Arm):
        arm = given
    else:
        kind = type(given).__name__
        misused("using_feedback", f"{kind} is neither lessons nor an arm; nothing is marked")
    if arm is not None and arm.task:
        found.update(
            {
                semconv.EXPERIMENT_NAME: arm.experiment,
                semconv.EXPERIMENT_ARM: str(arm),
                semconv.EXPERIMENT_TASK: arm.task,
                semconv.EXPERIMENT_REPETITION: arm.repetition,
                semconv.EXPERIMENT_DESIGN: arm.design,
            }
        )
    return {name: value for name, value in found.items() if value != ""}
