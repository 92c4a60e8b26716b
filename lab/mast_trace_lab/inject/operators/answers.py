"""Operators that replace a model's answer."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from mast_trace.messages import ToolCall, parsed
from mast_trace_lab.inject.operators.operator import (
    NUMBER,
    Operator,
    other_number,
    with_number_changed,
    without_a_fact,
)
from mast_trace_lab.inject.operators.phrases import ASSUMED, LATER, ONCE_MORE, UNCHECKED
from mast_trace_lab.inject.sites import ENDINGS, Change, RecordedAnswer, answers_of, hands_over

if TYPE_CHECKING:
    from random import Random

_UNITS: Final = (
    ("EUR", "USD"),
    ("€", "$"),
    ("USD", "EUR"),
    ("kilometres", "miles"),
    ("km", "miles"),
    ("kg", "lb"),
    ("pieces", "boxes"),
    ("minutes", "hours"),
    ("days", "weeks"),
)
_WRONG: Final = re.compile(
    r"\b(wrong|incorrect|error|mistake|fails?|failed|not correct|does not match|differs|too (?:high|low))\b",
    re.IGNORECASE,
)
_END: Final = re.compile(r"\bTERMINATE\b|\bFINISH\b|\bDONE\b")


def _text(site: RecordedAnswer, text: str, rng_phrasing: int = 0, *, calls: bool = False) -> Change:
    """Return the change to another text, with the answer's own calls or with none."""
    own = site.said.tool_calls if calls else ()
    return Change(site.step, "answer", text, own, phrasing=rng_phrasing)


def _phrase(site: RecordedAnswer, phrases: tuple[str, ...], rng: Random) -> Change:
    number = rng.randrange(len(phrases))
    return _text(site, phrases[number], number)


def _unit(site: RecordedAnswer, rng: Random) -> Change | None:
    pairs = [
        (one, two) for one, two in _UNITS if _word(one, site.task) and _word(one, site.said.content)
    ]
    if not pairs or site.said.tool_calls:
        return None
    number = rng.randrange(len(pairs))
    one, two = pairs[number]
    return _text(site, _replaced(one, two, site.said.content), number)


def _word(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _replaced(one: str, two: str, text: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(one)}(?!\w)", lambda _: two, text)


def _constraint(site: RecordedAnswer, rng: Random) -> Change | None:
    """Change a number that the task states, in an answer that keeps to it."""
    if site.said.tool_calls:
        return None
    text = with_number_changed(site.said.content, rng, among=site.task)
    return None if text is None else _text(site, text)


def _repeat(site: RecordedAnswer, rng: Random) -> Change | None:
    if not site.earlier_calls:
        return None
    call = rng.choice(site.earlier_calls)
    return Change(site.step, "answer", "", (ToolCall(call.name, call.arguments),))


def _go_on(site: RecordedAnswer, rng: Random) -> Change | None:
    """Leave the end out: the termination word, or the tool that ends the conversation."""
    ends = [call for call in site.said.tool_calls if call.name.lower() in ENDINGS]
    number = rng.randrange(len(ONCE_MORE))
    if ends:
        return _text(site, ONCE_MORE[number], number)
    if _END.search(site.said.content):
        left = _END.sub("", site.said.content).strip()
        return _text(site, f"{left}\n{ONCE_MORE[number]}".strip(), number)
    return None


def _assume(site: RecordedAnswer, rng: Random) -> Change | None:
    asks = site.said.content.rstrip().endswith("?") and not site.said.tool_calls
    return _phrase(site, ASSUMED, rng) if asks else None


def _hand_over_wrongly(site: RecordedAnswer, rng: Random) -> Change | None:
    calls = [call for call in site.said.tool_calls if hands_over(site.run, call.name)]
    if len(calls) != 1:
        return None
    others = sorted(
        {
            call.name
            for each in answers_of(site.run)
            for call in each.said.tool_calls
            if hands_over(site.run, call.name) and call.name != calls[0].name
        }
    )
    if not others:
        return None
    return Change(
        site.step, "answer", site.said.content, (ToolCall(rng.choice(others), calls[0].arguments),)
    )


def _derail(site: RecordedAnswer, rng: Random) -> Change | None:
    """Hand a sub-task over with another number in its text."""
    calls = list(site.said.tool_calls)
    for place, call in enumerate(calls):
        arguments = parsed(call.arguments)
        if not hands_over(site.run, call.name) or not isinstance(arguments, dict):
            continue
        for key, value in arguments.items():
            text = with_number_changed(value, rng) if isinstance(value, str) else None
            if text is not None:
                calls[place] = ToolCall(call.name, {**arguments, key: text}, call.id)
                return Change(site.step, "answer", site.said.content, tuple(calls))
    return None


def _withhold(site: RecordedAnswer, rng: Random) -> Change | None:
    if site.said.tool_calls or not site.result_read:
        return None
    text = without_a_fact(site.said.content, rng, NUMBER.findall(site.result_read))
    return None if text is None else _text(site, text)


def _misread(site: RecordedAnswer, rng: Random) -> Change | None:
    if site.said.tool_calls or not site.result_read:
        return None
    text = with_number_changed(site.said.content, rng, among=site.result_read)
    return None if text is None else _text(site, text)


def _miscalculate(site: RecordedAnswer, rng: Random) -> Change | None:
    """Change a number of the answer that no message before it holds: one that the agent has computed."""
    before = "\n".join(each.content for each in site.shown)
    known = set(NUMBER.findall(before))
    own = sorted({each for each in NUMBER.findall(site.said.content) if each not in known})
    if site.said.tool_calls or not own:
        return None
    chosen = rng.choice(own)
    wrong = other_number(chosen, rng)
    text = NUMBER.sub(lambda match: wrong if match[0] == chosen else match[0], site.said.content)
    return _text(site, text)


def _other_arguments(site: RecordedAnswer, rng: Random) -> Change | None:
    """Call a tool with an argument that differs from the one that the messages before name."""
    calls = [call for call in site.said.tool_calls if not hands_over(site.run, call.name)]
    if not calls:
        return None
    call = rng.choice(calls)
    arguments = parsed(call.arguments)
    if not isinstance(arguments, dict):
        return None
    changed = with_number_changed(json.dumps(arguments, sort_keys=True), rng)
    if changed is None:
        return None
    others = tuple(
        ToolCall(call.name, json.loads(changed), call.id) if each is call else each
        for each in site.said.tool_calls
    )
    return Change(site.step, "answer", site.said.content, others)


def _end_early(site: RecordedAnswer, rng: Random) -> Change | None:
    works = bool(site.said.tool_calls) and not site.is_last
    return _phrase(site, LATER, rng) if works and not site.checks else None


def _skip_check(site: RecordedAnswer, rng: Random) -> Change | None:
    checking = [call for call in site.said.tool_calls if not hands_over(site.run, call.name)]
    return _phrase(site, UNCHECKED, rng) if checking and site.checks else None


def _approve(site: RecordedAnswer, rng: Random) -> Change | None:
    objects = site.checks and not site.said.tool_calls and _WRONG.search(site.said.content)
    return _phrase(site, UNCHECKED, rng) if objects else None


ANSWERS: Final = (
    Operator("1.1-unit", "The answer uses another unit than the task asks for.",
             "The task names the unit.", _unit,
             applies="An answer without tool calls names a unit that the task names."),
    Operator("1.1-constraint", "The answer breaks a number that the task states.",
             "The task states the number.", _constraint,
             applies="An answer without tool calls names a number that the task states."),
    Operator("1.3-repeat", "The agent makes an earlier tool call again.",
             "Tool and arguments are equal to those of an earlier call of the same agent.", _repeat,
             applies="The agent has called a tool before."),
    Operator("1.5-no-end", "The agent goes on where it had ended the run.",
             "The recorded answer held the termination word or tool.", _go_on,
             applies="An answer holds the termination word, or calls the tool that ends the run."),
    Operator("2.2-assume", "The agent assumes something instead of asking for it.",
             "The recorded answer asked.", _assume,
             applies="An answer without tool calls ends with a question."),
    Operator("2.3-wrong-agent", "The task goes to an agent that is not responsible.",
             "The recorded answer handed over to another agent.", _hand_over_wrongly,
             applies="An answer hands over once, and the run hands over to another agent elsewhere."),
    Operator("2.3-other-task", "A sub-task is handed over with another number.",
             "The recorded arguments held the right number.", _derail,
             applies="A hand-over names a number in its arguments."),
    Operator("2.4-withhold", "A report leaves out a sentence with a figure of the tool's result.",
             "The recorded report held it; certain if restoring it repairs the run.", _withhold,
             applies="A report follows a tool result directly and repeats one of its numbers in one of several sentences."),
    Operator("2.6-number", "The answer names another number than the tool result just read.",
             "The tool result that was just read holds the right number.", _misread,
             applies="A report follows a tool result directly and names one of its numbers."),
    Operator("2.6-computed", "The answer names a wrong result of the agent's own reasoning.",
             "The recorded answer held another one.", _miscalculate,
             applies="An answer without tool calls names a number that no message before it holds."),
    Operator("2.6-arguments", "A tool is called with another number than was asked for.",
             "The recorded arguments held the right number.", _other_arguments,
             applies="A tool is called with a number, hand-overs excluded."),
    Operator("3.1-later", "The agent ends with a promise in place of its work.",
             "The recorded answer went on with a tool call.", _end_early,
             applies="An agent that does not check calls a tool, and more answers follow."),
    Operator("3.2-unchecked", "The checking agent approves without its checking tool call.",
             "The recorded answer made the checking call.", _skip_check,
             applies="An agent whose name or prompt says that it checks calls a tool."),
    Operator("3.3-approve", "The checking agent approves what it had found wrong.",
             "The recorded answer objected.", _approve,
             applies="An agent that checks says, without a tool call, that something is wrong."),
)  # fmt: skip
"""Operators at the level of answers."""
