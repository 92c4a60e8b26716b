"""Faults that scripted agents commit on every framework, and what must be found of them.

Every test runs twice: once with the fault, and once as its clean twin, the same program without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mast_trace.trajectory import Step, Trajectory

STOCK = "Stock of item 7: 4711 pieces"
"""The result of the tool `stock_level` in every program."""
FAILED_TEST = "the total is wrong"
"""The error of the tool `run_tests` in every program."""
CODE = "Here it is:\n```python\ndef add(a, b):\n    total = a + b\n    return total\n```\n"
"""An artefact."""

POSSIBLE = frozenset({"1.4", "2.1", "2.4", "2.5", "2.6", "3.2"})
"""Modes of which some faults are heuristic: asked anew, kept back, left out of a prompt, a call spoken of, no check."""

twins = pytest.mark.parametrize("faulty", [True, False], ids=["fault", "twin"])


def check(
    trajectory: Trajectory,
    code: str,
    faulty: bool,
    *,
    quoted: str = "",
    tools: Iterable[str] = (),
    follows: Iterable[str] = (),
    anyway: Iterable[str] = (),
) -> None:
    """Assert that rules find a fault where it was planted, and that nothing else is exact anywhere.

    The run with the fault has failed. Nobody says how the twin ended, and no mode is shown of it, not
    even as a possible one, and no step is called decisive.

    Args:
        trajectory: of the run.
        code: the failure mode of the fault.
        faulty: whether this run has it, or is the clean twin.
        quoted: a part of the text that shows the fault.
        tools: of the steps that the finding names.
        follows: further modes that the fault entails.
        anyway: modes that the twin shows as well.
    """
    judged = replace(trajectory, outcome="failure") if faulty else trajectory
    found = exact(judged)
    if faulty:
        possible = POSSIBLE & {code, *follows}
        found = {each.code: each for each in find_modes(judged) if each.code in possible} | found
    expected = {*anyway, *([code, *follows] if faulty else ())}
    assert set(found) == expected, [found[extra].reason for extra in set(found) - expected]
    if not faulty:
        untold = judge_by_rules(trajectory)
        told = [(mode.code, mode.probability, mode.reason) for mode in untold.modes]
        assert [each for each in told if each[0] not in anyway] == []
        assert not untold.names_a_step
    if faulty:
        assert quoted in "\n".join(found[code].quotes)
        if tools:
            assert [trajectory.steps[step].tool for step in found[code].steps] == list(tools)


def exact(trajectory: Trajectory) -> dict[str, ModeFinding]:
    """Return the exact findings by mode, after checking that each shows its evidence."""
    modes = find_modes(trajectory)
    for mode in modes:
        texts = [trajectory.steps[step].text for step in mode.steps]
        assert all(any(quote in text for text in texts) for quote in mode.quotes)
    return {mode.code: mode for mode in modes if mode.evidence is Evidence.EXACT}


def blamed(trajectory: Trajectory) -> Step:
    """Return the step that is the likeliest decisive one of the run, which has failed."""
    failed = replace(trajectory, outcome="failure")
    return trajectory.steps[attribute(failed, find_modes(failed)).candidates[0].step]
