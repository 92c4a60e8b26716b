"""Gives a replayed program the answers of `mast_trace.feedback` that the recorded run was given."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mast_trace.fork_safe import reentrant_lock
from mast_trace.replay.plan_variable import PLAN_VARIABLE
from mast_trace.untrusted_json import read_json


class RecordedLessons:
    """The recorded answers of a run; each is given once.

    Args:
        answers: JSON texts, in the order of the recording.
    """

    def __init__(self, answers: Iterable[str]) -> None:
        self._left = [each for each in map(_read, answers) if each is not None]
        self._lock = reentrant_lock()

    def take(self, key: str) -> dict[str, Any] | None:
        """Return the next answer to a question; None if the run has been given none, or no more.

        Args:
            key: hash of the question.
        """
        with self._lock:
            for place, each in enumerate(self._left):
                if each.get("key") == key:
                    return self._left.pop(place)
        return None


_lock = reentrant_lock()
_in_test: RecordedLessons | None = None
_of_plan: tuple[str, RecordedLessons] | None = None


def recorded_lessons() -> RecordedLessons | None:
    """Return the answers of the run that this process replays; None outside of replays.

    They are read from the plan at the first question, which may come before `mast_trace.instrument`.
    """
    global _of_plan  # noqa: PLW0603  # a process is one replay
    folder = os.environ.get(PLAN_VARIABLE, "")
    with _lock:
        if _in_test is not None or not folder:
            return _in_test
        if _of_plan is None or _of_plan[0] != folder:
            _of_plan = (folder, RecordedLessons(_planned(folder)))
        return _of_plan[1]


@contextmanager
def giving(answers: Iterable[str]) -> Iterator[None]:
    """Give recorded answers in a block of a test, which has no plan."""
    global _in_test  # noqa: PLW0603
    before, own = _in_test, RecordedLessons(answers)
    with _lock:
        _in_test = own
    try:
        yield
    finally:
        with _lock:
            _in_test = before


def _planned(folder: str) -> list[str]:
    """Return the answers of a plan; none of a plan that cannot be read, which `instrument` reports."""
    from mast_trace.replay.program import ReplayFolder

    try:
        plan = json.loads(ReplayFolder(Path(folder)).plan.read_text("utf-8"))
        answers = json.loads(plan["tape"]).get("lessons", [])
        return [each for each in answers if isinstance(each, str)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _read(text: str) -> dict[str, Any] | None:
    try:
        shape = read_json(text)
    except ValueError:  # cut by a limit of the application's own provider
        return None
    return shape if isinstance(shape, dict) else None
