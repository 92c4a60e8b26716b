"""The conclusion of an experiment: a word, a sentence, and the numbers behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_judge.replay.confirmation import Confirmation, SuccessRate
from mast_trace_judge.replay.statistics.intervals import wilson
from mast_trace_judge.replay.statistics.location import likely

if TYPE_CHECKING:
    from mast_trace_judge.replay.confirmation import ConfirmationStatus
    from mast_trace_judge.replay.statistics.comparison import Comparison
    from mast_trace_judge.replay.statistics.experiment import Experiment
    from mast_trace_judge.replay.statistics.location import Location

DOUBT: Final = 0.1
"""Probability of an earlier origin from which on it is not excluded."""

_EARLIER = "an earlier, repairable error is not excluded"


@dataclass(frozen=True)
class Finding:
    """A conclusion without its numbers.

    Attributes:
        status: the word.
        text: one sentence.
        origin: position of the proved origin, None without one.
        point: position of the point of no return, None if not located.
        step: step of the proved fix, which may be a tool's; None for that of the origin.
    """

    status: ConfirmationStatus
    text: str
    origin: int | None = None
    point: int | None = None
    step: int | None = None


def conclude(experiment: Experiment) -> Confirmation:
    """Return what an experiment has shown so far."""
    plan, results = experiment.plan, [result for _, result in experiment.results]
    location = experiment.location() if plan.length else None
    found = _find(experiment, location)
    costs = [each.cost_usd for each in results]
    points = plan.points
    origin = None if found.origin is None else points[found.origin]
    point = None if found.point is None else points[found.point]
    step = None if origin is None else origin.step
    return Confirmation(
        status=found.status,
        text=found.text,
        origin=step if found.step is None else found.step,
        origin_agent=origin.agent if origin else "",
        point_of_no_return=point.step if point else None,
        point_agent=point.agent if point else "",
        curve=_curve(experiment),
        contrasts=tuple(
            each.contrast()
            for each in sorted(experiment.comparisons, key=lambda each: each.position)
            if each.pairs
        ),
        likely=_likely(experiment, location),
        refuted=tuple(points[each].step for each in refuted(experiment, location)),
        plan_id=experiment.plan_id,
        planned_contrasts=plan.planned + plan.spent,
        replays=len(results),
        live_calls=experiment.calls,
        cost_usd=None if None in costs else experiment.cost,
    )


def _curve(experiment: Experiment) -> tuple[SuccessRate, ...]:
    points = experiment.plan.points
    found = []
    for position, (successes, runs) in sorted(experiment.counts.items()):
        low, high = wilson(successes, runs)
        step = points[position].step if position >= 0 else -1
        found.append(SuccessRate(step=step, successes=successes, runs=runs, low=low, high=high))
    return tuple(found)


def _likely(experiment: Experiment, location: Location | None) -> tuple[tuple[int, float], ...]:
    if location is None or not experiment.counts:
        return ()
    points = experiment.plan.points
    members = likely(dict(enumerate(location.origins)))
    return tuple((points[position].step, value) for position, value in members)


def refuted(experiment: Experiment, location: Location | None) -> tuple[int, ...]:
    """Return the positions of the judge's candidates, and of tested fixes, that made no difference."""
    if location is None or not experiment.counts:
        return ()
    found = set()
    for position in experiment.plan.candidates:
        chance = location.origins[position] + location.points[position]
        if chance <= 0.01 and location.kinds.systematic < 0.05:
            found.add(position)
    for each in experiment.comparisons:
        same = [other for other in experiment.comparisons if other.position == each.position]
        if all(other.state in {"abandoned", "exhausted"} for other in same):
            found.add(each.position)
    return tuple(sorted(found))


def _find(experiment: Experiment, location: Location | None) -> Finding:
    early = _before_the_search(experiment)
    if early is not None or location is None:
        return early or Finding("inconclusive", "the run holds no model answer")
    proved = [each for each in experiment.comparisons if each.proved]
    if proved:
        return _proved(experiment, location, min(proved, key=lambda each: each.position))
    if location.kinds.systematic >= 0.8:
        return Finding(
            "systematic",
            f"the program fails from the start ({_rate(experiment, -1)} replays of the whole program "
            "succeeded); no tested fix helps",
        )
    if location.kinds.diffuse + location.kinds.none >= 0.8:
        return Finding("diffuse", "success declines without a single step that explains it")
    point = _point(location)
    judged = experiment.plan.candidates
    top = max(judged, key=lambda each: judged[each], default=None)
    if top is not None and top in refuted(experiment, location):
        name = _name(experiment, top)
        return Finding(
            "refuted", f"{name} makes no difference; no other step is proved", point=point
        )
    text = "no fix is proved"
    if point is not None:
        text = (
            f"last missed chance {_name(experiment, point)}; the origin is not proved: {_EARLIER}"
        )
    return Finding("inconclusive", text, point=point)


def _before_the_search(experiment: Experiment) -> Finding | None:
    if experiment.not_isolated:
        return Finding("not isolated", experiment.not_isolated)
    if not experiment.results:
        return Finding("untested", "")
    by_phase: dict[str, list[bool | None]] = {}
    reasons: dict[str, str] = {}
    for trial, result in experiment.results:
        by_phase.setdefault(trial.phase, []).append(result.success)
        if result.success is None:
            reasons.setdefault(trial.phase, f"{result.status}: {result.reason}")
    for phase in ("verify", "score"):
        found = by_phase.get(phase, [])
        if any(found):
            said = "the oracle does not judge the recorded answer alike"
            if phase == "verify":
                said = "a replay that changes nothing succeeds, while the recorded run failed"
            return Finding("unstable", f"{said}: {found.count(True)} of {len(found)} succeeded")
        if None in found:
            said = "the recorded answer could not be scored"
            if phase == "verify":
                said = "a replay that changes nothing has no outcome"
            return Finding("inconclusive", f"{said} ({reasons[phase]})")
    return None


def _proved(experiment: Experiment, location: Location, best: Comparison) -> Finding:
    name = _name(experiment, best.position, best.step)
    helped = f"a fix succeeds in {best.successes[0]}, the recorded step in {best.successes[1]} of {best.pairs}"
    if best.deterministic:
        helped += ", deterministic: proved for these answers of the model only"
    if location.kinds.systematic >= 0.5:
        start = f"the program fails from the start ({_rate(experiment, -1)} succeeded)"
        text = f"{start}; {name}: {helped}"
        return Finding("systematic", text, origin=best.position, step=best.step)
    point = _point(location)
    earlier = sum(location.origins[: best.position])
    if earlier > DOUBT:
        text = f"{name}: {helped}; {_EARLIER}"
        return Finding("inconclusive", text, point=point)
    if point is not None and point > best.position:
        text = f"origin {name}; last missed chance {_name(experiment, point)}; {helped}"
        return Finding("repairable", text, best.position, point, best.step)
    return Finding("confirmed", f"origin {name}: {helped}", best.position, point, best.step)


def _point(location: Location) -> int | None:
    """Return the position of the point of no return if it is located."""
    best = max(range(location.length), key=lambda each: location.points[each])
    return best if location.points[best] >= 0.8 else None


def _name(experiment: Experiment, position: int, step: int | None = None) -> str:
    point = experiment.plan.points[position]
    number = point.step if step is None else step
    return f"step {number} ({point.agent})" if point.agent else f"step {number}"


def _rate(experiment: Experiment, position: int) -> str:
    successes, runs = experiment.counts.get(position, (0, 0))
    return f"{successes} of {runs}"
