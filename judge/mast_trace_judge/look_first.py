"""The places of a failed run to look at first, each with its evidence.

A user whose run is known to have failed does not ask whether, but where. Positions, such as the first
step of an agent or the first mention of the answer, are no evidence and no place: in labelled failures
they are right no more often than one constant step.

The order is: what the verdict calls decisive; a contradiction in the record whose figure stands in the
answer; the contrast with good runs, which alone was tried on runs of the same program before it spoke;
what else contradicts a good end, the earliest first; then by the lower end of the 95 % interval of being
right on natural failures that people have labelled; of equals, those that were tried on such failures and
never right come last, and the others by planted ones.
``measured.json`` has these counts; the file is written by ``benchmarks/judge/evidence.py``, which also
leaves out each sign that does no better than the best constant step on the same runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.intervals import wilson
from mast_trace_judge.local.acts import call_key, failed, first_line
from mast_trace_judge.local.attribution import UNTRAINED
from mast_trace_judge.local.attribution.cascade import (
    FAILS_FROM_HERE,
    answerable,
    before_first_failure,
    fails_from_here,
)
from mast_trace_judge.local.attribution.heirs import NO_HEIRS, Heirs, heirs
from mast_trace_judge.local.attribution.mode_votes import DECIDING, in_error
from mast_trace_judge.local.rules import MOST_EXPLAINED
from mast_trace_judge.local.rules._registry import contradicts_good_end
from mast_trace_judge.local.stated import repairs
from mast_trace_judge.verdict import MOST_PLACES, Basis, CorrectedStep, Evidence, ModeFinding, Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from mast_trace_judge.llm.verification import ModelReading
    from mast_trace_judge.local.layers import LocalFindings

STORED: Final = "measured.json"
"""The file in `mast_trace_judge.local.attribution` with the counts of each sign; part of the judge's version."""
FIRST_FAILURE: Final = "first failed tool run"
_SLIPS: Final = DECIDING | {"1.3"}
"""Modes whose exact finding names the step of a slip; the other exact ones describe how a run ended."""
SLIP: Final = 0.8
"""Probability from which on a rule is sure of a slip in any run, also in one that ended well."""


@dataclass(frozen=True)
class Sign:
    """A reason to look at a step.

    Attributes:
        key: of its counts in ``measured.json``.
        counts: those of a store's own labels in place of these.
        good: the good run, and its step, that show a contrast.
        basis: the kind of evidence.
    """

    key: str
    step: int
    basis: Basis
    why: str
    quotes: tuple[str, ...] = ()
    way: Heirs = NO_HEIRS
    corrected: CorrectedStep | None = None
    contradicts: bool = False
    counts: Counts | None = None
    good: tuple[str, int] = ("", 0)


@dataclass(frozen=True)
class Counts:
    """Counts of a sign: tries, right ones, and whether these are more than the best constant step has."""

    right: int = 0
    cases: int = 0
    planted_right: int = 0
    planted_cases: int = 0
    is_evidence: bool = True

    @property
    def bounds(self) -> tuple[float, float]:
        """The lower ends of the 95 % intervals, on natural failures and on planted ones."""
        natural, planted = (self.right, self.cases), (self.planted_right, self.planted_cases)
        return wilson(*natural)[0], wilson(*planted)[0]


@cache
def measured() -> Mapping[str, Counts]:
    """Return the counts of each sign by its key."""
    text = (files("mast_trace_judge.local.attribution") / STORED).read_text(encoding="utf-8")
    return {key: Counts(**counts) for key, counts in json.loads(text).items()}


def places(
    trajectory: Trajectory, found: LocalFindings, reading: ModelReading | None = None
) -> tuple[Place, ...]:
    """Return up to `MOST_PLACES` places, the best one first; none where nothing contradicts a good end.

    Args:
        trajectory: the run.
        found: what the layers have found, those of a model included.
        reading: the model's, if one has read the run.
    """
    actors = answerable(trajectory.steps)
    signs = [*contradictions(trajectory, found.by_rule, actors)]
    recorded = [*recorded_signs(trajectory, found.by_rule, actors)]
    if _failed(found) or (found.suspect and found.outcome.outcome != "success"):
        signs += recorded
    elif found.outcome.outcome == "success":
        # A slip on which the answer rests may have escaped the check; others were repaired.
        signs += [each for each in recorded if each.way.reaches_answer]
    if _failed(found):
        signs += rule_signs(trajectory, found.by_rule, actors)
        signs += _profile_signs(found)
        signs += _model_signs(reading)
    # A difference alone makes no run suspect.
    if found.contrast is not None and (signs or _failed(found)):
        each, shown = found.contrast, (found.contrast.good_run, found.contrast.good_step)
        signs.append(Sign("contrast", each.step, "contrast", each.why, good=shown))
    decisive = found.attribution.decisive if found.names_a_step else None
    return ranked(trajectory, signs, decisive.step if decisive else None)


def ranked(
    trajectory: Trajectory, signs: Iterable[Sign], decisive: int | None = None
) -> tuple[Place, ...]:
    """Return the best places that signs name, one for each step.

    Args:
        trajectory: the run.
        signs: of its steps; those that are no evidence by their counts are left out.
        decisive: the step that the verdict calls decisive.
    """
    known = measured()
    counted = [(each, each.counts or known.get(each.key, Counts())) for each in signs]
    # A rule may be no evidence by its counts; what the record shows, it shows.
    counted = [each for each in counted if each[0].basis == "record" or each[1].is_evidence]

    def order(one: tuple[Sign, Counts]) -> tuple[object, ...]:
        sign, counts = one
        proven = sign.basis == "record" and sign.way.reaches_answer
        natural, planted = counts.bounds
        ranks = ("record", "rule", "model", "contrast")
        first = sign.step != decisive, not proven, sign.basis != "contrast", not sign.contradicts
        # A model's come in its own order, which `sorted` keeps.
        place = 0 if sign.basis == "model" else sign.step
        # A sign that was tried on natural failures and never right stands behind one that nobody has tried.
        never_right = counts.cases > 0 and counts.right == 0
        return (*first, -natural, never_right, -planted, ranks.index(sign.basis), place)

    best: dict[int, Place] = {}
    for sign, counts in sorted(counted, key=order):
        step = trajectory.steps[sign.step]
        first = best.get(sign.step)
        # The record's own contradiction is told of a step, however often a rule or a model was right, and
        # a rule's rather than that good runs differ there.
        plainer = sign.basis == "record" or (
            sign.contradicts and first and first.basis == "contrast"
        )
        if first is not None and (not plainer or first.basis == "record"):
            fix = first.corrected or sign.corrected
            best[sign.step] = first.model_copy(update={"corrected": fix})
            continue
        best[sign.step] = Place(
            step=sign.step,
            agent=step.agent,
            basis=sign.basis,
            why=sign.why,
            quotes=sign.quotes,
            span_id=step.span_id,
            reaches_answer=sign.way.reaches_answer,
            heirs=sign.way.steps,
            possible_heirs=sign.way.possible,
            right=counts.right,
            cases=counts.cases,
            planted_right=counts.planted_right,
            planted_cases=counts.planted_cases,
            corrected=sign.corrected or (first.corrected if first else None),
            good_run=sign.good[0],
            good_step=sign.good[1],
        )
    told = list(best.values())
    # A model that was asked is heard, however many rules speak, and puts nothing out that the record shows.
    alone = [each for each in told if each.basis != "model"][:MOST_PLACES]
    first_ones = [each.step for each in alone if each.basis in {"record", "contrast"}]
    first_ones += [each.step for each in told if each.basis == "model"][:1]
    kept = list(dict.fromkeys([*first_ones, *best]))[:MOST_PLACES]
    return tuple(each for each in told if each.step in kept)


def recorded_signs(
    trajectory: Trajectory, found: Iterable[tuple[str, ModeFinding]], actors: Collection[int]
) -> Iterator[Sign]:
    """Yield the slips that the record itself shows."""
    for rule, mode in found:
        if mode.evidence is Evidence.EXACT and mode.code in _SLIPS and mode.steps:
            step = in_error(mode, trajectory)
            if step in actors:
                key, way = f"{mode.code} {rule}, exact", heirs(trajectory, step, mode)
                yield Sign(key, step, "record", mode.reason, mode.quotes, way)


def contradictions(
    trajectory: Trajectory, found: Iterable[tuple[str, ModeFinding]], actors: Collection[int]
) -> Iterator[Sign]:
    """Yield what contradicts a good end of the run, by rules that may be wrong.

    So does a wrong figure that stands in the answer or went into it, where its rule is sure of a slip.
    """
    for rule, mode in found:
        if not mode.steps or mode.evidence is not Evidence.HEURISTIC:
            continue
        alone = contradicts_good_end(rule)
        step = mode.steps[-1] if alone else in_error(mode, trajectory)
        if step in actors and (alone or mode.probability >= SLIP):
            way = heirs(trajectory, step, mode)
            if alone or way.reaches_answer:
                key = f"{mode.code} {rule}"
                yield Sign(key, step, "rule", mode.reason, mode.quotes, way, contradicts=True)


def rule_signs(
    trajectory: Trajectory, found: Iterable[tuple[str, ModeFinding]], actors: Sequence[int]
) -> Iterator[Sign]:
    """Yield the signs of rules that may be right or wrong, which their counts tell."""
    steps = unrepaired(trajectory.steps)
    begin = fails_from_here(steps)
    failure = next((step for step in steps if step.kind is StepKind.TOOL and failed(step)), None)
    told = (first_line(failure)[:200],) if failure and first_line(failure) else ()
    if begin is not None and begin in actors:
        yield Sign(
            FAILS_FROM_HERE,
            begin,
            "rule",
            "From here on at least half of the tool runs fail.",
            told,
        )
    asked = before_first_failure(steps, actors)
    if asked is not None and failure is not None and asked in actors:
        repaired = any(
            step.kind is StepKind.TOOL and failed(step)
            for step in trajectory.steps[: failure.index]
        )
        first = (
            "tool run that failed" if failure.error is not None else "result that tells of an error"
        )
        first = f"the first {first}" + " and was not repaired" * repaired
        first += f", of {failure.tool or 'an unnamed tool'}"
        why = f"This is {first}." if asked == failure.index else f"This step came before {first}."
        yield Sign(FIRST_FAILURE, asked, "rule", why, told)
    for rule, mode in found:
        # An explanation of a failure is possible at most as a mode; as a place, its counts speak.
        heuristic = mode.evidence is Evidence.HEURISTIC and mode.probability >= MOST_EXPLAINED
        if heuristic and mode.steps and not contradicts_good_end(rule):
            step = in_error(mode, trajectory)
            if step in actors:
                yield Sign(f"{mode.code} {rule}", step, "rule", mode.reason, mode.quotes)


def unrepaired(steps: Sequence[Step]) -> list[Step]:
    """Return the steps without the failed tool runs that an equal or similar run of the agent's repaired later."""
    good: set[tuple[str, str, str]] = set()
    coming: dict[tuple[str, str], Step] = {}
    kept = []
    for step in reversed(steps):
        if step.kind is StepKind.TOOL and step.tool and step.arguments:
            later = coming.get((step.agent, step.tool))
            if not failed(step):
                good.add(call_key(step))
                coming[step.agent, step.tool] = step
            elif call_key(step) in good or (later is not None and repairs(later, step)):
                continue
        kept.append(step)
    return kept[::-1]


def _profile_signs(found: LocalFindings) -> Iterator[Sign]:
    """Yield the likeliest step of a trained profile that is meant for such runs.

    Where a rule's finding or a model has put a step first, it is not the profile's, and the counts are not of it.
    """
    attribution = found.attribution
    first = next(iter(attribution.candidates), None)
    if first is not None and attribution.calibrated and attribution.profile != UNTRAINED:
        if first.rule.partition(":")[0] in FAILURE_MODES:
            return
        why = f"A profile of such runs finds it likeliest: {first.rule}."
        yield Sign(f"profile {attribution.profile}", first.step, "rule", why)


def _model_signs(reading: ModelReading | None) -> Iterator[Sign]:
    """Yield the steps that a model suggests, likeliest first."""
    # The counts are of the step that the model suggests first.
    counts = Counts(reading.right, reading.cases) if reading else Counts()
    for each in reading.suggestions if reading else ():
        fix = f"Right would have been: {each.minimal_fix}" if each.minimal_fix else ""
        why = " ".join(filter(None, [each.reason, fix]))
        yield Sign(
            "model",
            each.step,
            "model",
            why,
            each.quotes,
            corrected=each.corrected,
            counts=counts,
        )
        counts = Counts()


def _failed(found: LocalFindings) -> bool:
    return found.outcome.outcome == "failure"
