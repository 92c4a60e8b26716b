"""Mode 3.1, premature termination."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace.semconv import Termination
from mast_trace.trajectory import StepKind
from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.acts import (
    ending,
    ends_run,
    failed,
    finding,
    first_line,
    has_failed,
    is_said,
    is_tool,
    name_words,
    ordinary,
)
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.stated import sentences, stems
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_STOPPED_BY_PEOPLE = {Termination.INTERRUPTED, Termination.CANCELLED, Termination.USER_ENDED}
_GIVES_UP = re.compile(
    r"\b(?:(?:unable|not able|failed) to (?:find|determine|retrieve|complete|access|obtain|locate"
    r"|verify|provide)|(?:could|can|did)(?: not|n't) (?:be )?(?:find|found|determined?|retrieved?"
    r"|completed?|access(?:ed)?|obtain(?:ed)?|verif(?:y|ied)|located?)"
    r"|further (?:research|investigation|work) (?:is|will be|would be) (?:needed|required))",
    re.IGNORECASE,
)
_PROMISES = re.compile(
    r"\b(?:i(?: will|'ll| am going to)|let me|let's|we(?: will|'ll| need to| still need to)) "
    r"(?:now |next |then |proceed to |continue to |start by |begin by )*"
    r"(?:search|check|look|find|verify|run|test|compute|calculate|analy[sz]e|execute|continue"
    r"|review|implement|write|fetch|retrieve|gather|proceed)\b",
    re.IGNORECASE,
)
_LEFT = re.compile(
    r"\bdid(?: not|n't) get (?:around )?to\b|\b(?:can|may|could|will have to) (?:come|be done|wait|follow)(?: until)? "
    r"(?:later|(?:some )?other time|another (?:time|day)|tomorrow)|^\W*(?:the )?\w+(?: is)? still open\W*$"
    r"|\bstill (?:has|have|needs?) to be\b",
    re.IGNORECASE,
)
_OPTIONAL = re.compile(
    r"\b(?:optional\w*|nice|if|unless|not (?:needed|necessary|required)|later)\b", re.IGNORECASE
)
_EXCUSED = re.compile(
    r"\b(?:you|your|customer|user|optional\w*|if|unless|first|before)\b|\?", re.IGNORECASE
)
"""A sentence with one of these leaves to others what is theirs, or tells an order of work."""
_PUT_OFF = re.compile(r"\b(?:will|later|still|not|n't|yet|open)\b", re.IGNORECASE)
"""Words of who speaks of a thing without having done it."""
_A_THING = 4
"""Letters of a word's stem by which a thing or a work is named."""
_MORE_FLAGS = ("has_more", "hasMore", "has_next", "hasNext", "has_next_page", "hasNextPage")
_PAGE = ("page", "current_page", "currentPage")
_PAGES = ("pages", "total_pages", "totalPages", "page_count")
_STILL = re.compile(r"still (?:has|have|needs?) to be", re.IGNORECASE)


@rule("3.1", Reach.END, needs_end=True)
def ended_with_error(trajectory: Trajectory) -> list[ModeFinding]:
    """The run as a whole, or the very last step of a run that failed, ended in an error (exact).

    Definition: MAST 3.1, "ending a dialogue, interaction or task before all necessary information
    has been exchanged or objectives have been met". A last call that fails by itself says nothing:
    it may have been a best effort after the answer.
    """
    if trajectory.outcome == "success" or trajectory.termination_reason in _STOPPED_BY_PEOPLE:
        return []
    last = trajectory.steps[-1:]
    error = trajectory.error
    if error is None and last and last[0].error is not None and has_failed(trajectory):
        error = last[0].error
    if error is None:
        return []
    return [
        finding(
            "3.1",
            0.9,
            Evidence.EXACT,
            f"The {'run' if trajectory.error is not None else 'last step'} ended with an error: "
            f"{error.splitlines()[0][:200] if error else 'unknown'}.",
            last,
            [first_line(step) for step in last],
        )
    ]


@rule("3.1", Reach.END, needs_end=True)
def left_items_open(trajectory: Trajectory) -> list[ModeFinding]:
    """The framework's own plan had open items when the run ended (exact).

    Definition: MAST 3.1; the items are those that the root span lists.
    """
    if not trajectory.open_items or trajectory.outcome == "success":
        return []
    if trajectory.termination_reason in _STOPPED_BY_PEOPLE:
        return []
    last = trajectory.steps[-1:]
    listed = "; ".join(trajectory.open_items[:5])
    return [
        finding(
            "3.1",
            0.9,
            Evidence.EXACT,
            f"{len(trajectory.open_items)} planned items were open at the end: {listed}.",
            last,
            [first_line(step) for step in last],
        )
    ]


@rule("3.1", needs_end=True, of_failures=True)
def ended_without_answer(trajectory: Trajectory) -> list[ModeFinding]:
    """No agent's word concludes the run.

    Definition: MAST 3.1. Exact where no agent says anything at all after the tools ran and the last
    of them failed, or nobody speaks in the whole run; heuristic where a run ends on a tool's
    result, for the result may be the answer.
    """
    steps = ordinary(trajectory)
    if not steps or trajectory.outcome == "success":
        return []
    if trajectory.termination_reason in _STOPPED_BY_PEOPLE or steps[-1].handoff_to:
        return []
    last = steps[-1]
    if last.kind is not StepKind.TOOL or ends_run(last):
        return []
    exact = last.error is not None and bool(last.span_id)
    return [
        finding(
            "3.1",
            0.85 if exact else 0.5,
            Evidence.EXACT if exact else Evidence.HEURISTIC,
            f"The run ends on {'a failed call' if failed(last) else 'the result'} of "
            f"{last.tool or 'a tool'}, and no agent concludes.",
            [last],
            [first_line(last)],
        )
    ]


@rule("3.1", needs_end=True, of_failures=True)
def gave_up(trajectory: Trajectory) -> list[ModeFinding]:
    """The last word says that something could not be done (heuristic).

    Definition: MAST 3.1. Read off the last message only: before it, such words are work in
    progress.
    """
    said = [step for step in trajectory.steps if is_said(step)]
    if not said or trajectory.outcome == "success":
        return []
    last = said[-1]
    start = max(0, len(last.text) - 1500)
    match = _GIVES_UP.search(last.text, start)
    if match is None:
        return []
    return [
        finding(
            "3.1",
            0.6,
            Evidence.HEURISTIC,
            f"The last message of {last.agent} says that something could not be done.",
            [last],
            [quote(last.text, *match.span())],
        )
    ]


@rule("3.1", needs_end=True, contradicts=True)
def left_open(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent leaves for later what the task asks for, and nobody does it (heuristic).

    Definition: MAST 3.1, where no success is recorded. Unless a failure is, the last message has no word of it: an honest
    partial answer contradicts nothing. The agents use tools; the sentence
    has a word of a sentence of the task that is neither optional nor has a condition, and neither a later call nor a
    later message that puts nothing off has a word that begins alike.
    """
    said = [step for step in trajectory.steps if is_said(step)]
    if trajectory.outcome == "success" or not any(map(is_tool, trajectory.steps)):
        return []
    asked = frozenset[str]().union(
        *(stems(each) for each in sentences(trajectory.task) if not _OPTIONAL.search(each))
    )
    for step in said:
        for sentence in sentences(step.text):
            # Somebody may do it under another word; what failed tells.
            if trajectory.outcome != "failure" and _STILL.search(sentence):
                continue
            if not _LEFT.search(sentence) or _EXCUSED.search(sentence):
                continue
            after = trajectory.steps[step.index + 1 :]
            later = [each for each in after if each.tool or not _PUT_OFF.search(each.text)]
            told = [
                " ".join([*name_words(s.tool), s.arguments if s.tool else s.text]) for s in later
            ]
            done = {word[:_A_THING] for word in stems(" ".join(told))}
            left = {word for word in stems(sentence) & asked if len(word) >= _A_THING}
            honest = trajectory.outcome != "failure" and (
                step is said[-1] or left & stems(said[-1].text)
            )
            if not honest and any(word[:_A_THING] not in done for word in left):
                why = f"{step.agent} leaves open what the task asks for, and no later step is about it: {sentence[:160]}"
                return [finding("3.1", 0.65, Evidence.HEURISTIC, why, [step], [sentence[:160]])]
    return []


@rule("3.1", needs_end=True)
def unkept_promise(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent's last words announce work, and it does not act again (heuristic).

    Definition: MAST 3.1. Only the end of the agent's last message counts; what is announced earlier
    in it may be done in the same breath.
    """
    steps = ordinary(trajectory)
    if trajectory.outcome == "success":
        return []
    last_of = {step.agent: step for step in steps}
    for step in reversed(steps):
        if last_of[step.agent] is not step or not is_said(step):
            continue
        match = _PROMISES.search(step.text, max(0, len(step.text.rstrip()) - 200))
        if match:
            return [
                finding(
                    "3.1",
                    0.45,
                    Evidence.HEURISTIC,
                    f"{step.agent}'s last words announce work, and it does not act again.",
                    [step, ending(steps)],
                    [quote(step.text, *match.span())],
                )
            ]
    return []


@rule("3.1", needs_end=True, of_failures=True)
def left_pages_unread(trajectory: Trajectory) -> list[ModeFinding]:
    """A tool's result says that there is more, and nobody asks for it (heuristic).

    Definition: MAST 3.1, "before all necessary information has been exchanged". Reads results in
    JSON: a page number below the number of pages, or a flag that there is more. The need for the
    rest is an assumption, so the rule covers failed runs and short listings only.
    """
    if trajectory.outcome == "success":
        return []
    unread: dict[str, Step] = {}
    for step in trajectory.steps:
        if is_tool(step) and step.error is None:
            more = _more(step.text)
            if more is True:
                unread[step.tool] = step
            elif more is False:
                unread.pop(step.tool, None)
    return [
        finding(
            "3.1",
            0.6 if trajectory.outcome == "failure" else 0.4,
            Evidence.HEURISTIC,
            f"{step.tool}'s last result says that there is more to read.",
            [step],
            [first_line(step)],
        )
        for step in unread.values()
    ]


def _more(text: str) -> bool | None:
    """Return whether a result in JSON says that more can be read; None if it says nothing of it."""
    if not text.startswith("{") or len(text) > 200_000:
        return None
    result = loaded(text)
    if not isinstance(result, dict):
        return None
    flag = next((result[key] for key in _MORE_FLAGS if key in result), None)
    if isinstance(flag, bool):
        return flag
    page = next((result[key] for key in _PAGE if key in result), None)
    pages = next((result[key] for key in _PAGES if key in result), None)
    if isinstance(page, int) and isinstance(pages, int) and 1 <= page <= pages <= 20:
        return page < pages
    return None
