"""Mode 2.6, reasoning-action mismatch, where the answer names another option than the results favour."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from mast_trace_judge.local.options import Options, Value, options_of
from mast_trace_judge.local.rules._evidence import by_user, finding, is_said
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.texts import prose, quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_MONEY = r"price|cost|fare|fee|rate|hotel|amount|usd|eur|gbp|chf|[$\u20ac\u00a3\u00a5\u20b9]"
_WARMTH = r"temp|weather|celsius|fahrenheit|\u00b0"
_LENGTH = r"dist|length|km|mile|met(?:er|re)|duration|time|minute|hour"
_SUPERLATIVES: tuple[tuple[re.Pattern[str], int, str], ...] = tuple(
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), sign, of)
    for words, sign, of in (
        (r"cheapest|least expensive|lowest[- ](?:price|cost|fare|rate)d?|g[u\u00fc]nstigste[nrs]?", 1, _MONEY),
        (r"billigste[nrs]?|m[a\u00e1]s barat[oa]s?", 1, _MONEY),
        (r"most expensive|dearest|priciest|teuerste[nrs]?|m[a\u00e1]s car[oa]s?", -1, _MONEY),
        (r"warmest|hottest|w[a\u00e4]rmste[nrs]?|m[a\u00e1]s c[a\u00e1]lid[oa]", -1, _WARMTH),
        (r"coldest|coolest|k[a\u00e4]lteste[nrs]?|m[a\u00e1]s fr[i\u00ed][oa]", 1, _WARMTH),
        (r"shortest|nearest|closest|k[u\u00fc]rzeste[nrs]?", 1, _LENGTH),
        (r"longest|farthest|furthest|l[a\u00e4]ngste[nrs]?", -1, _LENGTH),
    )
)  # fmt: skip
"""Words for the best of several, the sign of better (1: less), and words for what is measured."""
_MOST_OF = re.compile(
    r"\b(?P<word>highest|largest|greatest|most|lowest|smallest|fewest|least) (?P<of>[a-z]{4,20})\b",
    re.IGNORECASE,
)
_LESS = frozenset({"lowest", "smallest", "fewest", "least"})
_SENTENCE = re.compile(r"[^.!?\n]+")
_BOUND = re.compile(
    r"\b(?:not|n't|no|never|except|excluding|exclude\w*|avoid\w*|without|unless|but|under|below|over|above|within"
    r"|between|budget|minim\w*|maxim\w*|at (?:least|most)|(?:more|less|fewer|better|worse|other) than|second"
    r"|third|next|nicht|kein\w*|ohne|unter|\u00fcber|h\u00f6chstens|mindestens|sin|menos de|m[a\u00e1]s de)\b",
    re.IGNORECASE,
)
"""A sentence with one of these sets a condition that results alone do not decide."""
_DOUBTED = re.compile(
    r"\b(?:not|no|cannot|unable|except|instead|rather|than|but|however|if|although|nicht|kein\w*|aber|pero)\b"
    r"|n't\b|\?",
    re.IGNORECASE,
)
_PROBABILITY = 0.75


class _Wish(NamedTuple):
    """The best that a task asks for: ``sign`` is 1 where less is better; ``of`` matches what is measured."""

    word: str
    sign: int
    of: re.Pattern[str]


@rule("2.6", needs_end=True)
def unfavoured_choice(trajectory: Trajectory) -> list[ModeFinding]:
    """The answer names an option, and another one is better in what the task asks for (heuristic).

    Definition: MAST 2.6, "discrepancy between the logical reasoning process and the actual actions
    taken by the agent". The task asks for the cheapest, warmest or the like of several things, the
    tools returned that figure for each, in one unit, and the last message names exactly one of them.
    The other is better in the figure, and in everything else that was returned it equals the named
    one, or is as the task says in words ("sunny or mild"). Tasks with other conditions, several users'
    messages, and doubting answers are left alone.
    """
    said = [step for step in trajectory.steps if is_said(step)]
    users = [step for step in trajectory.steps if by_user(step)]
    wish = _wish(trajectory.task) if said and len(users) <= 1 else None
    if wish is None or _DOUBTED.search(prose(said[-1].text)):
        return []
    options = options_of(trajectory)
    named = _named(prose(said[-1].text), options)
    measured = _measured(options, wish)
    if named is None or measured is None or measured not in options[named]:
        return []
    own = options[named][measured]
    for other, values in options.items():
        better = values.get(measured)
        if better is None or other == named or not _is_better(better, own, wish.sign):
            continue
        if _is_as_fit(values, options[named], measured, trajectory.task):
            return [_finding(said[-1], wish, (named, own), (other, better))]
    return []


def _wish(task: str) -> _Wish | None:
    """Return what the task wants most; None where it wants nothing, several things, or sets conditions."""
    wishes, free = {}, False
    for sentence in _SENTENCE.findall(task):
        found = list(_wishes(sentence))
        wishes |= {(each.sign, each.of.pattern): each for each in found}
        free = free or (bool(found) and not _BOUND.search(sentence))
    return next(iter(wishes.values())) if len(wishes) == 1 and free else None


def _wishes(sentence: str) -> Iterator[_Wish]:
    for pattern, sign, of in _SUPERLATIVES:
        found = pattern.search(sentence)
        if found:
            yield _Wish(found[0], sign, re.compile(of, re.IGNORECASE))
    for match in _MOST_OF.finditer(sentence):
        if not any(pattern.search(match[0]) for pattern, _, _ in _SUPERLATIVES):
            stem = match["of"].lower().rstrip("s")[:8]
            sign = 1 if match["word"].lower() in _LESS else -1
            yield _Wish(match[0], sign, re.compile(re.escape(stem), re.IGNORECASE))


def _measured(options: Options, wish: _Wish) -> str | None:
    """Return the only property that can be what is wanted, in one unit for all options that have it."""
    found = []
    for name in {name for values in options.values() for name in values}:
        values = [each[name] for each in options.values() if name in each]
        if len(values) < 2 or any(value.number is None for value in values):
            continue
        if len({value.frame for value in values}) == 1:
            found.append((name, bool(wish.of.search(f"{name} {values[0].frame}"))))
    fitting = [name for name, fits in found if fits]
    return fitting[0] if len(fitting) == 1 else None


def _named(text: str, options: Options) -> str | None:
    """Return the only option that a text names."""
    folded = text.lower()
    named = [
        option
        for option in options
        if re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", folded)
    ]
    return named[0] if len(named) == 1 else None


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
        if not re.search(rf"(?<!\w){re.escape(mine.text.strip())}(?!\w)", task, re.IGNORECASE):
            return False
    return True


def _finding(
    step: Step, wish: _Wish, named: tuple[str, Value], better: tuple[str, Value]
) -> ModeFinding:
    (name, own), (other, value) = named, better
    return finding(
        "2.6",
        _PROBABILITY,
        Evidence.HEURISTIC,
        f"{step.agent or 'The answer'} names {name} ({_short(own)}), and {other} ({_short(value)}) is "
        f"the {wish.word.lower()} by what the tools returned.",
        [own.step, value.step, step],
        [quote(step.text), quote(value.step.text)],
    )


def _short(value: Value) -> str:
    return quote(value.text, limit=60).strip()
