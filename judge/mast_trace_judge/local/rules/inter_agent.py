"""Mode 2.5, ignored other agent's input."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import finding, first_line, is_said
from mast_trace_judge.local.figures import known_values
from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.rules._inputs import inboxes_of
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.stated import stem
from mast_trace_judge.local.texts import alike, quote, words
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.rules._inputs import Inbox
    from mast_trace_judge.verdict import ModeFinding

UNCHANGED = 0.88
"""Character 4-gram similarity from which a reply counts as the one before it."""
_LETTERS, _QUOTABLE = 4, 20
"""Letters of a word that counts, and characters from which a text that occurs in another one is quoted."""
_SEARCHED = 200_000_000
"""Characters of prompts, once for each text of the run, up to which quotations are sought."""
_CORRECTS = Phrases(
    r"\b(?:incorrect|not correct|wrong|mistake|that(?:'s| is) not|should (?:be|have been|use)"
    r"|please (?:fix|correct|revise|change|redo)|needs? to be (?:fixed|corrected|changed)"
    r"|does(?: not|n't) (?:match|work|add up|meet)|error in)\b",
    *("correct", "wrong", "mistake", "that's not", "that is not", "should ", "please "),
    *("fixed", "changed", "does", "error in"),
)


@rule("2.5")
def never_shown(trajectory: Trajectory) -> list[ModeFinding]:
    """A message went to an agent that acted afterwards, and its input never held it.

    Definition: MAST 2.5, "disregarding or failing to adequately consider input provided by other
    agents". Counted only for agents whose recorded inputs hold other messages that were sent to
    them, as they were sent or quoted in a prompt: then the framework shows messages, and this one
    is missing. The inputs of an agent's models count where they are recorded: a node may be given
    more than it uses. The program that makes the inputs left it out, not the writer: the finding names the first
    step that the recipient took without it. Where the recipient's next input lacks what it was shown before, too, that is
    mode 1.4 or 2.1. Exact where messages are shown as they are. Heuristic where prompts of the program's own quote some,
    and nothing where they have most of the message's words. A message to several counts where all others who act later
    were shown it, and such messages reach it at all; if it is the only one to several, it counts in failed runs, and is
    heuristic. A run that succeeded did not need it.
    """
    inboxes = inboxes_of(trajectory) if trajectory.outcome != "success" else {}
    sent = [step for step in trajectory.steps if is_said(step) and step.message_id]
    sent_to: dict[str, list[Step]] = defaultdict(list)
    for step in sent:
        for name in dict.fromkeys(step.recipients):
            sent_to[name].append(step)
    more: dict[str, bool] = {}
    as_is: dict[str, bool] = {}
    for step, inbox in _addressed(sent, inboxes):
        name = inbox.name
        if step.message_id in inbox.ids or not inbox.expects(sent_to[name]):
            continue
        after = inbox.first_after(step.end)
        if after is None:
            continue
        if after.span_id not in more:
            more[after.span_id] = inbox.saw_more_before(after)
        act = _act_after(trajectory, step, name, after.start)
        if act is None or more[after.span_id] or inbox.quotes(step):
            continue
        if name not in as_is:
            as_is[name] = _shows_as_is(trajectory, inbox)
        told = not as_is[name] and _is_told(trajectory, step, inbox)
        missed = not told and _is_missed(step, inbox, inboxes, sent_to[name])
        if missed or (missed is None and trajectory.outcome == "failure"):
            return [_never_shown(step, act, name, exact=as_is[name] and missed is True)]
    return []


def _addressed(sent: Iterable[Step], inboxes: Mapping[str, Inbox]) -> Iterator[tuple[Step, Inbox]]:
    """Yield each message with each of its recipients that reads, other than its writer."""
    for step in sent:
        for name in step.recipients:
            if name in inboxes and name != step.agent:
                yield step, inboxes[name]


def _never_shown(step: Step, act: Step, name: str, *, exact: bool) -> ModeFinding:
    return finding(
        "2.5",
        0.85 if exact else 0.6,
        Evidence.EXACT if exact else Evidence.HEURISTIC,
        f"{name} acts without what {step.agent} wrote to it: its input never held the message.",
        [step, act],
        [first_line(step)],
    )


def _shows_as_is(trajectory: Trajectory, inbox: Inbox) -> bool:
    """Return whether an agent was shown messages as they are, and no prompt of the program's own that quotes them."""
    said = {" ".join(each.text.lower().split()) for each in trajectory.steps}
    quoting = "\n".join(line for line in (inbox.text or "").split("\n") if line not in said)
    if len(quoting) * len(said) > _SEARCHED:
        return False
    return not any(each in quoting for each in said if len(each) >= _QUOTABLE)


def _is_told(trajectory: Trajectory, step: Step, inbox: Inbox) -> bool:
    """Return whether the task or an agent's inputs have most of a message's words."""
    told = _words(step.text)
    seen = _words(f"{trajectory.task} {inbox.text or ''}")
    return len(told - seen) * 2 <= len(told)


def _words(text: str) -> set[str | float]:
    """Return the figures of a text, and the stems of its words of four letters or more."""
    return {*known_values([text]), *(stem(each) for each in words(text) if len(each) >= _LETTERS)}


def _is_missed(
    step: Step, inbox: Inbox, inboxes: Mapping[str, Inbox], sent: Iterable[Step]
) -> bool | None:
    """Return whether a message is missing: one to several if all others who read later were shown it, and such ones reach this recipient.

    None if there is no other to several, and the others were either all shown it or none: whom the program shows such
    ones is not known then.
    """
    others = [inboxes[each] for each in step.recipients if each in inboxes]
    others = [each for each in others if each.name not in (inbox.name, step.agent)]
    if not others:
        return True
    shown = {_holds(each, step) for each in others if each.first_after(step.end) is not None}
    to_several = [each for each in sent if len({*each.recipients} - {each.agent}) > 1]
    if to_several == [step] and len(shown) < 2:
        return None
    return False not in shown and any(_holds(inbox, each) for each in to_several)


def _holds(inbox: Inbox, step: Step) -> bool:
    return step.message_id in inbox.ids or inbox.quotes(step)


def _act_after(trajectory: Trajectory, step: Step, name: str, time: int) -> Step | None:
    """Return the first step after another one that an agent ended after a time."""
    later = trajectory.steps[step.index + 1 :]
    return next((each for each in later if each.agent == name and each.end >= time), None)


@rule("2.5", of_failures=True)
def unchanged_after_correction(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent is corrected by another one and says the same again (heuristic).

    Definition: MAST 2.5; the two messages agree to 0.88 or more.
    """
    corrected: dict[str, tuple[Step, Step, re.Match[str]]] = {}
    previous: Step | None = None
    for step in trajectory.steps:
        if not is_said(step):
            continue
        if step.agent in corrected:
            own, correction, match = corrected.pop(step.agent)
            if len(step.text) >= 40 and alike(own.text, step.text, UNCHANGED):
                return [
                    finding(
                        "2.5",
                        0.65,
                        Evidence.HEURISTIC,
                        f"{step.agent} says almost the same again after words of correction by {correction.agent}.",
                        [own, correction, step],
                        [quote(correction.text, *match.span()), first_line(step)],
                    )
                ]
        found = _CORRECTS.search(step.text)
        if found and previous is not None and previous.agent != step.agent:
            corrected[previous.agent] = (previous, step, found)
        previous = step
    return []
