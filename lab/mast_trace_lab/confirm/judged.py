"""The judge's candidates as a prior over decision points, and its correction in place of a recorded answer.

A record can hold words that steer its judge, and replays run without anybody who is asked: no such words
may choose a tool that the run never had, nor the arguments with which a tool is executed.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from mast_trace.messages import Message, ToolCall, parsed
from mast_trace.replay.executions import is_call_of, plain_name
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.verdict import (
    Candidate,
    CorrectedCall,
    CorrectedStep,
    DecisiveError,
    Place,
    Verdict,
    as_fix,
)
from mast_trace_lab.confirm.fixes import RefusedFix
from mast_trace_lab.replay.changes import NotAnArm, given_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.decision_points import DecisionPoint


def prior_of(verdict: Verdict | None, points: Sequence[DecisionPoint]) -> dict[int, float]:
    """Return the judge's probabilities by decision point; empty without a verdict.

    A candidate that is no decision point, such as a tool's result, counts for the model answer before
    it, of its own agent if there is one.
    """
    if verdict is None:
        return {}
    told = {each.step: (each.agent, each.probability) for each in verdict.candidates}
    if verdict.decisive is not None:
        told[verdict.decisive.step] = verdict.decisive.agent, verdict.decisive.probability
    prior: dict[int, float] = {}
    for step, (agent, probability) in told.items():
        point = point_of(step, agent, points)
        if point is not None:
            prior[point.step] = prior.get(point.step, 0.0) + probability
    return prior


def with_judged_steps(
    conclusion: Confirmation, verdict: Verdict | None, points: Sequence[DecisionPoint]
) -> Confirmation:
    """Return a conclusion in which a refuted answer refutes the judge's candidates that it made, too.

    A candidate may be a later step of the same model answer, such as its second tool call.
    """
    if verdict is None or not conclusion.refuted:
        return conclusion
    named: tuple[Candidate | DecisiveError, ...] = verdict.candidates
    if verdict.decisive is not None:
        named = (*named, verdict.decisive)
    refuted = set(conclusion.refuted)
    for each in named:
        point = point_of(each.step, each.agent, points)
        if point is not None and point.step in conclusion.refuted:
            refuted.add(each.step)
    return conclusion.model_copy(update={"refuted": tuple(sorted(refuted))})


def point_of(step: int, agent: str, points: Sequence[DecisionPoint]) -> DecisionPoint | None:
    """Return the decision point that made a step: the last one up to it, of its agent if any."""
    before = [point for point in points if point.step <= step]
    own = [point for point in before if point.agent == agent]
    return max(own or before, key=lambda point: point.step, default=None)


_LONGEST_NAME = 60


class KnownCalls:
    """The tool calls of a run.

    Names count in the form in which frameworks send them to models. A model may know a tool by another
    name than the one under which the call is recorded; ids of calls tell which belong together.

    Args:
        recorded: the run.
        live_tools: names of tools that may be executed; ``*`` for all.
    """

    def __init__(self, recorded: Trajectory, live_tools: Iterable[str] = ()) -> None:
        self._live = {name if name == "*" else plain_name(name) for name in live_tools}
        self._tools: dict[str, set[str]] = defaultdict(set)
        self._made: Counter[tuple[str, str]] = Counter()
        self._asked: Counter[tuple[str, str]] = Counter()
        by_id: dict[str, list[Step]] = defaultdict(list)
        for step in recorded.steps:
            if step.kind is StepKind.TOOL and step.tool:
                self._tools[plain_name(step.tool)].add(plain_name(step.tool))
                self._made[_form(step.tool, step.arguments)] += 1
                by_id[step.call_id].append(step)
        outputs = {call.output_id for call in recorded.invocations if call.kind == "model"}
        answers = [recorded.texts[identity] for identity in outputs if identity in recorded.texts]
        for asked in (call for answer in answers for call in answer.tool_calls):
            made = by_id.get(asked.id or "", []) if asked.id else []
            self._tools[plain_name(asked.name)].update(plain_name(step.tool) for step in made)
            self._asked[_form(asked.name, asked.arguments)] += bool(made)

    def objection(self, calls: Sequence[ToolCall], kept: Sequence[ToolCall] = ()) -> str:
        """Return the reason why calls cannot stand in an answer; empty if they can.

        Args:
            calls: all calls of the corrected answer.
            kept: the calls of the recorded answer, which may stay as they are.
        """
        forms = Counter(_form(call.name, call.arguments) for call in calls)
        stay = Counter(_form(call.name, call.arguments) for call in kept)
        names = {plain_name(call.name): call.name[:_LONGEST_NAME] for call in calls}
        for (name, arguments), count in forms.items():
            if count <= stay[name, arguments]:
                continue
            if name not in self._tools:
                return f"It calls {names[name]!r}, a tool that the run has not."
            if self._is_live(name) and count > self._times(name, arguments):
                return (
                    f"It calls {names[name]!r}, which may be executed, with arguments that are not "
                    "those of a call of the run, or more often than the run did."
                )
        return ""

    def _is_live(self, name: str) -> bool:
        """Return whether a call may execute a tool, also if it is unknown which one."""
        tools = self._tools[name]
        return bool(self._live) and (not tools or bool(self._live & {"*", name, *tools}))

    def _times(self, name: str, arguments: str) -> int:
        made = [self._made[tool, arguments] for tool in {name, *self._tools[name]}]
        return max(self._asked[name, arguments], *made)


def _form(name: str, arguments: Any) -> tuple[str, str]:
    """Return name and arguments of a call; another time or id makes another call, unlike in replays."""
    given = json.dumps(parsed(arguments) or {}, sort_keys=True, default=str)
    return plain_name(name), given


def judge_fix(
    recorded: Trajectory,
    verdict: Verdict | None,
    points: Sequence[DecisionPoint],
    live_tools: Iterable[str] = (),
) -> tuple[dict[int, str], tuple[RefusedFix, ...]]:
    """Return a verdict's corrected step by decision point, or the reason why it is not tried.

    A description of the change never stands in place of an answer, nor does a call of a tool that the run
    has not. A tool that may be executed is called with recorded arguments only.

    Args:
        recorded: the run.
        verdict: its verdict, if there is one.
        points: its decision points.
        live_tools: names of tools that may be executed; ``*`` for all.
    """
    error = _fixed(verdict)
    if error is None:
        return {}, ()
    point = point_of(error.step, error.agent, points)
    if point is None or point.step != error.step:
        # The fix of a step that is not the answer itself would be put in place of something else.
        return {}, (RefusedFix(error.step, "judge", "The step is not an answer of a model."),)
    if error.corrected is None or not error.corrected.is_answer:
        reason = (
            "The judge has described the change and not written the step itself, as judges of earlier "
            "versions did, or says that the step needs later knowledge; a description is no answer."
        )
        return {}, (RefusedFix(error.step, "judge", reason),)
    text = _answer(recorded, point, error.corrected)
    if not text:
        reason = "It is not clear what becomes of the other tool calls of the answer."
        return {}, (RefusedFix(error.step, "judge", reason),)
    reason = _objection(recorded, point, text, live_tools)
    if reason:
        return {}, (RefusedFix(error.step, "judge", reason),)
    return {point.step: text}, ()


def _fixed(verdict: Verdict | None) -> DecisiveError | Place | None:
    """Return the decisive error if it has a fix, else the first suggested step that a model has corrected."""
    if verdict is None:
        return None
    error = verdict.decisive
    if error is not None and (error.minimal_fix or error.corrected):
        return error
    return next((place for place in verdict.look_first if place.corrected), None)


def _objection(
    recorded: Trajectory, point: DecisionPoint, text: str, live_tools: Iterable[str]
) -> str:
    """Return the reason why the calls of an answer are none that the judge may choose; empty without one.

    They are read from the answer as replays read it: a text of the judge's may spell calls, too.
    """
    try:
        given = given_calls(text)
    except NotAnArm as error:
        return str(error)
    if given is None:
        return ""
    kept = _recorded_answer(recorded, point).tool_calls
    return KnownCalls(recorded, live_tools).objection(given[1], kept)


def _answer(recorded: Trajectory, point: DecisionPoint, corrected: CorrectedStep) -> str:
    """Return the whole answer; empty if it is not clear from the corrected step.

    The judge sees an answer's text and each of its tool calls as a step: what is no part of the
    corrected one stays.
    """
    said = _recorded_answer(recorded, point)
    if recorded.steps[point.step].kind is not StepKind.TOOL:
        if said.content and not corrected.tool_calls:
            return corrected.text
        return as_fix(corrected.text, corrected.tool_calls)
    if len(said.tool_calls) <= 1:
        return as_fix(corrected.text or said.content, corrected.tool_calls)
    calls: list[CorrectedCall] = []
    for call in said.tool_calls:
        own = is_call_of(recorded.steps[point.step], call)
        calls += corrected.tool_calls if own else [_recorded_call(call)]
    whole = corrected.model_copy(update={"text": "", "tool_calls": tuple(calls)})
    clear = corrected.tool_calls and len(calls) >= len(said.tool_calls) and whole.is_answer
    return as_fix(corrected.text or said.content, calls) if clear else ""


def _recorded_call(call: ToolCall) -> CorrectedCall:
    given = call.arguments
    text = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
    return CorrectedCall(name=call.name, arguments=text)


def _recorded_answer(recorded: Trajectory, point: DecisionPoint) -> Message:
    call = next(each for each in recorded.invocations if each.span_id == point.span_id)
    return recorded.texts.get(call.output_id) or Message(call.output_text)
