"""Modes 3.2 and 2.5: an act that was to wait for somebody's word, and a correction that was not heard."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace_judge.local.rules._evidence import (
    USERS,
    by_user,
    failed,
    finding,
    first_line,
    is_said,
)
from mast_trace_judge.local.rules._facts import (
    acts,
    amounts,
    arguments,
    days,
    ids,
    owner,
    prompts,
    sentences,
    stem,
    stems,
)
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_ASSENT = re.compile(
    r"\b(?:approv|grant|pass(?:es|ed)\b|review|decision|decid|sign(?:s|ed)?[ -]?off|consent|permission|authori[sz]|clear(?:s|ed|ance)\b"
    r"|confirm|agree|releas(?:es|ed)\b)\w*",
    re.IGNORECASE,
)
"""Words for another one's word that an act has to wait for."""
_WAITS = re.compile(
    r"\b(?:before|after|without|until|unless|then|what|never|nothing|no|once|first|anything else)\b",
    re.IGNORECASE,
)
_ASSENTS = re.compile(
    r"\b(?:approv\w*|go ahead|you (?:may|can)|may be|(?:fine|okay|ok) (?:with|by) me|lgtm|looks? (?:good|fine|right)|good to go|ok to|okay to"
    r"|grant\w*|clear(?:ed)? (?:to|for)|sign(?:ed)? off|signed-off|agreed?|no objections?|ready to|green light|please (?:proceed|go on)"
    r"|authori[sz]ed|confirmed|accepted|permitted|yes|passed|in order)\b",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\b(?:instead|correct(?:ion|ed)?|careful|not yet|change (?:that|this|it|\w+ to)|please (?:change|use|take|replace|make|fix|put)|one (?:more )?change"
    r"|(?:is|are|was) wrong|should be|must be|needs? to be|do(?: not|n't) approve|not approved|rejected|still (?:crash|fail|wrong)\w*|not quite"
    r"|rather than|wait)\b",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"\b(?:not yet|do(?: not|n't) approve|not approved|can(?:not|'t) approve|reject\w*|before (?:this|it) goes|(?:that|this|it|these)(?: first)?, then|is wrong|are wrong"
    r"|one (?:more )?change|not quite|hold on|wait|correction)\b",
    re.IGNORECASE,
)
_A_TEXT = 40
"""Characters of an argument above which it may be a text that was written anew."""


@rule("3.2", Reach.BACK, contradicts=True)
def skipped_approval(trajectory: Trajectory) -> list[ModeFinding]:
    """An act is done for which the task or a prompt asks another one's word first, and none came (heuristic).

    Definition: MAST 3.2, "(partial) omission of proper checking or confirmation of task outcomes".
    One sentence has a word such as "approve", one such as "before" or "without", and the verb of the
    tool. No message of another agent before the call assents, and no agent whose name the sentence
    holds has spoken. A message that corrects is a review, too. Only the first such call counts.
    """
    gates = _gates(trajectory)
    for step in trajectory.steps if gates else ():
        sentence = _gate(step, gates)
        if sentence is None:
            continue
        if _assented(trajectory.steps[: step.index], owner(step), sentence):
            return []
        why = f"{step.agent} calls {step.tool}, and nobody has assented before: {sentence[:200]}"
        return [finding("3.2", 0.6, Evidence.HEURISTIC, why, [step], [quote(step.arguments)])]
    return []


@rule("2.5", contradicts=True)
def unheard_correction(trajectory: Trajectory) -> list[ModeFinding]:
    """The next act after another agent's correction carries nothing of it (heuristic).

    Definition: MAST 2.5, "disregarding or failing to adequately consider input or recommendations
    provided by other agents". The correction is addressed to the agent that acts. It has an
    identifier, a date or a figure that no earlier message has, and the call has none of these and
    another value of the kind; or it has one figure, and the call has one that is not in it; or it
    refuses, and the next step of all is a call that has to wait for assent, with nothing of it.
    """
    gates = _gates(trajectory)
    steps = trajectory.steps
    nexts = _next_acts(steps)
    for place, step in enumerate(steps):
        if not is_said(step) or not _CORRECTS.search(step.text) or len(step.text) > 800:
            continue
        heard = [name for name in step.recipients if name.lower() not in USERS]
        act = nexts[place]
        if act is None or owner(act) not in heard or owner(act) == step.agent:
            continue
        if any(_corrects(each, act) for each in steps[place + 1 : act.index]):
            continue
        at_once = act.index == place + 1 and _REFUSES.search(step.text) and _gate(act, gates)
        if _is_unheard(step, act, steps[:place]) or (at_once and not _takes_up(act, step)):
            why = f"{step.agent} corrects, and {act.agent} calls {act.tool} with nothing of the correction."
            told = [first_line(step), quote(act.arguments)]
            return [finding("2.5", 0.6, Evidence.HEURISTIC, why, [step, act], told)]
    return []


def _next_acts(steps: Sequence[Step]) -> list[Step | None]:
    """Return the next call after each step that changes something."""
    found: list[Step | None] = []
    coming = None
    for step in reversed(steps):
        found.append(coming)
        coming = step if acts(step) and not failed(step) else coming
    return found[::-1]


def _takes_up(act: Step, correction: Step) -> bool:
    """Return whether a call may carry a correction: it has a longer text, or one of its words or values."""
    given = [str(each) for each in arguments(act).values()]
    return any(
        len(each) > _A_TEXT or re.search(rf"\b{re.escape(each)}\b", correction.text)
        for each in given
    )


def _corrects(step: Step, act: Step) -> bool:
    """Return whether another message to the actor came in between, which may have taken the correction back."""
    return is_said(step) and step.agent != owner(act)


def _is_unheard(correction: Step, act: Step, before: Sequence[Step]) -> bool:
    told, used = _values(correction.text), _values(act.arguments)
    said = {v for s in before if is_said(s) or by_user(s) for v in _values(s.text)}
    new = told - said
    if new:
        kinds = {type(each) for each in new}
        return not new & used and any(type(each) in kinds for each in used & said)
    figures = {each for each in told if isinstance(each, float)}
    acted = {each for each in used if isinstance(each, float)}
    return (
        len(figures) == 1
        and not figures & acted
        and bool((acted & said) - told)
        and _alike(figures, acted & said)
    )


def _alike(one: set[float], others: set[float]) -> bool:
    """Return whether a figure is of the size of another one, as a corrected amount is of the amount."""
    return any(0.5 <= other / figure <= 2 for figure in one for other in others if figure)


def _values(text: str) -> set[object]:
    named = {reading[1:] for day in days(text) for reading in day.readings}
    return {*named, *ids(text), *(v for a in amounts(text) for v in a.as_one)}


def _gates(trajectory: Trajectory) -> list[tuple[str, str]]:
    """Return the sentences that let an act wait for another one's word, with the agent whose prompt has each."""
    told = [
        ("", trajectory.task[:4000]),
        *((a, text[:4000]) for a, text in prompts(trajectory).items()),
    ]
    return [
        (agent, sentence)
        for agent, text in told
        for sentence in sentences(text)
        if _ASSENT.search(sentence) and _WAITS.search(sentence)
    ]


def _gate(step: Step, gates: Sequence[tuple[str, str]]) -> str | None:
    """Return the sentence by which a call has to wait, if there is one."""
    if not acts(step) or failed(step):
        return None
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", step.tool)
    things = "|".join(map(re.escape, words))
    for agent, sentence in gates:
        if agent in ("", owner(step)) and words:
            bare = re.search(
                rf"\b(?:no|any|every|each|all) (?:{things})s?\b", sentence, re.IGNORECASE
            )
            if stem(words[0]) in stems(sentence) or bare:
                return sentence
    return None


def _assented(before: Sequence[Step], actor: str, sentence: str) -> bool:
    named = stems(sentence)
    return any(
        is_said(step)
        and step.agent != actor
        and (
            _ASSENTS.search(step.text)
            or _REFUSES.search(step.text)
            or stem(step.agent) in named
            or by_user(step)
        )
        for step in before
    )
