"""Operators that change a tool's result: faults of the environment, and of a checking tool."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mast_trace_lab.inject.changes import Change
from mast_trace_lab.inject.operators.operator import Operator
from mast_trace_lab.inject.operators.texts import with_number_changed

if TYPE_CHECKING:
    from random import Random

    from mast_trace_lab.inject.sites import Result

_ERRORS: Final = (
    "ConnectionError: the service is unavailable",
    "PermissionError: access denied",
    "ValueError: unexpected format of the response",
)
_TIMEOUTS: Final = ("TimeoutError: no answer within 30 s", "TimeoutError: the request timed out")
_EMPTY: Final = ("", "[]", "No results.")
_FAILED: Final = re.compile(r"\b(fail\w*|false|wrong|invalid|mismatch|error)\b", re.IGNORECASE)
_PASSED: Final = ("passed", "ok: all checks passed", "true")


def _error(site: Result, rng: Random) -> Change | None:
    number = rng.randrange(len(_ERRORS))
    return Change(site.step.index, "result", error=_ERRORS[number], phrasing=number)


def _timeout(site: Result, rng: Random) -> Change | None:
    number = rng.randrange(len(_TIMEOUTS))
    return Change(site.step.index, "result", error=_TIMEOUTS[number], phrasing=number)


def _stale(site: Result, rng: Random) -> Change | None:  # noqa: ARG001  # nothing is chosen
    return Change(site.step.index, "result", site.earlier) if site.earlier else None


def _empty(site: Result, rng: Random) -> Change | None:
    number = rng.randrange(len(_EMPTY))
    if site.step.text == _EMPTY[number]:
        return None
    return Change(site.step.index, "result", _EMPTY[number], phrasing=number)


def _wrong(site: Result, rng: Random) -> Change | None:
    text = with_number_changed(site.step.text, rng)
    return None if text is None else Change(site.step.index, "result", text)


def _passes(site: Result, rng: Random) -> Change | None:
    if not _FAILED.search(site.step.text):
        return None
    number = rng.randrange(len(_PASSED))
    return Change(site.step.index, "result", _PASSED[number], phrasing=number)


_SEEN: Final = "The recorded result was another one."

RESULTS: Final = (
    Operator("tool-error", "A tool raises an exception.", _SEEN, _error,
             applies="Every tool result, hand-overs excluded."),
    Operator("tool-timeout", "A tool does not answer in time.", _SEEN, _timeout,
             applies="Every tool result, hand-overs excluded."),
    Operator("tool-stale", "A tool returns its earlier result.", _SEEN, _stale,
             applies="The tool has returned another result before."),
    Operator("tool-empty", "A tool returns nothing.", _SEEN, _empty,
             applies="A tool result that is not empty."),
    Operator("tool-wrong", "A tool returns a wrong number.", _SEEN, _wrong,
             applies="The result holds a number."),
    Operator("tool-passes", "A check passes that had failed.", _SEEN, _passes,
             applies="The result says that something failed or is wrong."),
)  # fmt: skip
"""Operators at the level of tool results. Nobody of the agents is to blame for them."""
