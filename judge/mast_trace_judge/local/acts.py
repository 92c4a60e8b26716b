"""Acting agents, tool calls and the writing of findings: what rules, attribution and contrast share."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.local.outcome import recorded_outcome
from mast_trace_judge.local.phrases import lowered
from mast_trace_judge.local.texts import number, numbers, quote, says_failed
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace.trajectory import Invocation, Step, Trajectory

USERS = frozenset(
    {"", "user", "_user", "human", "user_proxy", "userproxy", "customer", "__start__"}
)
"""Names under which a person, or the program in a person's place, takes part."""

_REMEMBERED = 20_000
"""Length up to which arguments are kept in their canonical form: several rules compare them."""
_ENDS_RUN = frozenset(
    [
        "answer",
        "submit",
        "finish",
        "final",
        "done",
        "complete",
        "respond",
        "reply",
        "send",
        "end",
        "write",
        "save",
        "publish",
    ]
)
_HANDOFF = re.compile(r"^(?:transfer|hand_?off|delegate)(?:_|$)", re.IGNORECASE)
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CHECKER = re.compile(
    r"verif|valid|review|critic|tester|checker|qa\b|quality|inspect|audit|evaluat|judge",
    re.IGNORECASE,
)

DOUBT = re.compile(
    r"\b(?:not|no|never|neither|nor|none|cannot|without|wrong|incorrect|false|mistake\w*|instead|rather"
    r"|unlike|except|than|if|unless|whether|would|could|might|suppos\w*|assum\w*|imagine[ds]?|hypothe\w*"
    r"|pretend|example|expected|forecast|previous\w*|former\w*|earlier|used to|once|ago|yesterday|formerly"
    r"|last (?:year|month|week|time|season)|(?:in|since|until|before) (?:19|20)\d\d|nicht|kein\w*|falsch"
    r"|statt|wenn|falls|w[aä]re|w[uü]rde|fr[uü]her|si|nunca|incorrecto|pas|jamais|serait)\b|n't\b"
    r"|[?\u4e0d\u9519\u5982]",
    re.IGNORECASE,
)
"""Words of sentences that deny or doubt what they tell, or that speak of another case or time."""
_NEGATION = re.compile(
    r"not|no|never|neither|nor|none|without|n't|nicht|kein\w*|pas", re.IGNORECASE
)
_CLAUSE = re.compile(r"[,;] | [-\u2013] ")
_QUOTED = re.compile(r"[\"\u201c\u201e\u00ab](?:[^\"\u201c\u201d\u00bb\n]*)[\"\u201d\u201c\u00bb]")
_LINE = 1000
"""Characters before and behind a passage in which a quotation may begin and end."""
_TWO_WORDS = re.compile(r"[^\W\d_]{2,}\W+[^\W\d_]{2,}")
_ANNOUNCED = (
    ("final answer:", re.compile(r"FINAL ANSWER:\s*(.+)")),
    ("boxed{", re.compile(r"\\boxed\{([^{}]+)\}")),
    (
        "answer ",
        re.compile(
            r"(?:final |correct )?answer (?:is|to [^.\n]{0,80} is|:)[:\s]*(.+)", re.IGNORECASE
        ),
    ),
    ("**", re.compile(r"\bis (?:therefore |thus |approximately )?\*\*([^*\n]{1,80})\*\*")),
    ("**", re.compile(r"\*\*([^*\n]{1,80})\*\*")),
)
"""Patterns of an announced value, each with the signs that its matches contain in lower case."""
_COUNTS = re.compile(r"\b(?:all|the|these|first|last|next|top) $", re.IGNORECASE)
"""Words before a number of things, as in "all 5 tests pass", which is no answer."""
_EMPTY = re.compile(r"(?:TERMINATE|RUN\.SH COMPLETE[^\n]*|SCENARIO\.PY COMPLETE[^\n]*|[\s!#])*")
_LAST = 12
"""Steps at the end of a run among which its last words are sought."""
_EDGES = " \t\r\n*`\"'.,:;$"


def finding(
    code: str,
    probability: float,
    evidence: Evidence,
    reason: str,
    steps: Iterable[Step],
    quotes: Iterable[str] = (),
) -> ModeFinding:
    """Write a finding; steps in order and once each, without empty and duplicate quotes."""
    return ModeFinding(
        code=code,
        probability=probability,
        evidence=evidence,
        reason=reason,
        steps=tuple(sorted({step.index for step in steps})),
        quotes=tuple(dict.fromkeys(text for text in quotes if text)),
    )


def doubted(text: str, start: int, end: int) -> bool:
    """Return whether a passage stands in a quotation, or in a sentence that denies or doubts it.

    A negation behind the clause that follows the passage is of something else. A quotation has words; names
    and values of JSON are none.
    """
    sentence = quote(text, start, end, limit=400)
    behind = sentence.find(text[start:end]) + end - start
    ends = [each.start() for each in islice(_CLAUSE.finditer(sentence, behind), 2)]
    near_by = ends[1] if len(ends) > 1 else len(sentence)
    for found in DOUBT.finditer(sentence):
        if found.start() < near_by or not _NEGATION.fullmatch(found[0]):
            return True
    if text[:100].lstrip()[:1] in ("{", "[", "`"):
        return False
    left = max(text.rfind("\n", max(0, start - _LINE), start) + 1, start - _LINE, 0)
    return any(
        match.start() < start - left and end - left < match.end() and _TWO_WORDS.search(match[0])
        for match in _QUOTED.finditer(text[left : end + _LINE])
    )


def by_user(step: Step) -> bool:
    """Return whether a person, not an agent, wrote the step."""
    if (
        not step.agent and step.role == "assistant"
    ):  # a model's answer, recorded by its client alone
        return False
    return step.kind is StepKind.MESSAGE and step.agent.lower() in USERS


def speakers(trajectory: Trajectory) -> set[str]:
    """Return the names of the agents that write messages themselves; a user is none."""
    return {step.agent for step in trajectory.steps if is_said(step)}


def is_team(steps: Iterable[Step]) -> bool:
    """Return whether two agents take part: they act, are written to, or are handed the work."""
    names = {name for step in steps for name in (step.agent, *step.recipients, step.handoff_to)}
    return len({name for name in names if name.lower() not in USERS}) >= 2


def is_handoff(step: Step) -> bool:
    """Return whether the step only passes control on."""
    return bool(step.handoff_to) or (step.kind is StepKind.TOOL and bool(_HANDOFF.match(step.tool)))


def is_tool(step: Step) -> bool:
    """Return whether a tool ran that does more than pass control on."""
    return step.kind is StepKind.TOOL and not is_handoff(step)


def is_said(step: Step) -> bool:
    """Return whether an agent wrote it itself: no tool, no user, no text of the framework's."""
    return (
        step.kind is not StepKind.TOOL
        and bool(step.text.strip())
        and not step.synthetic
        and not by_user(step)
        and step.role not in {"tool", "system"}
    )


def has_failed(trajectory: Trajectory) -> bool:
    """Return whether other evidence than a rule shows that the run failed."""
    recorded = recorded_outcome(trajectory)
    return recorded is not None and recorded.outcome == "failure"


def failed(step: Step) -> bool:
    """True if a tool run failed: its span is marked so, or its output is that of a failed execution."""
    return step.error is not None or (is_tool(step) and says_failed(step.text) is not None)


@lru_cache(maxsize=1024)
def checks(agent: str) -> bool:
    """Return whether an agent's name claims that it checks the work of others."""
    return bool(_CHECKER.search(agent))


def call_key(step: Step) -> tuple[str, str, str]:
    """Return agent, tool and arguments of a call; equal for equal calls."""
    return (step.agent, step.tool, _canonical(step.arguments))


def result_key(step: Step) -> str:
    """Return the identity of a call's result; empty where content is not captured."""
    return step.text.strip() or (step.error or "")


@lru_cache(maxsize=1024)
def name_words(name: str) -> frozenset[str]:
    """Split a tool's name into its words: ``getWeather_now`` into get, weather and now."""
    return frozenset([word.lower() for word in _NAME_WORD.findall(name)])


def ends_run(step: Step) -> bool:
    """Return whether a tool call delivers the answer or ends the run, by the tool's name."""
    return step.kind is StepKind.TOOL and bool(_ENDS_RUN & name_words(step.tool))


def ending(steps: Sequence[Step]) -> Step:
    """Return the step that ended a run: a call among the last three that does so, else the last."""
    return next((step for step in reversed(steps[-3:]) if ends_run(step)), steps[-1])


def first_line(step: Step) -> str:
    """Return the first line of a step's text, word for word."""
    return quote(step.text)


def conversations(trajectory: Trajectory) -> dict[str, str]:
    """Map each turn and model call to the span around all turns of its conversation.

    Nested chats, and programs that run several conversations in one trace, have one each.
    """
    around = Conversations(trajectory)
    return {call.span_id: around.of(call.span_id) for call in trajectory.invocations}


class Conversations:
    """Finds the first ancestor of a span that is neither a turn nor a model call."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._parents = {call.span_id: call.parent_span_id for call in trajectory.invocations}
        self._known: dict[str, str] = {}

    def of(self, span: str) -> str:
        """Return that ancestor; the span itself if it is neither. Each span is passed once."""
        passed: dict[str, None] = {}
        while span in self._parents and span not in passed and span not in self._known:
            passed[span] = None
            span = self._parents[span]
        found = self._known.get(span, span)
        # Spans whose parents form a circle have no first one: they are a conversation of their own.
        self._known.update(dict.fromkeys(passed, found))
        return found


def shown_together(trajectory: Trajectory) -> list[list[Invocation]]:
    """Group inputs into sequences in which an agent's input should only grow.

    The sequences are: an agent's turns in one conversation; its model calls within one turn; and
    the first model calls of those turns that saw all that the agent's first turn saw, and more. A
    program that asks an agent anew starts new sequences.
    """
    around = conversations(trajectory)
    turns = {call.span_id: call for call in trajectory.invocations if call.kind == "agent"}
    first: dict[tuple[str, str], Invocation] = {}
    groups: dict[tuple[str, str, str], list[Invocation]] = defaultdict(list)
    opened: set[str] = set()
    for call in trajectory.invocations:
        if not call.agent:
            continue
        conversation = around[call.span_id]
        if call.kind == "agent":
            first.setdefault((call.agent, conversation), call)
            groups["agent", call.agent, conversation].append(call)
            continue
        groups["model", call.agent, call.parent_span_id].append(call)
        turn, opening = turns.get(call.parent_span_id), first.get((call.agent, conversation))
        if turn is None or opening is None or turn.span_id in opened:
            continue
        opened.add(turn.span_id)
        if turn is opening or set(turn.input_ids) > set(opening.input_ids):
            groups["opening", call.agent, conversation].append(call)
    return list(groups.values())


def folded(trajectory: Trajectory, ids: Iterable[str]) -> str:
    """Return all that was shown as one text: frameworks may quote a message in another."""
    return "\n".join(
        " ".join(trajectory.texts[identity].content.lower().split())
        for identity in ids
        if identity in trajectory.texts
    )


def ordinary(trajectory: Trajectory) -> list[Step]:
    """Return the steps that agents and tools made, in order."""
    return [step for step in trajectory.steps if not step.synthetic and not by_user(step)]


def _canonical(arguments: str) -> str:
    return _sorted(arguments) if len(arguments) <= _REMEMBERED else _read_sorted(arguments)


@lru_cache(maxsize=256)
def _sorted(arguments: str) -> str:
    return _read_sorted(arguments)


def _read_sorted(arguments: str) -> str:
    try:
        value: Any = json.loads(arguments)
        return json.dumps(value, sort_keys=True)
    except (ValueError, RecursionError):
        return " ".join(arguments.split())


def final_answer(steps: Sequence[Step]) -> str:
    """Return the value that the last words announce, else their last number; empty if they have none."""
    if value := announced(steps):
        return value
    spoken = _spoken(steps)
    end = spoken[-1][-1000:] if spoken else ""
    stated = [each[0] for each in numbers(end) if not _COUNTS.search(end[: each.start()])]
    return stated[-1] if stated else ""


def announced(steps: Sequence[Step]) -> str:
    """Return the value that the last words announce as the answer; empty if they announce none.

    The words looked at are the last three texts that hold more than a signal to stop.
    """
    for text in reversed(_spoken(steps)[-3:]):
        end = text[-3000:]
        low = lowered(end)
        for sign, pattern in _ANNOUNCED:
            found = pattern.findall(end) if sign in low else []
            value = found[-1].strip(_EDGES) if found else ""
            if value:
                return value[:200]
    return ""


def _spoken(steps: Sequence[Step]) -> list[str]:
    return [text for step in steps[-_LAST:] if not _EMPTY.fullmatch(text := _words(step))]


def _words(step: Step) -> str:
    """Return the text of a step; for a call that ends the run, also its arguments."""
    return f"{step.arguments}\n{step.text}" if step.tool and ends_run(step) else step.text


def introduced(trajectory: Trajectory, value: str) -> int | None:
    """Return the first step after the task that holds the value; None if the task holds it."""
    if not value:
        return None
    if holds(trajectory.task, value):
        return None
    for step in trajectory.steps:
        if by_user(step) or step.text.startswith(trajectory.task[:200] or "\0"):
            continue
        if holds(step.text, value):
            return step.index
    return None


def holds(text: str, value: str) -> bool:
    """Return whether a text holds a value: as a number where it is one, else as words."""
    wanted = numbers(value)
    if len(wanted) == 1 and len(value) <= 30:
        figure = number(wanted[0][0])
        return any(number(match[0]) == figure for match in numbers(text))
    folded = " ".join(value.lower().split())
    return folded in " ".join(text.lower().split())
