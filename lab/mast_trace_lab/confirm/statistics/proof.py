"""The results of an experiment so far, and what is asked next: the search and the proof.

The search replays what keeps a part of the run, at positions that tell most about the location. The proof takes pairs of
fix and keep at the likely steps, earliest first.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from mast_trace_lab.confirm.statistics.location import Location, likely
from mast_trace_lab.program.budget import ReplayTrial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_judge.arms import ArmResult, Fix, ReplayArm
    from mast_trace_lab.confirm.statistics.cells import Count
    from mast_trace_lab.confirm.statistics.comparison import Comparison
    from mast_trace_lab.confirm.statistics.plan import Part, Plan

SEARCH: Final = frozenset({"start", "screening"})
"""Phases of the search."""

LIVE: Final = SEARCH | {"pairs"}
"""Phases in which a part of the program runs live."""

CENSORED: Final = 8
"""Live replays in a row without an outcome after which an experiment ends.

If only every second replay had an outcome, eight in a row without one would come by chance in 0.4 %."""

REPEATS: Final = 6
"""Repeated replays that must all be alike before a program counts as deterministic.

Outcomes of a program that succeeds half of the time are alike by chance in 3 % (twice 0.5 to the 6th); their calls and
answers have to be alike as well."""


class ExperimentState:
    """The state of an experiment.

    Attributes:
        plan: everything that was fixed before the first replay.
        results: told results with what had been asked, in order.
        counts: successes and runs by position, -1 for the start; censored replays are left out.
        comparisons: fixes that were tested, those of earlier plans first.
    """

    def __init__(self, plan: Plan) -> None:
        """Start without results; comparisons of earlier plans go on."""
        self.plan = plan
        self.results: list[tuple[ReplayTrial, ArmResult]] = []
        self.counts: dict[int, Count] = {}
        self.comparisons: list[Comparison] = plan.earlier_comparisons()
        self._location: tuple[dict[int, Count], Location] | None = None

    def count(self, position: int, result: ArmResult) -> None:
        """Add a replay that kept everything up to and including a position."""
        if result.success is not None:
            successes, runs = self.counts.get(position, (0, 0))
            self.counts[position] = (successes + result.success, runs + 1)

    def runs(self, *phases: str) -> int:
        """Return the number of results of some phases."""
        return sum(trial.phase in phases for trial, _ in self.results)

    @property
    def searched(self) -> int:
        """Number of replays of the search, with those of its share that the proof has taken."""
        lent = self.runs("pairs") - self.plan.limits.pair_runs
        return self.runs(*SEARCH) + max(0, lent)

    def outcomes(self, phase: str) -> list[bool | None]:
        """Return the outcomes of a phase, in order."""
        return [result.success for trial, result in self.results if trial.phase == phase]

    @property
    def deterministic(self) -> bool:
        """True if replays of the same arm never differed in live calls, answer and outcome.

        A program counts as deterministic only after `REPEATS` such replays.
        """
        seen: dict[ReplayArm, tuple[str, str, bool | None]] = {}
        repeats = 0
        for trial, result in self.results:
            if trial.phase in LIVE:
                found = (result.calls_hash, result.answer, result.success)
                if result.success is None or seen.setdefault(trial.arm, found) != found:
                    return False
                if result.live_calls and not result.calls_hash:
                    return False
                repeats += 1
        return repeats - len(seen) >= REPEATS

    @property
    def without_outcome(self) -> str:
        """The reason why the last `CENSORED` live replays had no outcome; empty if one had."""
        live = [result for trial, result in self.results if trial.phase in LIVE][-CENSORED:]
        if len(live) < CENSORED or any(each.success is not None for each in live):
            return ""
        return f"{live[-1].status} {live[-1].reason}".strip()

    @property
    def falls_once(self) -> bool:
        """True if no replay succeeded at or after a position at which one failed."""
        failed = [each for each, (hits, runs) in self.counts.items() if hits < runs]
        succeeded = [each for each, (hits, _) in self.counts.items() if hits]
        return not failed or not succeeded or max(succeeded) < min(failed)

    def proved(self) -> list[Comparison]:
        """Return the comparisons that prove a fix."""
        known = self.deterministic
        return [each for each in self.comparisons if each.proved(deterministic=known)]

    @property
    def calls(self) -> int:
        """Live model calls so far."""
        return sum(result.live_calls for _, result in self.results)

    @property
    def search_calls(self) -> int:
        """Live model calls of the search so far."""
        return sum(result.live_calls for trial, result in self.results if trial.phase in SEARCH)

    @property
    def cost(self) -> float:
        """Known cost of live calls so far, in dollars."""
        return sum(result.cost_usd or 0.0 for _, result in self.results)

    @property
    def location(self) -> Location:
        """The posterior of the location; replays of pairs count, too.

        The search may use them: the proof holds for any rule by which fixes are chosen.
        """
        if self._location is None or self._location[0] != self.counts:
            self._location = (dict(self.counts), Location(self.plan.location, self.counts))
        return self._location[1]


LOCATED: Final = 0.97
"""Probability of an origin, or of a way of failing, at which the search ends."""

LEAST: Final = 0.001
"""Information of a replay, in nats, below which the search ends."""

START_COST: Final = 0.5
"""Cost of starting the program, in live calls for each decision of the run: the number of replays is
limited, too."""

SHORT: Final = 7
"""Decisions below which the failure may have cut the run short, so that a replay that succeeds needs more of them."""


def live_calls(evidence: ExperimentState, position: int) -> int:
    """Return the live model calls of a replay that keeps everything up to and including a position."""
    return evidence.plan.length - 1 - position


def _longest(evidence: ExperimentState) -> int:
    """Return the live model calls of a whole way where the run may not have gone it; 0 for those recorded."""
    return SHORT if evidence.plan.length < SHORT else 0


def measure(
    evidence: ExperimentState, position: int, runs: int, phase: str
) -> Iterator[tuple[ReplayTrial, ...]]:
    """Ask for replays that keep everything up to and including a position, and count them."""
    calls, longest = live_calls(evidence, position), _longest(evidence)
    trial = ReplayTrial(evidence.plan.keep(position), phase, calls=calls, longest=longest)
    before = len(evidence.results)
    if runs:
        yield (trial,) * runs
    for _, result in evidence.results[before:]:
        evidence.count(position, result)


def search(evidence: ExperimentState, *, points: bool = False) -> Iterator[tuple[ReplayTrial, ...]]:
    """Ask for replays until the origin is located, or the share of the search is used up.

    Args:
        evidence: of the experiment.
        points: whether the point of no return is searched instead.
    """
    limits = evidence.plan.limits
    while not _settled(evidence, points) and (position := _best(evidence, points)) is not None:
        if evidence.without_outcome:
            return
        if evidence.searched + limits.batch > limits.screening_runs:
            return
        if limits.search_calls is not None and evidence.search_calls >= limits.search_calls:
            return
        yield from measure(evidence, position, limits.batch, "screening")


def _settled(evidence: ExperimentState, points: bool) -> bool:
    location = evidence.location
    kinds = location.kinds
    best = max(location.points if points else location.origins)
    return max(kinds.systematic, kinds.diffuse, kinds.none, best) >= LOCATED


def _best(evidence: ExperimentState, points: bool) -> int | None:
    location = evidence.location
    length = location.length
    told = {each: location.information(each, points=points) for each in _worth_measuring(evidence)}
    best = max(told, key=lambda each: told[each] / (length - 1 - each + START_COST * length))
    return best if told[best] >= LEAST else None


def _worth_measuring(evidence: ExperimentState) -> set[int]:
    """Return the measured positions, and the ends and the middle of the gaps between them.

    The middle divides the probability of a fall in the gap.
    """
    location, length = evidence.location, evidence.plan.length
    chances = [*map(max, location.origins, location.points)]
    edges = sorted({-1, length - 1, *evidence.counts})
    found = set(edges)
    for low, high in pairwise(edges):
        gap = range(low + 1, high)
        if gap:
            half, held = sum(chances[low + 1 : high + 1]) / 2, 0.0
            found |= {gap[0], gap[-1]}
            for position in gap:
                held += chances[position]
                if held >= half:
                    found.add(position)
                    break
    return found


DOUBT: Final = 0.05
"""Probability of an earlier origin from which on it is not excluded: the 5 % that the word "confirmed" promises."""

LIKELY: Final = 0.5
"""Probability of an origin from which a proved fix at the step makes it the origin: likelier than all other steps together."""

HOPELESS: Final = 0.08
"""Expected success rate before a step below which its answer is not drawn again.

Replays with a new answer of the model succeed as often as those that keep everything before the step: at this rate far less than
`EFFECT` more often than those that keep it.
"""

DOUBTS: Final = 5
"""Further positions that are measured before a deterministic program is believed.

Five outcomes can fall in 32 ways, and in 6 of them once along the run, as those of a deterministic program do: outcomes that share
one draw, by a cache or a fixed seed, are found out in four cases of five.
"""

NEAR: Final = 0.5
"""Share of the best step's probability that an earlier one needs to be tried before it."""

JOINT: Final = 10
"""Pairs that single fixes leave for a joint one where a program fails from the start.

A joint fix that wins each of five pairs has an e-value of 273, enough where up to twelve fixes are planned; ten leave it some
that it does not win.
"""

FEWEST: Final = 2
"""Parts of a joint fix; of those, each alone has failed."""

_PAIR: Final = 2
"""Replays of a pair."""


def prove(evidence: ExperimentState, seed: int) -> Iterator[tuple[ReplayTrial, ...]]:
    """Ask for pairs, and for further replays of the search between the steps.

    Args:
        evidence: of the experiment.
        seed: decides which replay of a pair comes first.
    """
    tested: list[int] = []
    while True:
        yield from search(evidence)
        position = _next(evidence, tested)
        if position is None:
            break
        tested.append(position)
        for comparison in _comparisons(evidence, position):
            yield from _pairs(evidence, comparison, seed)
            if comparison in evidence.proved():
                break
    single = bool(evidence.proved())
    if not single:
        yield from _together(evidence, tested, seed)
    if evidence.proved() and evidence.deterministic:
        yield from _doubt(evidence)
    if single:
        yield from search(evidence, points=True)


def useful(evidence: ExperimentState, position: int) -> list[tuple[int, Fix]]:
    """Return steps and fixes of a position that may help.

    Asking the same model again succeeds as often as replays that keep everything before the step: it is
    left out where these fail.
    """
    fixes = evidence.plan.fixes.get(position, [])
    if position < 0:
        return fixes
    if evidence.location.rate(position - 1) >= HOPELESS:
        return fixes
    return [(step, fix) for step, fix in fixes if fix.source != "resample"]


def chances(evidence: ExperimentState) -> dict[int, float]:
    """Return the probability by position that a fix there helps; of positions that have one.

    Where the program fails from the start, replays say nothing of the location: the judge decides, unless
    a tool was called before any model, whose result the whole program depends on.
    """
    location, weights = evidence.location, evidence.plan.location.weights
    systematic = location.kinds.systematic
    return {
        each: systematic if each < 0 else location.origins[each] + systematic * weights[each]
        for each in evidence.plan.fixes
        if useful(evidence, each)
    }


def earlier_chance(evidence: ExperimentState, position: int) -> float:
    """Return the probability that success first fell before a position."""
    return sum(evidence.location.origins[: max(0, position)])


def is_origin(evidence: ExperimentState, position: int) -> bool:
    """Return whether success fell at a position, and almost certainly not before it."""
    if position < 0:  # nothing lies before the tools that no model has asked for
        return evidence.location.kinds.systematic >= LIKELY
    falls = evidence.location.origins[position] >= LIKELY
    return falls and earlier_chance(evidence, position) <= DOUBT


def _used_up(evidence: ExperimentState) -> bool:
    """Return whether no pair is left for single fixes.

    A program that fails from the start leaves nothing to be searched, so that the proof gets the rest,
    of which a part is left for a joint fix.
    """
    if evidence.location.kinds.systematic >= LOCATED:
        return _all_used_up(evidence, JOINT * _PAIR if evidence.plan.joins else 0)
    full = evidence.runs("pairs") + _PAIR > evidence.plan.limits.pair_runs
    return full or bool(evidence.without_outcome)


def _all_used_up(evidence: ExperimentState, kept: int = 0) -> bool:
    """Return whether nothing is left of the replays of search and proof together, but those kept."""
    limits = evidence.plan.limits
    left = limits.screening_runs + limits.pair_runs - evidence.runs("pairs", *SEARCH)
    return left < _PAIR + kept or bool(evidence.without_outcome)


def _asked(arm: ReplayArm) -> int:
    """Return the number of fixes of an arm for which a model is asked."""
    fixes = [arm.fix, *(fix for _, fix in arm.also)]
    return sum(fix is not None and not fix.text for fix in fixes)


def _next(evidence: ExperimentState, tested: list[int]) -> int | None:
    """Return the next position to be tested."""
    left = evidence.plan.limits.steps - len(tested)
    found = {each: value for each, value in chances(evidence).items() if each not in tested}
    proved = [each.position for each in evidence.proved()]
    if any(is_origin(evidence, each) for each in proved):
        return None
    if proved and earlier_chance(evidence, min(proved)) > DOUBT:
        found = {each: value for each, value in found.items() if each < min(proved)}
    if left <= 0 or not found or _used_up(evidence):
        return None
    members = likely(found)[:left]
    return min((each for each, value in members if value >= NEAR * members[0][1]), default=None)


def _comparisons(evidence: ExperimentState, position: int) -> Iterator[Comparison]:
    """Yield the comparisons of a position; those of an earlier plan go on."""
    for step, fix in useful(evidence, position):
        if _used_up(evidence):
            return
        comparison = evidence.plan.comparison(position, step, fix)
        found = next((each for each in evidence.comparisons if each.fix == comparison.fix), None)
        if found is None:
            evidence.comparisons.append(comparison)
        yield found or comparison


def _pairs(
    evidence: ExperimentState, comparison: Comparison, seed: int, *, alike: bool = False
) -> Iterator[tuple[ReplayTrial, ...]]:
    """Ask for pairs of a comparison while it is open; where ``alike``, while all replays are alike."""
    used_up = _all_used_up if comparison.further else _used_up
    while not used_up(evidence) and not (alike and not evidence.deterministic):
        if comparison.state(deterministic=evidence.deterministic) != "open":
            return
        number = evidence.runs("pairs") // 2
        calls, longest = live_calls(evidence, comparison.position), _longest(evidence)
        fix = ReplayTrial(comparison.fix, "pairs", number, calls + _asked(comparison.fix), longest)
        keep = ReplayTrial(comparison.keep, "pairs", number, calls, longest)
        first = random.Random(f"{seed}:{number}").random() < 0.5  # noqa: S311
        yield (fix, keep) if first else (keep, fix)
        told = {trial.arm: result for trial, result in evidence.results[-2:]}
        comparison.add(told[comparison.fix], told[comparison.keep])
        evidence.count(comparison.position, told[comparison.keep])
        if comparison.source == "resample":  # an answer has a position before it
            evidence.count(comparison.position - 1, told[comparison.fix])


def _doubt(evidence: ExperimentState) -> Iterator[tuple[ReplayTrial, ...]]:
    """Ask for replays at further positions of a program whose replays were all alike.

    Replays that share one draw, by a cache or a fixed seed, are alike, too; their outcomes then jump up
    and down along the run, while those of a deterministic program fall once.
    """
    limits = evidence.plan.limits
    free = [each for each in range(evidence.plan.length) if each not in evidence.counts]
    count = min(DOUBTS, len(free))
    for place in range(count):
        if evidence.searched < limits.screening_runs and not evidence.without_outcome:
            position = free[len(free) * (2 * place + 1) // (2 * count)]
            yield from measure(evidence, position, 1, "screening")


def _together(
    evidence: ExperimentState, tested: list[int], seed: int
) -> Iterator[tuple[ReplayTrial, ...]]:
    """Ask for pairs of a joint fix of the tested steps whose single fixes never succeeded."""
    plan = evidence.plan
    helpless = [each for each in sorted(tested) if _never_helped(evidence, each)]
    parts = [part for each in helpless for part in plan.joined(each)]
    if plan.joins and len(parts) > 1 and not _all_used_up(evidence):
        comparison = plan.joint_comparison(parts)
        evidence.comparisons.append(comparison)
        yield from _pairs(evidence, comparison, seed)
        if comparison in evidence.proved():
            yield from _without_one(evidence, parts, seed)


def _without_one(
    evidence: ExperimentState, parts: list[Part], seed: int
) -> Iterator[tuple[ReplayTrial, ...]]:
    """Ask for pairs of a proved joint fix without one of its parts, the latest first.

    They are no planned contrasts, so that the thresholds do not count them: only a program whose replays
    are all alike is asked, in which two pairs decide without an e-value.
    """
    while len(parts) > FEWEST and evidence.deterministic:
        for left_out in reversed(parts):
            fewer = [each for each in parts if each != left_out]
            comparison = evidence.plan.joint_comparison(fewer)
            evidence.comparisons.append(comparison)
            yield from _pairs(evidence, comparison, seed, alike=True)
            if comparison in evidence.proved():
                parts = fewer
                break
        else:
            return


def _never_helped(evidence: ExperimentState, position: int) -> bool:
    """Return whether the parts of a joint fix at a position were tried alone, and nothing helped there."""
    tried = [each for each in evidence.comparisons if each.position == position and each.pairs]
    parts = set(evidence.plan.joined(position))
    return parts <= {(each.step, each.fix.fix) for each in tried} and not any(
        each.contrast().fix_successes for each in tried
    )
