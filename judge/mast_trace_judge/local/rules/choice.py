"""Mode 2.6, reasoning-action mismatch, where an answer or an act takes another option than the results or the agents name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import (
    by_user,
    doubted,
    failed,
    finding,
    is_said,
    is_tool,
    name_words,
)
from mast_trace_judge.local.options import (
    Options,
    Value,
    choices_in,
    is_choice,
    options_of,
    wish_of,
    wishes_of,
)
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.stated import LEFT_OUT, acts, arguments, prompts
from mast_trace_judge.local.texts import prose, quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.options import Wish
    from mast_trace_judge.verdict import ModeFinding

_DOUBTED = re.compile(
    r"\b(?:not|no|cannot|unable|except|instead|rather|than|but|however|if|although|nicht|kein\w*|aber|pero)\b"
    r"|n't\b|\?",
    re.IGNORECASE,
)
_PROBABILITY = 0.75
_ABOUT = re.compile(rf"{LEFT_OUT.pattern}|text|message|body|title|subject")
"""Names of arguments that say what is left out or left behind, or that hold words."""
_LISTS = 20
"""Lists of options that are remembered, the last ones."""
_TRIED, _FAR = 50, 2000
"""Calls of a run that are compared, and steps behind a list: each looks at all of these."""


@rule("2.6", needs_end=True)
def unfavoured_choice(trajectory: Trajectory) -> list[ModeFinding]:
    """The answer names an option, and another one is better in what the task asks for (heuristic).

    Definition: MAST 2.6, "discrepancy between the logical reasoning process and the actual actions
    taken by the agent". The task asks for the cheapest, warmest or the like of several things, the
    tools returned that figure for each, in one unit, and the last message names exactly one of them.
    The other is better in the figure, and in everything else that was returned it equals the named
    one, or is as the task says in words ("sunny or mild"). Where the task names the options, only
    those count. Tasks with other conditions, several messages of a user, instructions that name an
    option, and answers that doubt or that speak of the opposite are left alone.
    """
    said = [step for step in trajectory.steps if is_said(step)]
    users = [step for step in trajectory.steps if by_user(step)]
    wish = wish_of(trajectory.task) if said and len(users) <= 1 else None
    answer = prose(said[-1].text) if said else ""
    if wish is None or _DOUBTED.search(answer) or not _speaks_of(answer, wish):
        return []
    options = _asked_for(options_of(trajectory), trajectory.task)
    named = _named(answer, options)
    measured = _measured(options, wish)
    if named is None or measured is None or measured not in options[named]:
        return []
    if _is_instructed(trajectory, options):
        return []
    own = options[named][measured]
    for other, values in options.items():
        better = values.get(measured)
        if better is None or other == named or not _is_better(better, own, wish.sign):
            continue
        if _is_as_fit(values, options[named], measured, trajectory.task):
            return [_finding(said[-1], wish, (named, own), (other, better))]
    return []


@rule("2.6", contradicts=True)
def another_option(trajectory: Trajectory) -> list[ModeFinding]:
    """A call that changes something takes an option of a result, and the agents named another one alone (heuristic).

    Definition: MAST 2.6. A result lists options by their names; between it and the call the agents' messages name exactly
    one of them, without a doubt, and nothing else of the run names the one that the call takes. No call takes the named
    one, no result tells of it, and no later text speaks of both, as one that gives a reason would.
    """
    said = [trajectory.task, *prompts(trajectory).values(), *trajectory.human_inputs]
    listed: list[tuple[Step, list[str]]] = []
    tried = 0
    for step in trajectory.steps:
        if step.index and by_user(step):
            listed = []
            said.append(step.text)
        if not is_tool(step) or failed(step):
            continue
        for key, value in arguments(step).items() if acts(step) and listed else ():
            taken = str(value)
            if not is_choice(value) or any(map(_ABOUT.fullmatch, name_words(key))):
                continue
            held = [each for each in listed if taken.lower() in map(str.lower, each[1])]
            if not held or any(_is_in(taken, text) for text in said):
                continue
            source, names = held[-1]
            tried += 1
            if tried > _TRIED or len(trajectory.steps) - source.index > _FAR:
                return []
            named = _named_alone(trajectory, source, step, names, taken)
            if named is not None:
                meant, message = named
                why = f"{step.agent} calls {step.tool} with {taken}, and {message.agent} named {meant} of the {len(names)} options."
                told = [quote(message.text), quote(step.arguments)]
                return [finding("2.6", 0.65, Evidence.HEURISTIC, why, [message, step], told)]
        listed = [*listed, *((step, names) for names in choices_in(step.text))][-_LISTS:]
    return []


def _named_alone(
    trajectory: Trajectory, source: Step, call: Step, names: Sequence[str], taken: str
) -> tuple[str, Step] | None:
    """Return the only option that messages name between a result and a call, and the last of these messages."""
    between = trajectory.steps[source.index + 1 : call.index]
    later = trajectory.steps[call.index + 1 :]
    told = [each for each in between if is_said(each)]
    if any(_is_in(taken, f"{each.arguments} {each.text}") for each in between):
        return None
    named = {name for name in names if any(_is_in(name, each.text) for each in told)}
    if len(named) != 1:
        return None
    (meant,) = named
    looked = (each for each in [*between, call, *later] if is_tool(each))
    if any(_is_in(meant, f"{each.arguments} {each.text}") for each in looked):
        return None
    if any(_is_in(meant, each.text) and _is_in(taken, each.text) for each in later):
        return None
    saying = [each for each in told if _is_in(meant, each.text)]
    places = [(each, re.search(re.escape(meant), each.text, re.IGNORECASE)) for each in saying]
    if any(found and doubted(each.text, *found.span()) for each, found in places):
        return None
    return meant, saying[-1]


def _speaks_of(answer: str, wish: Wish) -> bool:
    """Return whether an answer claims nothing else to be the best than what the task wants."""
    return all(
        (each.sign, each.of.pattern) == (wish.sign, wish.of.pattern) for each in wishes_of(answer)
    )


def _asked_for(options: Options, task: str) -> Options:
    """Return the options that the task names; all where it names fewer than two."""
    named = {option: values for option, values in options.items() if _is_in(option, task)}
    return named if len(named) > 1 else options


def _is_instructed(trajectory: Trajectory, options: Options) -> bool:
    """Return whether a system message names an option: it may prefer or exclude one."""
    return any(
        message.role == "system" and any(_is_in(option, message.content) for option in options)
        for message in trajectory.texts.values()
    )


def _measured(options: Options, wish: Wish) -> str | None:
    """Return the only property that can be what is wanted, in one unit for all options that have it."""
    found: list[str] = []
    for name in {name for values in options.values() for name in values}:
        values = [each[name] for each in options.values() if name in each]
        if len(values) < 2 or any(value.number is None for value in values):
            continue
        if len({value.frame for value in values}) == 1:
            told = f"{' '.join(name_words(name))} {values[0].frame}"
            found += [name] if wish.of.search(told) else []
    return found[0] if len(found) == 1 else None


def _named(text: str, options: Options) -> str | None:
    """Return the only option that a text names."""
    named = [option for option in options if _is_in(option, text)]
    return named[0] if len(named) == 1 else None


def _is_in(words: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(words)}(?![\w-])", text, re.IGNORECASE))


def _is_better(one: Value, other: Value, sign: int) -> bool:
    if one.number is None or other.number is None:
        return False
    return sign * (other.number - one.number) > 0


def _is_as_fit(
    values: Mapping[str, Value], of_named: Mapping[str, Value], measured: str, task: str
) -> bool:
    """Return whether an option has everything that is known of the named one, equal or as asked for."""
    for name in (values.keys() | of_named.keys()) - {measured}:
        mine, theirs = values.get(name), of_named.get(name)
        if mine is None:
            return False
        if theirs is not None and mine.text.strip() == theirs.text.strip():
            continue
        if not _is_in(mine.text.strip(), task):
            return False
    return True


def _finding(
    step: Step, wish: Wish, named: tuple[str, Value], better: tuple[str, Value]
) -> ModeFinding:
    (name, own), (other, value) = named, better
    return finding(
        "2.6",
        _PROBABILITY,
        Evidence.HEURISTIC,
        f"{step.agent or 'The answer'} names {name} ({_short(own)}), and by what the tools returned {other} "
        f"({_short(value)}) comes before it in what is asked for ({wish.word.lower()}).",
        [own.step, value.step, step],
        [quote(step.text), quote(value.step.text)],
    )


def _short(value: Value) -> str:
    return quote(value.text, limit=60).strip()
