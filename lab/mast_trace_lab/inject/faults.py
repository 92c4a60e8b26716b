"""Faults that can be planted in a run, in an order that a seed decides."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from mast_trace.content import content_hash
from mast_trace.exceptions import ConfigurationError
from mast_trace.replay.canonical import canonical_text
from mast_trace.replay.recording import tape_of
from mast_trace_judge.decision_points import decision_points
from mast_trace_lab.inject.operators import OPERATORS, Operator
from mast_trace_lab.inject.sites import (
    Change,
    RecordedAnswer,
    RecordedResult,
    answers_of,
    results_of,
)
from mast_trace_lab.replay.changes import NotAnArm, intervention_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace.replay.tape import Tape
    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_lab.inject.phrasings import Phrasings


SEEDS: Final = 8
"""Seeds that are tried for the wanted number of faults; one seed makes at most one change of a kind at a site."""


@dataclass(frozen=True)
class Fault:
    """One fault, planted in one run.

    Attributes:
        run: trace id of the successful run.
        operator: name of the operator.
        change: the change.
        agent: the agent of the changed step; for a tool's result the agent that called the tool.
        kept_until: step of the model answer up to which the restored run is kept.
    """

    run: str
    operator: str
    change: Change
    agent: str
    kept_until: int

    @property
    def id(self) -> str:
        """The fault's id: equal for equal changes of the same run."""
        shape = self.change.to_plain()
        del shape["phrasing"], shape["phrased_by"]
        return content_hash(f"{self.run} {self.operator} {sorted(shape.items())}")

    @property
    def mode(self) -> str:
        """Code of the failure mode; empty for a fault of the environment."""
        return OPERATORS[self.operator].mode


def faults_of(
    run: Trajectory,
    seed: int,
    only: Sequence[str] = (),
    passed: Mapping[str, int] | None = None,
    phrasings: Phrasings | None = None,
    live_tools: Sequence[str] = (),
) -> Iterator[Fault]:
    """Yield the faults that can be planted in a run, operator by operator in turn.

    Args:
        run: a successful run.
        seed: decides sites, numbers and phrasings; with equal runs it gives equal faults.
        only: names of operators, or codes of failure modes; all if empty.
        passed: number of faults by operator that other runs have given already; those with the fewest
            come first.
        phrasings: sentences of a model; the rules' alone if None.
        live_tools: names of tools that replays may execute; ``*`` for all.

    Raises:
        NotReplayable: the record lacks data that a replay needs.
        ConfigurationError: there is no such operator.
    """
    tape = tape_of(run, live_tools=live_tools)
    passed = passed or {}
    waiting = {
        operator.name: list(_planted(run, tape, operator, seed, phrasings))
        for operator in chosen(only)
    }
    order = sorted(waiting, key=lambda name: (passed.get(name, 0), _drawn(seed, name).random()))
    seen: set[str] = set()
    while any(waiting.values()):
        for name in order:
            while waiting[name]:
                fault = waiting[name].pop()
                if fault.id not in seen:
                    seen.add(fault.id)
                    yield fault
                    break


def most_faults_of(
    run: Trajectory,
    seed: int,
    count: int,
    only: Sequence[str] = (),
    passed: Mapping[str, int] | None = None,
    phrasings: Phrasings | None = None,
    live_tools: Sequence[str] = (),
) -> tuple[Fault, ...]:
    """Return so many faults of a run, those of the next seeds where one seed has too few.

    Args:
        run: a successful run.
        seed: the first seed.
        count: most faults.
        only: see `faults_of`.
        passed: likewise.
        phrasings: likewise.
        live_tools: likewise.

    Raises:
        NotReplayable: the record lacks data that a replay needs.
        ConfigurationError: there is no such operator.
    """
    found: dict[str, Fault] = {}
    for number in range(SEEDS):
        for fault in faults_of(run, seed + number, only, passed, phrasings, live_tools):
            if len(found) == count:
                break
            found.setdefault(fault.id, fault)
    return tuple(found.values())


def chosen(only: Sequence[str]) -> list[Operator[RecordedAnswer] | Operator[RecordedResult]]:
    """Return the operators of some names or failure modes; all for none.

    Raises:
        ConfigurationError: there is no such operator.
    """
    known = {name for each in OPERATORS.values() for name in (each.name, each.mode) if name}
    if unknown := sorted(set(only) - known):
        names = ", ".join(OPERATORS)
        raise ConfigurationError(f"there is no operator {', '.join(unknown)}; there are {names}")
    return [each for each in OPERATORS.values() if not only or {each.name, each.mode} & set(only)]


def _planted(
    run: Trajectory,
    tape: Tape,
    operator: Operator[RecordedAnswer] | Operator[RecordedResult],
    seed: int,
    phrasings: Phrasings | None,
) -> Iterator[Fault]:
    sites = results_of(run) if operator.level == "result" else answers_of(run)
    rng = _drawn(seed, f"{_content_of(run)} {operator.name}")
    for site in rng.sample(sites, len(sites)):
        change = operator.plant(site, rng)  # type: ignore[arg-type]  # the level decides the site
        if change is None:
            continue
        if phrasings is not None and isinstance(site, RecordedAnswer):
            # A generator of its own: sites and numbers are those of the rules.
            chosen_by = _drawn(seed, f"{_content_of(run)} {operator.name} {change.step} phrasing")
            change = phrasings.applied(change, operator.name, site, chosen_by)
        try:
            intervention_of(run, tape, change.arm)
        except NotAnArm:  # it changes nothing, or its step has no replayable call
            continue
        step = run.steps[change.step]
        agent = site.agent if isinstance(site, RecordedAnswer) else step.requested_by or step.agent
        kept = change.step if isinstance(site, RecordedAnswer) else _asked_before(run, step)
        if kept is not None:
            yield Fault(run.trace_id, operator.name, change, agent, kept)


def _asked_before(run: Trajectory, step: Step) -> int | None:
    """Return the step of the last model answer before a tool's result; None if there is none.

    The tool call with its recorded arguments is answered from the tape after it, as it was recorded.
    """
    ended = {call.span_id for call in run.invocations if call.end <= step.start}
    before = [point.step for point in decision_points(run) if point.span_id in ended]
    return before[-1] if before else None


def _content_of(run: Trajectory) -> str:
    """Return a text that is equal for runs in which the same happened: ids and times of recordings differ."""
    return canonical_text("\n".join(f"{step.agent} {step.tool} {step.text}" for step in run.steps))


def _drawn(seed: int, what: str) -> Random:
    # Python's own hash of a text differs between processes.
    return Random(f"{seed} {what}")  # noqa: S311  # no secret
