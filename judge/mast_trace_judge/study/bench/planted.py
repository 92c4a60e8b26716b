"""Labelled sets of planted faults in the benchmark: their parts, and the share of faults that the rules find."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.planted import certain
from mast_trace_judge.study.datasets.injected import is_set, operator_of, read_injected
from mast_trace_judge.verdict import SHOWN_FROM

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from mast_trace_judge.study.datasets.labelled import LabelledRun

REPLAYED = "proved by replay"
PLANTED = "planted faults"
RESERVED = "planted faults of reserved operators"
ENVIRONMENT = "planted faults of the environment"


@dataclass(frozen=True)
class RuleRecall:
    """Planted faults of a failure mode, and those whose mode the rules find.

    Attributes:
        code: of the failure mode.
        runs: with such a fault, failed or not: the fault is in both.
        shown: those in which the rules show the mode.
        possible: those in which they name it at all.
        at_step: those in which a finding of the mode names the planted step.
    """

    code: str
    runs: int
    shown: int
    possible: int
    at_step: int


def planted_runs(folder: Path, *, uncertain: bool = False) -> dict[str, list[LabelledRun]]:
    """Read the failures of a set by part; empty if the folder holds none.

    Operators that the set reserves are a part of their own. So are faults of the environment, for which no agent is to
    blame.

    Args:
        folder: of the set.
        uncertain: whether labels of uncertain operators are read as well.

    Raises:
        ConfigurationError: the set is of another version, or cannot be read.
    """
    if not is_set(folder):
        return {}
    found: dict[str, list[LabelledRun]] = defaultdict(list)
    for held_out in (False, True):
        for run in _read(folder, uncertain=uncertain, held_out=held_out):
            part = (
                REPLAYED
                if run.subset == "replay"
                else ENVIRONMENT
                if not run.modes
                else RESERVED
                if held_out
                else PLANTED
            )
            found[part].append(replace(run, subset=part))
    return dict(found)


def left_out_of(folder: Path) -> Counter[str]:
    """Count the labels of a set that `planted_runs` and `rule_recall` leave out as uncertain, by operator."""
    runs = read_injected(folder, survivors=True) if is_set(folder) else []
    return certain(runs, operator_of)[1]


def rule_recall(folder: Path, *, uncertain: bool = False) -> list[RuleRecall]:
    """Return by failure mode the planted faults that the rules find; the outcome of the runs is known to them.

    Args:
        folder: of the set.
        uncertain: whether labels of uncertain operators are read as well.
    """
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for run in _read(folder, uncertain=uncertain, survivors=True) if is_set(folder) else ():
        for code in run.modes:
            own = [found for found in find_modes(run.trajectory) if found.code == code]
            shown = any(found.probability >= SHOWN_FROM for found in own)
            named = any(run.step in found.steps for found in own)
            seen = (1, shown, bool(own), named)
            counts[code] = [a + b for a, b in zip(counts[code], seen, strict=True)]
    return [RuleRecall(code, *each) for code, each in sorted(counts.items())]


def _read(
    folder: Path, *, uncertain: bool, held_out: bool | None = None, survivors: bool = False
) -> list[LabelledRun]:
    runs = read_injected(folder, held_out=held_out, survivors=survivors)
    return runs if uncertain else certain(runs, operator_of)[0]
