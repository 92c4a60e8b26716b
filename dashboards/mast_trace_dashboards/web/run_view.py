"""Steps for the run page: marked, timed, repetitions folded, quotes found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from mast_trace.trajectory.outline import KINDS, Outline
from mast_trace_dashboards.certainty import counting, marked
from mast_trace_dashboards.run_documents import LONGEST
from mast_trace_dashboards.stored_run import StoredRun, left_out_words
from mast_trace_dashboards.web.rows import CLIP, Row, pieces_of, pretty, shown
from mast_trace_judge.proof import RULE, proved_step, refuted_steps

if TYPE_CHECKING:
    from mast_trace.trajectory import Step
    from mast_trace_dashboards.web.finding.run_costs import CallCosts
    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.verdict import Verdict

PAGE = 500
"""Number of steps that are sent at once."""
MOST_AGENTS = 60
"""Most agents that are listed above the steps."""
_COLOURS = 8
MOST_LANES = 8
"""Most lanes; further agents share the last one."""
_NUMBERED = re.compile(r"[\s_.#-]*\d+$")
_QUOTED_WITHIN = 1024 * 1024
"""Characters of a step within which the verdict's quotes are marked."""


@dataclass(frozen=True)
class Blamed:
    """The agents that a verdict names.

    Attributes:
        decisive: who acts in the decisive step, empty if that agent is unknown; None if there is no such step.
        modes: who act in the steps of failure modes.
    """

    decisive: str | None = None
    modes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Tick:
    """A step in the lanes of agents, without its text.

    Attributes:
        number: of the step.
        agent: that acts in it, empty if unknown.
        colour: number of the agent's colour.
        lane: number of the agent's lane.
        kind: of the step.
        decisive: whether the verdict names it as the decisive error.
        rank: its rank among the places to look at, else 0.
        modes: codes of failure modes that it is evidence of.
        failed: whether it has an error.
        repeats: whether it repeats an earlier step.
        begun: its start, in milliseconds since the run's.
        took: its duration in milliseconds.
        beside: whether it began before the step of another agent before it had ended.
        heir: ``heir`` where it holds the wrong value of the first place to look at, ``possible heir`` where it may.
    """

    number: int
    agent: str
    colour: int
    lane: int
    kind: str
    decisive: bool
    rank: int
    modes: tuple[str, ...]
    failed: bool
    repeats: bool
    begun: float
    took: float
    beside: bool
    heir: str


class Page:
    """A run's steps, and its agents.

    Attributes:
        outline: of the run.
        count: the number of its steps.
        left_out: the sentence about steps that retention has left out; empty where it has not.
        colours: number of each agent's colour.
        proof: what replays have shown about the run; None where there were none.
        rates: V by step.
    """

    def __init__(
        self,
        stored: StoredRun,
        verdict: Verdict | None,
        *,
        confirmation: Confirmation | None = None,
        answers: Mapping[int, str] | None = None,
        spent: Mapping[int, CallCosts] | None = None,
    ) -> None:
        """Read the run's outline.

        Args:
            stored: the run.
            verdict: on it; None if there is none.
            confirmation: what replays have shown about it; None where there were none.
            answers: the model's answer at each step from which a replay can run on.
            spent: the cost of the model calls that produced each step.

        Raises:
            StorageError: the database does not answer.
        """
        self._stored = stored
        self.outline = stored.outline
        self.count = len(self.outline)
        self.left_out = left_out_words(stored.left_out) if stored.left_out else ""
        self.colours = colours_of(self.outline.agents)
        self._lanes = _lanes(self.outline.agents)
        self._ranks, self._modes, self._quotes = _findings(verdict)
        self._decisive = verdict.decisive.step if verdict and verdict.decisive else None
        if verdict is None:
            self._decisive = proved_step(confirmation)
        self._heirs = _heirs(verdict)
        self._marks = _marks(confirmation)
        self._answers = answers or {}
        self._spent = spent or {}
        self.proof = confirmation
        self.rates = {rate.step: rate for rate in confirmation.curve} if confirmation else {}

    @property
    def decisive(self) -> int | None:
        """The decisive step; None where none is named."""
        return self._decisive

    @property
    def named(self) -> list[tuple[str, int]]:
        """The first agents, with their colours."""
        return list(self.colours.items())[:MOST_AGENTS]

    @property
    def blamed(self) -> Blamed:
        """The agents that the verdict names."""
        number = self._decisive
        known = number is not None and 0 <= number < self.count
        decisive = self.outline.actor(number) if number is not None and known else None
        return Blamed(decisive, frozenset(map(self._agent, self._modes)) - {""})

    def ticks(self, begin: int, end: int) -> list[Tick]:
        """Return the steps from one number up to, not including, another, without their texts."""
        return [self._tick(number) for number in range(max(begin, 0), min(end, self.count))]

    @property
    def lanes(self) -> list[tuple[str, int]]:
        """The name of each lane, with its colour: of its agent, or of all that share it."""
        shared: dict[int, list[str]] = {}
        for agent, lane in self._lanes.items():
            shared.setdefault(lane, []).append(agent)
        return [_lane_name(agents, self.colours) for agents in shared.values()]

    def way(self, row: Row) -> str:
        """Return the style classes of the arrow to the agent that a step hands over to or writes to; empty if there is none.

        A message to several agents has none.
        """
        step = row.step
        to = step.handoff_to or (step.recipients[0] if len(step.recipients) == 1 else "")
        here, there = (self._lanes.get(agent) for agent in (step.agent, to))
        if here is None or there is None or here == there:
            return ""
        side = f"in-{here} to-{there}" if here < there else f"in-{there} to-{here} back"
        return f"{side} handed" if step.handoff_to else side

    def rows(self, begin: int, end: int, clip: int = CLIP + 1) -> list[Row]:
        """Return the steps from one number up to, not including, another.

        Args:
            begin: the first.
            end: the first that is left out.
            clip: characters up to which texts are read.

        Raises:
            StorageError: the database does not answer.
        """
        numbers = range(max(begin, 0), min(end, self.count))
        marked = [n for n in numbers if n in self._ranks or n in self._modes]
        others = [n for n in numbers if n not in self._ranks and n not in self._modes]
        # Quotes are searched in the whole text; other steps are read only as far as they are shown.
        steps = self._stored.steps(others, clip=clip)
        steps += self._stored.steps(marked, clip=_QUOTED_WITHIN)
        return [self._row(step) for step in sorted(steps, key=lambda step: step.index)]

    def _tick(self, number: int) -> Tick:
        outline, agent = self.outline, self.outline.actor(number)
        return Tick(
            number=number,
            agent=agent,
            colour=self._colour(number),
            lane=self._lanes.get(agent, 0),
            kind=KINDS[outline.kinds[number]].value,
            decisive=number == self._decisive,
            rank=self._ranks.get(number, 0),
            modes=tuple(self._modes.get(number, ())),
            failed=bool(outline.failed[number]),
            repeats=outline.repeats[number] != number,
            begun=max(outline.starts[number] - outline.run.start, 0) / 1e6,
            took=max(outline.ends[number] - outline.starts[number], 0) / 1e6,
            beside=bool(number)
            and agent != outline.actor(number - 1)
            and outline.starts[number] < outline.ends[number - 1],
            heir=self._heirs.get(number, ""),
        )

    @property
    def recorded(self) -> tuple[Mapping[int, str], Mapping[int, str]]:
        """The recorded answers and results in whose place fixes were tried, by step."""
        parts = [
            part
            for each in (self.proof.contrasts if self.proof else ())
            for part in each.parts
            if part.fix_text
        ]
        results = {part.step for part in parts if part.result}
        fixed = {part.step for part in parts} - set(self._answers)
        unknown = sorted(n for n in fixed | results if 0 <= n < self.count)
        steps = self._stored.steps(unknown, clip=LONGEST) if unknown else []
        texts = {step.index: step.text for step in steps}
        return texts | dict(self._answers), texts

    def _agent(self, number: int) -> str:
        return self.outline.actor(number) if 0 <= number < self.count else ""

    def _row(self, step: Step) -> Row:
        run, number = self.outline.run, step.index
        span = max(run.end - run.start, 1)
        repeats = self.outline.repeats[number]
        quotes = self._quotes
        # A quoted object has a line for each value, as the text that it is of.
        marked = [*quotes, *map(pretty, quotes)]
        return Row(
            step=step,
            colour=self._colour(number),
            rank=self._ranks.get(number, 0),
            decisive=number == self._decisive,
            marks=tuple(self._marks.get(number, ())),
            rate=self.rates.get(number),
            replayable=number in self._answers,
            spent=self._spent.get(number),
            modes=tuple(self._modes.get(number, ())),
            pieces=tuple(pieces_of(shown(step.text[:CLIP], quotes), marked)),
            quotes=tuple(q for q in quotes if q in step.text and q not in step.text[:CLIP]),
            left=round(100 * max(step.start - run.start, 0) / span, 2),
            width=round(max(100 * max(step.end - step.start, 0) / span, 0.4), 2),
            repeats=repeats if repeats != number else None,
            clipped=max(map(len, (step.text, step.arguments, step.error or ""))) > CLIP,
        )

    def _colour(self, number: int) -> int:
        return self.colours.get(self.outline.actor(number), 0)


def colours_of(agents: Iterable[str]) -> dict[str, int]:
    """Return the number of each agent's colour, in their order."""
    return {agent: number % _COLOURS for number, agent in enumerate(agents)}


def _lanes(agents: Sequence[str]) -> dict[str, int]:
    """Return the number of each agent's lane.

    Among many agents, those whose names differ in a number alone share one, unless all do; the last one is of all others.
    """
    alike = _stem if len(agents) > MOST_LANES and len(set(map(_stem, agents))) > 1 else str
    groups = {group: number for number, group in enumerate(dict.fromkeys(map(alike, agents)))}
    return {agent: min(groups[alike(agent)], MOST_LANES - 1) for agent in agents}


def _stem(agent: str) -> str:
    return _NUMBERED.sub("", agent) or agent


def _lane_name(agents: Sequence[str], colours: Mapping[str, int]) -> tuple[str, int]:
    if len(agents) == 1:
        return agents[0], colours[agents[0]]
    stems = set(map(_stem, agents))
    name = stems.pop() if len(stems) == 1 else "others"
    return f"{name} ({len(agents)})", colours[agents[0]]


def parting(left: Outline, right: Outline) -> int | None:
    """Return the first step in which two runs differ; None if they are equal."""
    likenesses = zip_longest(left.likenesses, right.likenesses)
    return next((number for number, (one, other) in enumerate(likenesses) if one != other), None)


def _heirs(verdict: Verdict | None) -> dict[int, str]:
    """Return what each step inherits of the first place to look at; see `Tick`."""
    if verdict is None or not verdict.look_first:
        return {}
    first = verdict.look_first[0]
    return dict.fromkeys(first.heirs, "heir") | dict.fromkeys(first.possible_heirs, "possible heir")


def _findings(
    verdict: Verdict | None,
) -> tuple[dict[int, int], dict[int, list[str]], list[str]]:
    ranks: dict[int, int] = {}
    modes: dict[int, list[str]] = {}
    quotes: list[str] = []
    if verdict is None:
        return ranks, modes, quotes
    places = [verdict.decisive.step] if verdict.decisive else []
    places += [place.step for place in verdict.look_first]
    ranks |= {number: rank for rank, number in enumerate(list(dict.fromkeys(places))[:3], 1)}
    for finding in counting(verdict):
        quotes += [quote for quote in finding.quotes if quote]
        for number in finding.steps:
            modes.setdefault(number, []).append(marked(finding))
    return ranks, modes, quotes


def _marks(confirmation: Confirmation | None) -> dict[int, list[str]]:
    """Return the words for what replays have shown of single steps."""
    marks: dict[int, list[str]] = {}
    if confirmation is None:
        return marks
    proved, last = proved_step(confirmation), confirmation.point_of_no_return
    if proved is not None:
        marks.setdefault(proved, []).append(RULE)
    if last is not None:
        marks.setdefault(last, []).append("point of no return")
    for number in refuted_steps(confirmation):
        marks.setdefault(number, []).append("refuted by replay")
    return marks
