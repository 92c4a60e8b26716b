"""Pins all that the local layers say of every run that a folder's tests build.

A test looks at what it is about. Other displayed parts of its runs (probabilities, reasons, steps,
quotes, the blamed agent) are compared with a file beside it, ``findings.golden.json``, so that no
change goes unseen. Where no rule finds anything in a run, the tests of the rules pin that alone; those of
the attribution pin the blamed step. `MAST_TRACE_WRITE_GOLDEN=1 pytest tests/judge/rules tests/judge/attribution`
writes the files anew; read the difference before you commit it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import is_hypothesis_test
from judge.builders import RunBuilder

from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.rules import RULES, find_modes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace.trajectory import Trajectory

NAME = "findings.golden.json"
LONGEST = 60
"""Steps of the longest run that is pinned; longer ones are about speed and memory."""
WRITE = bool(os.environ.get("MAST_TRACE_WRITE_GOLDEN"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Hold what is found in the test's runs against the file in its folder, as a part of the test."""
    if is_hypothesis_test(getattr(item, "obj", None)):  # its runs are others each time
        yield
        return
    built: list[Trajectory] = []
    build = RunBuilder.build

    def remembering(self: RunBuilder) -> Trajectory:
        built.append(build(self))
        return built[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RunBuilder, "build", remembering)
        yield
    blames = item.path.parent.name != "rules"
    found = [told(run, blames=blames) for run in built if len(run.steps) <= LONGEST]
    if not any(found):
        return
    path = item.path.with_name(NAME)
    test = item.nodeid.rpartition("/")[2]
    known: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if WRITE:
        known[test] = found
        text = json.dumps(dict(sorted(known.items())), indent=0, ensure_ascii=True)
        path.write_text(text + "\n", "utf-8")
        return
    assert found == known.get(test), f"{NAME} says something else of this test's runs"


def told(run: Trajectory, *, blames: bool) -> list[str]:
    """A line for each finding of a rule, for each mode after merging, and for the decisive error.

    Args:
        run: the run.
        blames: whether a run without any finding has a line for the decisive error.
    """
    lines = [
        f"{rule.__name__}: {finding.model_dump_json()}" for rule in RULES for finding in rule(run)
    ]
    modes = find_modes(run)
    lines += [f"{mode.code} {mode.probability:.4f} {mode.evidence.value}" for mode in modes]
    if not lines and not blames:
        return []
    found = attribute(run, modes)
    lines += [f"{candidate!r}" for candidate in found.candidates]
    return [*lines, f"abstained: {found.decisive is None}"] if found.candidates else lines
