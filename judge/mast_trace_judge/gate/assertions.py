"""Assertions on a run's failure modes, outcome and steps; each failure quotes the run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.trajectory import StepKind
from mast_trace_judge.gate.subjects import evidence_of, listed, one_line, step_line, subject_of
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.verdict import SHOWN_FROM, Evidence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.gate.subjects import AnyRun, Subject
    from mast_trace_judge.verdict import ModeFinding

_LAST = 3


def check_modes(
    run: AnyRun,
    codes: Sequence[str],
    *,
    at_least: float = SHOWN_FROM,
    exact_only: bool = False,
    unexamined: Literal["fail", "pass"] = "fail",
) -> None:
    """Assert that a run shows none of these failure modes; see `mast_trace_judge.testing.assert_no_mode`."""
    __tracebackhide__ = True
    unknown = [code for code in codes if code not in FAILURE_MODES]
    if unknown:
        raise ValueError(f"MAST has no failure mode {listed(unknown)}: {', '.join(FAILURE_MODES)}")
    subject = _with_steps(run)
    found = judge_by_rules(subject.run)
    wanted = set(codes or FAILURE_MODES)
    shown = [
        mode
        for mode in found.modes
        if mode.code in wanted
        and mode.probability >= at_least
        and (mode.evidence is Evidence.EXACT or not exact_only)
    ]
    if shown:
        raise AssertionError("\n".join(_about_modes(subject, shown)))
    left = [code for code in codes if code not in found.examined]
    if left and unexamined == "fail":
        named = listed(f"{code} {FAILURE_MODES[code].name}" for code in left)
        raise AssertionError(
            f"{subject.title} was not examined for {named}, so nothing shows that it is free of them: "
            "the rules look for some modes only in runs that have ended, or are known to have failed. "
            "Leave these out, or pass unexamined='pass'."
        )


def _about_modes(subject: Subject, shown: Sequence[ModeFinding]) -> Iterator[str]:
    count = "a failure mode" if len(shown) == 1 else f"{len(shown)} failure modes"
    yield f"{subject.title} shows {count}:"
    for mode in shown:
        yield f"{mode.code} {FAILURE_MODES[mode.code].name} ({mode.evidence.value})"
        yield from evidence_of(subject.run, mode)


def check_outcome(run: AnyRun, expected: str) -> None:
    """Assert how a run ended; see `mast_trace_judge.testing.assert_outcome`."""
    __tracebackhide__ = True
    if expected not in {"success", "failure"}:
        raise ValueError(f"an outcome is success or failure, not {expected!r}")
    subject = subject_of(run)
    found = judge_by_rules(subject.run).outcome
    if found.outcome == expected:
        return
    if not found.known:
        raise AssertionError(
            f"{subject.title} has no known outcome, not {expected}: the program recorded none, and it "
            f"ended without an error. mast_trace.record_outcome() records one.\n{_ending(subject.run)}"
        )
    because = {
        "recorded": subject.run.outcome_reason and f": {one_line(subject.run.outcome_reason, 300)}",
        "error": f": {one_line(subject.run.error or '', 300)}",
        "termination": f": {one_line(subject.run.termination_reason, 80)}",
    }.get(found.source, "")
    raise AssertionError(
        f"{subject.title} ended in {found.outcome}, not {expected} ({found.source}{because})\n"
        f"{_ending(subject.run)}"
    )


def check_steps(
    run: AnyRun,
    *,
    at_most: int | None = None,
    at_least: int | None = None,
    agents: Collection[str] | None = None,
    tools: Mapping[str, int] | None = None,
    in_order: Sequence[str] | None = None,
) -> None:
    """Assert which steps a run has; see `mast_trace_judge.testing.assert_steps`."""
    __tracebackhide__ = True
    conditions = (at_most, at_least, agents, tools, in_order)
    if all(each is None for each in conditions):
        raise TypeError(
            "assert_steps needs a condition: at_most, at_least, agents, tools or in_order"
        )
    subject = subject_of(run)
    steps = subject.run.steps
    problems = []
    if at_most is not None and len(steps) > at_most:
        problems.append(f"it has {len(steps)} steps, more than {at_most}")
    if at_least is not None and len(steps) < at_least:
        problems.append(f"it has {len(steps)} steps, fewer than {at_least}")
    if agents is not None and set(agents) != set(subject.run.agents):
        problems.append(f"its agents are {listed(subject.run.agents)}, not {listed(agents)}")
    called = Counter(step.tool for step in steps if step.kind is StepKind.TOOL)
    for tool, times in (tools or {}).items():
        if called[tool] != times:
            known = listed(f"{name} {count}x" for name, count in called.items())
            problems.append(
                f"tool {one_line(tool, 60)} was called {called[tool]} times, not {times} (called: {known})"
            )
    missing = _first_missing(steps, in_order or ())
    if missing is not None:
        problems.append(
            f"no step of {one_line(missing[0], 60)} follows"
            + (f" step {missing[1]}" if missing[1] >= 0 else "")
        )
    if problems:
        raise AssertionError(f"{subject.title}: {'; '.join(problems)}\n{_ending(subject.run)}")


def _first_missing(steps: Sequence[Step], names: Sequence[str]) -> tuple[str, int] | None:
    """Return the first agent or tool that does not follow in order, and the step before; None if all do."""
    place = -1
    for name in names:
        following = (s.index for s in steps if s.index > place and name in {s.agent, s.tool})
        found = next(following, None)
        if found is None:
            return name, place
        place = found
    return None


def _with_steps(run: AnyRun) -> Subject:
    __tracebackhide__ = True
    subject = subject_of(run)
    if not subject.run.steps:
        raise AssertionError(
            f"{subject.title} has no steps, so nothing was judged: no message, tool call or model call "
            "was recorded"
        )
    return subject


def _ending(run: Trajectory) -> str:
    """Return the last steps of a run, for messages."""
    return "\n".join(f"  {step_line(step)}" for step in run.steps[-_LAST:]) or "  no steps"
