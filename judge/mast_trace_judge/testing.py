"""Assertions for tests of agents, and the pytest plugin with the fixture `judged_run`.

::

    from mast_trace_judge.testing import assert_budget, assert_no_mode, assert_outcome

    def test_the_team_answers(captured_spans):
        my_team.main("What do they owe us?")

        assert_outcome(captured_spans, "success")
        assert_no_mode(captured_spans)
        assert_budget(captured_spans, tokens=20_000, model_seconds=30)

Modes and outcomes are found by the judge's rules: no model is asked. A run is the spans that the fixture
`captured_spans` holds, a replayed run, a trajectory, a case, or the path of a file with one run. The
plugin itself imports pytest alone; the judge is imported when an assertion is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from mast_trace.testing import CapturedSpans
    from mast_trace_judge.gate.assertions import AnyRun
    from mast_trace_judge.gate.case_files import Case


def assert_no_mode(
    run: AnyRun,
    *codes: str,
    at_least: float = 0.5,
    exact_only: bool = False,
    unexamined: Literal["fail", "pass"] = "fail",
) -> None:
    """Assert that a run shows none of these failure modes.

    Args:
        run: the run.
        codes: such as ``"1.3"``; all modes without any.
        at_least: probability from which a mode counts as shown.
        exact_only: whether findings of heuristics are passed over.
        unexamined: what becomes of a named mode that the rules do not look for in this run: nothing shows
            that the run is free of it.

    Raises:
        AssertionError: it shows one; the message quotes the steps. Or the run has no steps.
        ValueError: MAST has no such mode.
    """
    __tracebackhide__ = True
    from mast_trace_judge.gate.assertions import check_modes

    check_modes(run, codes, at_least=at_least, exact_only=exact_only, unexamined=unexamined)


def assert_outcome(run: AnyRun, expected: Literal["success", "failure"] = "success") -> None:
    """Assert how a run ended: as recorded, else by its error, its termination or the rules.

    Raises:
        AssertionError: it ended otherwise, or nothing shows how.
        ValueError: there is no such outcome.
    """
    __tracebackhide__ = True
    from mast_trace_judge.gate.assertions import check_outcome

    check_outcome(run, expected)


def assert_steps(
    run: AnyRun,
    *,
    at_most: int | None = None,
    at_least: int | None = None,
    agents: Collection[str] | None = None,
    tools: Mapping[str, int] | None = None,
    in_order: Sequence[str] | None = None,
) -> None:
    """Assert which steps a run has.

    Args:
        run: the run.
        at_most: number of its steps: messages, tool calls and model actions.
        at_least: likewise.
        agents: all agents that act in it.
        tools: number of calls by tool; others may be called.
        in_order: agents and tools that act one after the other, with others between.

    Raises:
        AssertionError: a condition does not hold; the message has the last steps.
        TypeError: there is no condition.
    """
    __tracebackhide__ = True
    from mast_trace_judge.gate.assertions import check_steps

    check_steps(
        run, at_most=at_most, at_least=at_least, agents=agents, tools=tools, in_order=in_order
    )


def assert_budget(
    run: AnyRun,
    *,
    tokens: int | None = None,
    cost_usd: float | None = None,
    steps: int | None = None,
    model_calls: int | None = None,
    model_seconds: float | None = None,
) -> None:
    """Assert that a run stays within a budget.

    Args:
        run: the run.
        tokens: read and written by models.
        cost_usd: US dollars of its model calls at the prices of their day; needs spans.
        steps: messages, tool calls and model actions.
        model_calls: calls of models.
        model_seconds: seconds that its model calls took together; needs a live run.

    Raises:
        AssertionError: it is over a limit, or there is nothing to measure, such as no tokens or a model
            without a known price.
        TypeError: there is no limit, or it cannot be measured on this form of a run.
    """
    __tracebackhide__ = True
    from mast_trace_judge.gate.assertions import check_budget

    check_budget(
        run,
        tokens=tokens,
        cost_usd=cost_usd,
        steps=steps,
        model_calls=model_calls,
        model_seconds=model_seconds,
    )


def load_case(path: str | Path) -> Case:
    """Read a case that `mast-trace cases add` wrote; see `mast_trace_judge.gate.case_files.Case`.

    Raises:
        ValueError: the file is no case.
        OSError: it cannot be read.
    """
    from mast_trace_judge.gate import case_files

    return case_files.load_case(path)


def load_cases(folder: str | Path = "cases") -> list[Case]:
    """Read all cases of a folder, for `pytest.mark.parametrize`.

    Raises:
        ValueError: the folder has none, so that the tests would not test anything; or a file is no case.
        OSError: one cannot be read.
    """
    from mast_trace_judge.gate import case_files

    found = case_files.load_cases(folder)
    if not found:
        raise ValueError(f"{folder} has no cases: `mast-trace cases add RUN` adds one")
    return found


class JudgedRun:
    """The run of a test, with the assertions as methods."""

    def __init__(self, captured: CapturedSpans) -> None:
        self.captured = captured

    def assert_no_mode(self, *codes: str, **options: Any) -> None:
        """See `assert_no_mode`."""
        __tracebackhide__ = True
        assert_no_mode(self.captured, *codes, **options)

    def assert_outcome(self, expected: Literal["success", "failure"] = "success") -> None:
        """See `assert_outcome`."""
        __tracebackhide__ = True
        assert_outcome(self.captured, expected)

    def assert_steps(self, **conditions: Any) -> None:
        """See `assert_steps`."""
        __tracebackhide__ = True
        assert_steps(self.captured, **conditions)

    def assert_budget(self, **limits: Any) -> None:
        """See `assert_budget`."""
        __tracebackhide__ = True
        assert_budget(self.captured, **limits)


@pytest.fixture
def judged_run(captured_spans: CapturedSpans) -> JudgedRun:
    """Record agent frameworks during the test; the assertions are methods of the result."""
    return JudgedRun(captured_spans)
