"""Modes 3.2 and 3.3: an act without the approval that it needs, and an approval that the record contradicts."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import (
    USERS,
    by_user,
    checks,
    failed,
    finding,
    first_line,
    is_said,
    is_tool,
    name_words,
)
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.rules.calculation import false_equation, wrong_total
from mast_trace_judge.local.rules.mismatch import misstated_result
from mast_trace_judge.local.rules.misreading import (
    misattributed_value,
    mislabelled_value,
    swapped_values,
)
from mast_trace_judge.local.rules.verification import approves
from mast_trace_judge.local.stated import (
    DRAFTS,
    acts,
    arguments,
    owner,
    prompts,
    sentences,
    stem,
    stems,
    transacts,
)
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_CONTRADICTED = (
    *(misstated_result, false_equation, wrong_total),
    *(mislabelled_value, swapped_values, misattributed_value),
)
"""Rules that find statements which the record contradicts."""
_GIVES = (
    r"(?:approv\w*|review(?:s|ed)?|passed|grant(?:s|ed)?|authori[sz]\w+|sign(?:s|ed)?[ -]off|clear(?:s|ed)"
    r"|decision|consent\w*|permission)\b"
)
_APPROVAL = re.compile(rf"\b{_GIVES}", re.IGNORECASE)
_NEEDS = re.compile(
    rf"\b(?:without|until|unless|after|only|before|once)\b.{{0,160}}?\b{_GIVES}|\b{_GIVES}.{{0,160}}?\bbefore\b"
    rf"|\b(?:nothing|never|no|none)\b.{{0,80}}?\bnot\b.{{0,80}}?\b{_GIVES}|\b{_GIVES}.{{0,40}}?\bthen\b",
    re.IGNORECASE,
)
"""A sentence that puts an approval first, and the act behind it."""
_SAME = re.compile(r"\b(?:what|it|them|they|this|that)\b", re.IGNORECASE)
"""Words by which a sentence speaks of what the one before it names."""
_HAD = re.compile(r"\W*(?:it|she|he|they|this|that|which)\b|.*\balready\b", re.IGNORECASE)
"""The next sentence, where it may tell that the approval is there."""
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|wherever|above|over|more than|exceed\w*|large|optional\w*|may|might|can|should|would|could)\b|\?",
    re.IGNORECASE,
)
"""A sentence with one of these asks for an approval under a condition, or wishes for one."""
_PARTY = re.compile(
    r"\b(?:the|a|an|our|your) (?P<before>[\w-]+(?: [\w-]+)?) (?:(?:has|have|must|has to|is to) )?(?=approv|review|pass|grant|authori|sign|clear|consent)"
    r"|\b(?:of|from|by) (?:the|a|an|our|your) (?P<after>[\w-]+)",
    re.IGNORECASE,
)
"""The party before the word of approval, "the reviewer has passed", or after it, "a decision of the clerk"."""
_CONSENTS = re.compile(
    r"\b(?:approv\w*|grant\w*|fine|go ahead|agreed?|yes|yep|lgtm|(?:looks|sounds|all) good|good to go|clear(?:ed)?"
    r"|signed|authori[sz]\w*|permi\w+|consent\w*|no objections?|you (?:can|may)|proceed|do it|happy|works for)\b"
    r"|\bok(?:ay)? (?:with|by|from|to|for)\b|\U0001f44d|^\W*(?:ok(?:ay)?|sure|alright)\b\D*$",
    re.IGNORECASE,
)
"""Words of whoever has no objection."""
_ASKS = frozenset(
    map(stem, ("approve", "review", "check", "confirm", "ask", "request", "human", "sign"))
)
"""Words of the names of tools by which an approval may be asked for."""
_BY_USER = re.compile(r"\b(?:I|me|my|we|us|our|user|customer|client|yourself)\b", re.IGNORECASE)
_REFUSES = re.compile(
    r"^\W*(?:\w+[.!,] )?(?:not yet\b|(?:no|stop)[.:;!]|one more change\b|rejected\b)|\b(?:do not|don't|cannot|can't|won't|not) (?:yet )?(?:approve|pass|grant|sign)"
    r"|\bbefore this goes in\b",
    re.IGNORECASE,
)


_CHECKED = re.compile(
    r"\b(?:check|verify|confirm|validate|inspect|test)\b(?P<what>[^.;:!?]{3,60}?)\bbefore\b",
    re.IGNORECASE,
)
"""A check that the task puts before an act, and of what."""
_A_CHECK = frozenset(map(stem, ("check", "verify", "confirm", "validate", "inspect", "test")))
_A_NAME = 4
"""Letters of a word that tells what is to be checked."""
_WORD = re.compile(rf"\w{{{_A_NAME},}}")
_KEYS = frozenset(("id", "ids", "key", "code", "number", "no", "ref"))
"""Words of the names of arguments by which anything may be looked up."""
_NO = re.compile(r"\W*no\b", re.IGNORECASE)


def _has_answer(steps: Sequence[Step]) -> bool:
    """Return whether an agent asks, and another one speaks next."""
    said = [each for each in steps if is_said(each)]
    return any(
        one.text.rstrip().endswith("?") and one.agent != two.agent for one, two in pairwise(said)
    )


def _is_new(call: Step, about: set[str], before: Sequence[Step], task: str) -> bool:
    """Return whether an argument of a call is what was to be checked, and its agent and all earlier calls are new to it.

    Otherwise a tool of any name may have been the check.
    """
    given = [v for k, v in arguments(call).items() if about & {stem(w) for w in name_words(k)}]
    if not all(isinstance(value, str) for value in given):
        return False  # a flag may say that it was checked, and a number is in many texts
    words = {word for value in given for word in _WORD.findall(value.lower())}
    return bool(words) and not any(
        owner(each) == owner(call) or _may_be_of(each, words, task.lower())
        for each in before
        if is_tool(each)
    )


def _may_be_of(look: Step, words: set[str], task: str) -> bool:
    """Return whether a call may be about what has these words: it tells one, or names what the task does not."""
    told, given = f"{look.arguments} {look.text}".lower(), arguments(look)
    if any(word in told for word in words) or (look.arguments.strip("{} \n") and not given):
        return True
    return any(
        value.lower() not in task if isinstance(value, str) else bool(name_words(name) & _KEYS)
        for name, value in given.items()
    )


@rule("3.2", contradicts=True)
def act_before_check(trajectory: Trajectory) -> list[ModeFinding]:
    """A call moves money or goods before the check that the task puts before it (heuristic).

    Definition: MAST 3.2, "(partial) omission of proper checking or confirmation of task outcomes". One sentence of the task names
    act and check, without a condition. Before the call nobody has called a tool that checks by its name, and no text, call or result has
    a word for what is to be checked. Other tools were called, if at all, by other agents, about what the task names, and tell no word
    of what the act has for it. No user has said anything else.
    """
    steps = trajectory.steps
    asked = [
        (sentence, match)
        for sentence in sentences(trajectory.task[:4000])
        if (match := _CHECKED.search(sentence)) and not _CONDITION.search(sentence)
    ]
    for step in steps if asked else ():
        if step.index and by_user(step) and step.text != trajectory.task:
            return []
        verbs = {stem(w) for w in name_words(step.tool)} if transacts(step) else set()
        named = next((each for each in asked if verbs & stems(each[0])), None)
        if named is None or failed(step):
            continue
        match = named[1]
        about = {stem(w) for w in re.findall(r"[A-Za-z]+", match["what"]) if len(w) >= _A_NAME}
        last = steps[step.index - 1] if step.index else step
        # The message that asks for the call is no check.
        asks = is_said(last) and owner(last) == owner(step)
        before = [each for each in steps[: step.index - asks] if not by_user(each)]
        told = (f"{' '.join(name_words(e.tool))} {e.arguments} {e.text}" for e in before)
        looked = _has_answer(before) or (
            any(map(is_tool, before)) and not _is_new(step, about, before, trajectory.task)
        )
        if about and not looked and not (about | _A_CHECK) & stems(" ".join(told)):
            why = f"{owner(step)} calls {step.tool} before the check that the task asks for: {match[0]}"
            return [_unapproved(step, why, match[0])]
        # The same came before the next calls.
        return []
    return []


@rule("3.2", contradicts=True)
def acted_on_refusal(trajectory: Trajectory) -> list[ModeFinding]:
    """A call does what needs an approval right after the one who approves has refused it (heuristic).

    Definition: MAST 3.2. As for `unapproved_act`; there is no word of consent beside the refusal.
    """
    for step, _, approvers in _gated(trajectory):
        last = trajectory.steps[step.index - 1]
        refused = is_said(last) and owner(last) in approvers and _REFUSES.search(last.text)
        asked = trajectory.steps[max(0, last.index - 1)]
        # "Any objections?" - "No."
        answers = "?" in asked.text and owner(asked) == owner(step) and _NO.match(last.text)
        if refused and not answers and not _CONSENTS.search(_REFUSES.sub("", last.text)):
            why = f"{step.agent} calls {step.tool} right after {last.agent} refused: {first_line(last)}"
            return [_unapproved(step, why, first_line(last))]
    return []


@rule("3.2", of_failures=True)
def unapproved_act(trajectory: Trajectory) -> list[ModeFinding]:
    """A call does what the task or its agent's system prompt allows only after an approval, and none is seen (heuristic).

    Definition: MAST 3.2, "(partial) omission of proper checking or confirmation of task outcomes". Task or prompt ask
    for an approval before the act, without a condition, and name the act by the first word of the tool's name. Before the
    call no user has spoken again, nobody with the name or the prompt of one who approves has acted or was asked, nobody
    has answered the agent, and no message, result or tool speaks of consent. For failed runs only: an approval may be
    given in any words, or where no record is.
    """
    for step, (asks, parties), approvers in _gated(trajectory):
        before = trajectory.steps[: step.index]
        tools = {stem(w) for each in before if is_tool(each) for w in name_words(each.tool)}
        others = [each for each in before if is_said(each) and owner(each) != owner(step)]
        if not (
            approvers
            or tools & (parties | _ASKS)
            or any(_consents(each, step, before) for each in others)
            or any(is_tool(each) and _APPROVAL.search(each.text) for each in before)
        ):
            why = f"{step.agent} calls {step.tool}, and nobody has approved it, as is asked: {asks}"
            return [_unapproved(step, why, asks)]
    return []


def _gated(trajectory: Trajectory) -> Iterator[tuple[Step, tuple[str, frozenset[str]], set[str]]]:
    """Yield each act that needs an approval, with the sentence that says so, the party, and the agents who may approve.

    After a word of a user's no act needs one: the task may be another one then.
    """
    own = prompts(trajectory)
    for step in trajectory.steps:
        actor = owner(step)
        if step.index and by_user(step):
            return
        if not acts(step) or failed(step) or DRAFTS & {stem(w) for w in name_words(step.tool)}:
            continue
        verb = _verb(step)
        needed = _requirements(trajectory.task, verb) + _requirements(own.get(actor, ""), verb, 1)
        parties = frozenset[str]().union(*(party for _, party in needed))
        if parties and verb not in parties:
            before = trajectory.steps[: step.index]
            # One of several who read a message has not been asked, and its answer could be elsewhere.
            asked = {each.recipients[0] for each in before if len(each.recipients) == 1}
            names = {*map(owner, before), *asked} - {actor, *USERS}
            approvers = {each for each in names if _approves(each, parties, own.get(each, ""))}
            yield step, (needed[0][0][:160], parties), approvers


def _unapproved(step: Step, why: str, told: str) -> ModeFinding:
    quotes = [told, quote(step.arguments)]
    return finding("3.2", 0.65, Evidence.HEURISTIC, why, [step], quotes)


def _consents(step: Step, act: Step, before: Sequence[Step]) -> bool:
    """Return whether a message may allow an act: it answers who acts, in whatever words, consents, or names the act."""
    actor = owner(act)
    asked = any(step.agent in e.recipients and owner(e) == actor for e in before[: step.index])
    told = [each for each in sentences(step.text) if not each.endswith("?")]
    return (asked and actor in step.recipients) or any(
        _CONSENTS.search(each) or _verb(act) in stems(each) for each in told
    )


def _verb(step: Step) -> str:
    """Return the stem of the first word of a tool's name."""
    return stem((re.findall(r"[A-Z]?[a-z]+|[A-Z]+", step.tool) or [step.tool])[0])


def _requirements(text: str, verb: str, apart: int = 0) -> list[tuple[str, frozenset[str]]]:
    """Return the sentences that allow an act only after an approval, each with the stems of the approving party.

    Args:
        text: the task or a system prompt.
        verb: stem of the act's.
        apart: sentences before that of the approval in which the act may be named.
    """
    found = []
    told = sentences(text[:4000])
    for place, sentence in enumerate(told):
        named = stems(" ".join(told[max(0, place - apart) : place + 1]))
        if verb not in named or not _NEEDS.search(sentence):
            continue
        if verb not in stems(sentence) and not _SAME.search(sentence):
            continue
        had = any(_HAD.match(each) for each in told[place + 1 : place + 2])
        if had or _CONDITION.search(sentence) or _BY_USER.search(sentence):
            continue
        parties = {
            stem(name)
            for match in _PARTY.finditer(sentence)
            for name in re.findall(r"\w+", match["before"] or match["after"])
        }
        found.append((sentence, frozenset(parties)))
    return found


def _approves(name: str, parties: frozenset[str], prompt: str) -> bool:
    """Return whether an agent is one who approves, by its name or its prompt."""
    named = {stem(word) for word in name_words(name)}
    return (
        checks(name)
        or bool(named & parties)
        or bool(_APPROVAL.search(prompt))
        or (bool(parties) and bool(parties & stems(prompt[:300])))
    )


@rule("3.3")
def approved_a_contradiction(trajectory: Trajectory) -> list[ModeFinding]:
    """A checking agent passes a statement that the run's results contradict (heuristic).

    Definition: MAST 3.3, "failure to adequately validate or cross-check crucial information". The
    statement is one that a rule of mode 2.6 finds; the approval is the checker's next word on it,
    without any reservation.
    """
    passed = [
        (step, match)
        for step in trajectory.steps
        if checks(step.agent) and is_said(step) and (match := approves(step)) is not None
    ]
    if not passed:
        return []
    for contradicted in _CONTRADICTED:
        for found in contradicted(trajectory):
            stated = [trajectory.steps[i] for i in found.steps if is_said(trajectory.steps[i])]
            if not stated:
                continue
            for step, match in passed:
                if _answers(trajectory, stated[0], step):
                    return [
                        finding(
                            "3.3",
                            min(0.7, found.probability),
                            Evidence.HEURISTIC,
                            f"{step.agent} passes what the record contradicts: {found.reason}",
                            [stated[0], step],
                            [first_line(stated[0]), quote(step.text, *match.span())],
                        )
                    ]
    return []


def _answers(trajectory: Trajectory, stated: Step, approval: Step) -> bool:
    """Return whether an approval is of a statement: the author says nothing new in between."""
    between = trajectory.steps[stated.index + 1 : approval.index]
    return (
        approval.index > stated.index
        and approval.agent != stated.agent
        and not any(is_said(step) and step.agent == stated.agent for step in between)
    )
