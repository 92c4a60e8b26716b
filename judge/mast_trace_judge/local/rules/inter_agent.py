"""Mode 2.5, ignored other agent's input."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import finding, first_line, is_said
from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.rules._inputs import inboxes_of
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.texts import alike, quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    import re

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

UNCHANGED = 0.88
"""Character 4-gram similarity from which a reply counts as the one before it."""
_CORRECTS = Phrases(
    r"\b(?:incorrect|not correct|wrong|mistake|that(?:'s| is) not|should (?:be|have been|use)"
    r"|please (?:fix|correct|revise|change|redo)|needs? to be (?:fixed|corrected|changed)"
    r"|does(?: not|n't) (?:match|work|add up|meet)|error in)\b",
    *("correct", "wrong", "mistake", "that's not", "that is not", "should ", "please "),
    *("fixed", "changed", "does", "error in"),
)


@rule("2.5")
def never_shown(trajectory: Trajectory) -> list[ModeFinding]:
    """A message went to an agent that acted afterwards, and its input never held it (exact).

    Definition: MAST 2.5, "disregarding or failing to adequately consider input provided by other
    agents". Counted only for agents whose recorded inputs hold other messages that were sent to
    them, as they were sent or quoted in a prompt: then the framework shows messages, and this one
    is missing. The inputs of an agent's models count where they are recorded: a node may be given
    more than it uses. The program that makes the inputs left it out, not the writer: the finding names the first
    step that the recipient took without it. Where the recipient's next input lacks what it was shown before, too, that is
    mode 1.4 or 2.1.
    """
    inboxes = inboxes_of(trajectory)
    sent = [step for step in trajectory.steps if is_said(step) and step.message_id]
    sent_to: dict[str, list[Step]] = defaultdict(list)
    for step in sent:
        for name in dict.fromkeys(step.recipients):
            sent_to[name].append(step)
    more: dict[str, bool] = {}
    for step in sent:
        for name in step.recipients:
            inbox = inboxes.get(name)
            if inbox is None or name == step.agent:
                continue
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
            return [
                finding(
                    "2.5",
                    0.85,
                    Evidence.EXACT,
                    f"{name} acts without what {step.agent} wrote to it: its input never held the message.",
                    [step, act],
                    [first_line(step)],
                )
            ]
    return []


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
