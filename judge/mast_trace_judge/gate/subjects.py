"""The run that an assertion is about, whatever form a test passes it in."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from mast_trace.replay.run_files import runs_of
from mast_trace.testing import CapturedSpans, ReplayedRun
from mast_trace.trajectory import SpanRecord, Step, StepKind, Trajectory
from mast_trace_judge.gate.case_files import Case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mast_trace_judge.verdict import ModeFinding

_LONGEST: Final = 160
_MOST: Final = 5
_HIDDEN: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that control a terminal, or hide and reorder text."""

AnyRun: TypeAlias = Trajectory | CapturedSpans | ReplayedRun | Case | str | Path
"""The forms of a run: captured or replayed spans with one run, a trajectory, a case, or a file of one run."""


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Return a text on one line of at most so many characters, with control characters as codes."""
    line = re.sub(r"[ \t\r\n]+", " ", text[: 4 * longest]).strip()
    shown = "".join(
        f"<U+{ord(each):04X}>" if unicodedata.category(each) in _HIDDEN else each for each in line
    )
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def step_line(step: Step) -> str:
    """Return a step with its agent, its tool and the beginning of its text."""
    who = one_line(step.agent, 40) or "nobody"
    if step.kind is StepKind.TOOL:
        who = f"{who} called {one_line(step.tool, 40)}({one_line(step.arguments, 80)})"
    said = f" [error: {one_line(step.error, 80)}]" if step.error is not None else ""
    return f"step {step.index}, {who}: {one_line(step.text)!r}{said}"


def evidence_of(run: Trajectory, finding: ModeFinding) -> Iterator[str]:
    """Yield the lines that show a finding: its reason, and its steps with their words."""
    if finding.reason:
        yield f"  {one_line(finding.reason, 300)}"
    texts = {step.index: step for step in run.steps}
    known = [texts[number] for number in finding.steps if number in texts]
    yield from (f"  {step_line(step)}" for step in known[:_MOST])
    if len(known) > _MOST:
        yield f"  and {len(known) - _MOST} more steps"
    told = " ".join(one_line(step.text) for step in known[:_MOST])
    quotes = [quote for each in finding.quotes if (quote := one_line(each)) not in told]
    yield from (f"  quote: {quote!r}" for quote in quotes[:_MOST])


def listed(names: Iterable[str]) -> str:
    """Return names in a row; ``none`` without any."""
    return ", ".join(one_line(name, 60) for name in names) or "none"


@dataclass(frozen=True)
class Subject:
    """One run.

    Attributes:
        run: its steps.
        spans: its spans; None where only the steps are known.
        replayed: whether its models were answered from a record, so that their calls took no time.
    """

    run: Trajectory
    spans: tuple[SpanRecord, ...] | None = None
    replayed: bool = False

    @property
    def title(self) -> str:
        """The name and the beginning of the id, for messages."""
        return f"run {self.run.name or 'without a name'} ({self.run.trace_id[:8]})"


def subject_of(run: AnyRun) -> Subject:
    """Return the run that is meant.

    Raises:
        AssertionError: several runs were recorded, or none.
        TypeError: it is in no form that an assertion reads.
        ValueError: a file holds no run, or several.
        OSError: the file cannot be read.
    """
    if isinstance(run, ReplayedRun):
        return Subject(run.captured.trajectory(), tuple(run.captured.records), replayed=True)
    if isinstance(run, CapturedSpans):
        return Subject(run.trajectory(), tuple(run.records))
    if isinstance(run, Case):
        return Subject(run.trajectory)
    if isinstance(run, Trajectory):
        return Subject(run)
    if isinstance(run, str | Path):
        return Subject(runs_of(run)[-1])
    raise TypeError(
        f"an assertion takes captured spans, a replayed run, a trajectory, a case or a file of one run, "
        f"not {type(run).__name__}"
    )
