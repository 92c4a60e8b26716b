"""The corrections that a confirmation tries, in order, and the reasons for those that it refuses."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace.messages import parsed
from mast_trace.replay.recording import tape_of
from mast_trace_judge.arms import Fix, FixSource, ReplayArm
from mast_trace_lab.confirm.leaks import known_before, leaked, said_in
from mast_trace_lab.replay.changes import NoChange, NotAnArm, intervention_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from mast_trace.replay.tape import Tape
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.decision_points import DecisionPoint
    from mast_trace_lab.program.process import Oracle

_MOST_ASKED: Final = 200
"""Texts of one correction about which an oracle is asked."""


@dataclass(frozen=True)
class RefusedFix:
    """A correction that is not tried.

    Attributes:
        step: index of the step.
        source: the origin.
        reason: one sentence.
    """

    step: int
    source: FixSource
    reason: str


@dataclass(frozen=True)
class Sources:
    """The origins of corrections.

    Attributes:
        person: a person's answers by step; at the step of a tool that is no answer, its result.
        resample: whether the same request is asked again, at any step.
        stronger_model: name of a model that is asked at any step; empty for none.
        judge: steps as the judge has corrected them; no descriptions.
        results: a person's right results of tools by step, also where the step is the answer that asks
            for the tool.
        answers: the right final answers and the reasons given with the outcome, as far as known: no
            correction may hold what only they know.
    """

    person: Mapping[int, str]
    resample: bool = True
    stronger_model: str = ""
    judge: Mapping[int, str] | None = None
    answers: Sequence[str] = ()
    results: Mapping[int, str] | None = None

    def texts(self, answers: Container[int]) -> Iterator[tuple[int, Fix]]:
        """Yield steps and texts, in the order in which they are tried.

        Args:
            answers: steps that are answers of models; the texts of others are results of tools.
        """
        for step, text in self.person.items():
            yield step, Fix("person", text, result=step not in answers)
        for step, text in (self.results or {}).items():
            yield step, Fix("person", text, result=True)
        for step, text in (self.judge or {}).items():
            yield step, Fix("judge", text, result=step not in answers)


def planned_fixes(
    run: Trajectory,
    points: Sequence[DecisionPoint],
    sources: Sources,
    oracle: Oracle | None = None,
    *,
    live_tools: Iterable[str] = (),
) -> tuple[dict[int, tuple[Fix, ...]], tuple[RefusedFix, ...]]:
    """Return the corrections by step in the order of their sources, and the refused ones.

    A correction of a decision point replaces the model's answer, one of a tool's step its result. A text
    is refused if it changes nothing, if it holds a number or quoted words that only the right answer
    knows, or if the oracle takes it for the right answer by itself, except at the last decision point,
    whose answer may be the final one.

    Args:
        run: the run.
        points: its decision points.
        sources: the origins of corrections.
        oracle: judges texts; None where the program records its outcome.
        live_tools: names of tools that may be executed; ``*`` for all.

    Raises:
        NotReplayable: the record lacks data that a replay needs.
        ConfigurationError: a person's step cannot be corrected, or not by such a text.
    """
    by_step = {point.step: point for point in points}
    tape = tape_of(run, live_tools=live_tools)
    texts: dict[int, list[Fix]] = defaultdict(list)
    refused: list[RefusedFix] = []
    for step, fix in sources.texts(by_step):
        point = None if fix.result else by_step.get(step)
        try:
            reason = _unchanged(run, tape, ReplayArm("result" if fix.result else "fix", step, fix))
        except NotAnArm as error:
            if fix.source != "judge":
                raise ConfigurationError(f"The fix of step {step}: {error}") from error
            reason = str(error)
        asked = None if point is points[-1] else oracle
        reason = reason or _objection(run, step, point, fix.text, sources.answers, asked)
        if reason:
            refused.append(RefusedFix(step, fix.source, reason))
        elif fix not in texts[step]:
            texts[step].append(fix)
    anywhere = [Fix("resample")] if sources.resample else []
    if sources.stronger_model:
        anywhere.append(Fix("stronger model", model=sources.stronger_model))
    planned = {step: _in_order([*texts[step], *anywhere]) for step in by_step}
    planned.update((step, _in_order(given)) for step, given in texts.items() if step not in by_step)
    return dict(sorted((step, given) for step, given in planned.items() if given)), tuple(refused)


def _in_order(fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    return tuple(sorted(fixes, key=lambda fix: fix.rank))


def _unchanged(run: Trajectory, tape: Tape, arm: ReplayArm) -> str:
    """Return the reason why an arm changes nothing; empty if it changes something."""
    try:
        intervention_of(run, tape, arm)
    except NoChange as error:
        return str(error)
    return ""


def _objection(
    run: Trajectory,
    step: int,
    point: DecisionPoint | None,
    text: str,
    answers: Sequence[str],
    oracle: Oracle | None,
) -> str:
    """Return the reason why a text is no correction of a step; empty if it is one."""
    found = leaked(text, answers, known_before(run, step, point.span_id if point else ""))
    if found:
        return f"It holds {found!r}, which the run did not know before, but the right answer holds."
    return _taken_for_right(text, oracle) if oracle else ""


def _taken_for_right(text: str, oracle: Oracle) -> str:
    """Return the reason why an oracle objects to a text, or to one that it holds; empty if it does not.

    Each argument of a call is asked about alone: tools may hand one on as it is.
    """
    shape = parsed(text)
    said = shape.get("text") if isinstance(shape, dict) else None
    asked = dict.fromkeys([text, str(said or text), *said_in(text)])
    if len(asked) > _MOST_ASKED:
        return f"It holds {len(asked)} texts, and the oracle is asked about {_MOST_ASKED} at most."
    for each in asked:
        opinion = oracle.ask(each)
        if opinion.success:
            return (
                "The oracle takes its text for the right answer, so it would succeed at any step."
                if each in (text, said)
                else f"The oracle takes {each[:40]!r} in it for the right answer, so it would "
                "succeed at any step."
            )
        if opinion.success is None:
            return f"The oracle could not judge its text: {opinion.reason}."
    return ""
