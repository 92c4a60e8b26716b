"""`mast_trace.using_feedback`: marks runs with their arm and with the lessons that they were given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.content import is_a
from mast_trace.experiment.assignment import Arm
from mast_trace.experiment.given import Feedback, recorded_form
from mast_trace.spans.calls import restore
from mast_trace.spans.given_lessons import give, with_given
from mast_trace.spans.guard import guarded, misused
from mast_trace.spans.run_marks import with_marks
from mast_trace.spans.run_state import current_run

if TYPE_CHECKING:
    from contextvars import Token
    from types import TracebackType

    from opentelemetry.context import Context
    from typing_extensions import Self

    from mast_trace.spans.given_answer import Given


class using_feedback:  # noqa: N801  # it reads as the words that it is: with using_feedback(lessons)
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        token, self._token = self._token, None
        if token is not None:
            restore(token)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


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
