"""Modes 1.1 and 1.2: an action that the task or a system prompt rules out, or of which an argument is against the task."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.acts import (
    DOUBT,
    by_user,
    failed,
    finding,
    first_line,
    is_said,
    is_tool,
    name_words,
)
from mast_trace_judge.local.arithmetic import derived, exchanged, slip
from mast_trace_judge.local.dates import days
from mast_trace_judge.local.figures import known_values, unit_behind, unit_of
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.stated import (
    DRAFTS,
    LEFT_OUT,
    Known,
    acts,
    amounts,
    arguments,
    as_written,
    few,
    ids,
    leaves,
    owner,
    prompts,
    sentences,
    stem,
    stems,
)
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.dates import Day
    from mast_trace_judge.local.figures import Figure
    from mast_trace_judge.verdict import ModeFinding

_NEVER = re.compile(
    r"\b(?:do not|don't|never|must not|may not|mustn't|shall not|are not allowed to|is not allowed to)\s+(?:ever\s+)?"
    r"(?P<verbs>[a-z]+(?:(?:, (?:or )?| or | and | nor )[a-z]+)*)(?P<rest>(?:[^.;!?]|(?<=Dr|Mr|Ms)\.|(?<=Mrs)\.)*)"
    r"|\bleave\s+(?P<left>[^.;,!?]{3,60}?)\s+(?:alone|untouched|unchanged|as (?:it is|they are))",
    re.IGNORECASE,
)
_UNLESS = re.compile(
    r"\b(?:without|before|unless|until|except|if|when|while|more than|above|over|else|other than|than|only|just|yourself out|after"
    r"|otherwise|once|yet|now|first|later|never|because|since|already|again|twice|at the same time|multiple)\b",
    re.IGNORECASE,
)
"""A ban with one of these holds under a condition."""
_WHEN = re.compile(r"\b(?:if|when|unless|until|while)\b", re.IGNORECASE)
_ANY = re.compile(
    r"\W*(?:(?:for|on|to|with|in) )?(?:anything|it|them|whatsoever)?\W*", re.IGNORECASE
)
_SAID_BY_OTHERS = re.compile(
    r"[\"\u201c\u201e\u00ab][^\"\u201d\u201c\u00bb\n]*[\"\u201d\u201c\u00bb]"
)
_PATH = re.compile(r"(?<![\w/])[\w.-]*[\w-](?:/[\w./-]*|_\w+)")
_A_NUMBER = 5
"""Digits from which a figure is hardly computed from others by the agent itself, but the number of something."""
_NEXT = 20
"""Difference up to which a number may be the next one of a row."""
_ARTICLES = re.compile(
    "the|an|this|that|any|all|each|every|our|your|its|their|and|or|nor|to|of|in|on|at|for|with|from|into|by|ever"
)
_ALTERNATIVES = [
    frozenset(each.split())
    for each in [
        "air sea road rail",
        *("public internal", "public private", "public confidential"),
        "card cash voucher transfer cheque",
        "economy business first",
        "aisle window middle",
        "vegan vegetarian meat",
        "buy sell",
        "debit credit",
        "left right",
        "import export",
        "single double triple",
        "ascending descending",
    ]
]
"""Words of which one excludes the others."""
_STAGES = [
    frozenset(each.split()) for each in ("main master develop staging production", "draft final")
]
"""Words of which one comes before the other, so that only the last act tells."""
_LEAVES_OUT = re.compile("reject|exclu|skip|drop|discard|remove|screen", re.IGNORECASE)
_HOW = re.compile(
    "to|into|as|by|via|with|in|on|for|mode|method|type|kind|channel|space|format|target|class|branch|action|side"
)
"""Names of arguments that say how a thing is done; others may name what is to be left out."""
_BESIDE = 20
"""Characters between the name of an argument and its value in a task."""
_BY = re.compile(r"\b(?:by|via|into|to|as|in|on|with) (?:the |an? )?$", re.IGNORECASE)
_NO_LIST = re.compile(r"\bno (?P<first>\w+)(?:,? (?:and |or )?no (?P<next>\w+))+", re.IGNORECASE)
_ONLY, _NO = re.compile(r"\bonly\b", re.IGNORECASE), re.compile(r"\bno (\w+)", re.IGNORECASE)
_DENIES = re.compile(
    r"\b(?:no|not|never|without|instead of|rather than|kein\w*|nicht)\s+(?:(?:as|by|in|to|on|with|a|an|the|any|ein\w*) ){0,3}$",
    re.IGNORECASE,
)


_ID = r"(?:[\w-]*\d[\w-]*|[A-Z]\b)"
_IDS = re.compile(
    rf"(?:\b(?P<noun>[a-z]+) )?(?P<ids>(?<![\w-]){_ID}(?:(?:, | and | or | nor ){_ID})*)"
)
"""Numbers and codes of things, with the word before them; each of a list is meant."""


_USES = frozenset(map(stem, ("use", "take", "involve", "include", "pick", "choose")))
"""Verbs of bans that any act with the object breaks."""
_TELLS = frozenset(
    map(
        stem,
        [
            "notify",
            "tell",
            "inform",
            "message",
            "mail",
            "send",
            "ask",
            "thank",
            "note",
            "log",
            "report",
            "record",
            "exclude",
            "skip",
            "cancel",
            "remove",
        ],
    )
)
"""Words of tools that may be given an object which is not used."""
_OTHER_THAN = re.compile(r"\bother than (?:the )?(?P<name>[A-Z][\w-]{2,})")
_IMPERATIVE = re.compile(
    r"\b(?:do not|don't|never) (?:ever )?(?:use|take|involve|include|pick|choose)", re.IGNORECASE
)
_FEW_WORDS = 2
"""Words of an argument up to which it is a thing, and does not only speak of it."""
_TITLE = frozenset(map(stem, ("dr", "mr", "mrs", "ms", "prof")))


class _Ban(NamedTuple):
    """A ban: stems of verbs, with those of their objects, numbers and codes of these by their nouns, and paths."""

    verbs: frozenset[str]
    objects: frozenset[str]
    ids: tuple[tuple[str, frozenset[str]], ...]
    paths: tuple[str, ...]
    of_all: bool
    text: str


@rule("1.2", contradicts=True)
def forbidden_action(trajectory: Trajectory) -> list[ModeFinding]:
    """A call does what the task or the agent's own system prompt rules out without a condition (heuristic).

    Definition: MAST 1.2 for a prompt, 1.1 for the task. The tool's name holds the verb that is ruled
    out, and name and short arguments hold every word of its object; or a call that changes something has
    a path under the one that is to be left alone, or is given what is not to be used: then the message that asked
    for it is to blame. No user has spoken since the run began.
    """
    of_task = list(_bans(trajectory.task))
    own = {agent: list(_bans(text)) for agent, text in prompts(trajectory).items()}
    if not of_task and not any(own.values()):
        return []
    for step in trajectory.steps:
        if step.index and by_user(step):
            return []
        if not is_tool(step) or not step.tool or failed(step):
            continue
        for code, bans in (("1.2", own.get(owner(step), [])), ("1.1", of_task)):
            broken = (
                each for each in bans if _breaks(step, each, own=code == "1.2") or _uses(step, each)
            )
            ban = next(broken, None)
            if ban is not None:
                where = "its system prompt" if code == "1.2" else "the task"
                why = f"{step.agent} calls {step.tool}, and {where} says: {ban.text[:160]}"
                asked = _asked_by(trajectory, step, ban) if _uses(step, ban) else step
                told = [quote(asked.text) if asked is not step else "", quote(step.arguments)]
                told += [first_line(step)]
                return [finding(code, 0.65, Evidence.HEURISTIC, why, [asked], told)]
    return []


def _asked_by(trajectory: Trajectory, call: Step, ban: _Ban) -> Step:
    """Return the message of another agent to a caller that was the first to name what is not to be used; else the call."""
    for step in trajectory.steps[: call.index]:
        told = is_said(step) and owner(call) in step.recipients and step.agent != owner(call)
        if told and ban.objects <= stems(step.text) and not DOUBT.search(step.text):
            return step
    return call


@rule("1.1", contradicts=True)
def excluded_source(trajectory: Trajectory) -> list[ModeFinding]:
    """A call takes what the task rules out by its kind, as an earlier result says of it (heuristic).

    Definition: MAST 1.1. One sentence of the task says what is to be used only and what not, "no blogs", without a
    condition. An object of an earlier result has that word as a value, and the call another value of this object alone.
    """
    excluded = {
        stem(each)
        for sentence in sentences(trajectory.task[:4000])
        if _ONLY.search(sentence) and not _WHEN.search(sentence)
        for each in _NO.findall(sentence)
    }
    if not excluded:
        return []
    listed: list[tuple[Step, list[str]]] = []
    for step in trajectory.steps:
        if step.index and by_user(step):
            return []
        if not is_tool(step) or _LEAVES_OUT.match(step.tool):
            continue
        for value in map(str, arguments(step).values()):
            held = [each for each in listed if value in each[1]]
            kinds = (
                [each for each in held[0][1] if stem(each) in excluded] if len(held) == 1 else []
            )
            if kinds and not failed(step):
                why = f"{step.agent} calls {step.tool} with {value}, a {kinds[0]}, which the task rules out."
                told = [quote(step.arguments), first_line(held[0][0])]
                return [finding("1.1", 0.65, Evidence.HEURISTIC, why, [step, held[0][0]], told)]
        listed += [(step, each) for each in _objects(loaded(step.text))]
    return []


def _objects(told: object) -> Iterator[list[str]]:
    """Yield the texts of each object of a list."""
    if isinstance(told, dict):
        told = next((each for each in told.values() if isinstance(each, list)), [])
    for each in told if isinstance(told, list) else []:
        if isinstance(each, dict):
            yield [value for value in each.values() if isinstance(value, str)]


@rule("1.1", contradicts=True)
def argument_against_task(trajectory: Trajectory) -> list[ModeFinding]:
    """A call that changes something has an argument that is one of the task's miscopied (heuristic).

    Definition: MAST 1.1. No text holds or implies the argument, and the call lacks the task's: a date of
    which the day is miscopied (see `Known.miscopied`), two dates as far apart as two of the task, a figure of
    five digits with a digit changed or two exchanged that is not the next one of a row, an identifier or a figure in
    the task's unit with two exchanged, or a word that excludes one of the task's. Or the task rules the word out,
    without a condition. A tool that is called more than once may be given a part each time.
    """
    known = Known(trajectory)
    done = [each for each in trajectory.steps if acts(each) and not failed(each)]
    times = Counter(each.tool for each in done)
    for step in done:
        if times[step.tool] == 1:
            wrong = _wrong_argument(step, trajectory.task, known, is_last=step is done[-1])
            if wrong:
                why = f"{step.agent} calls {step.tool} with {wrong}."
                told = [quote(step.arguments)]
                return [finding("1.1", 0.6, Evidence.HEURISTIC, why, [step], told)]
    return []


def _wrong_argument(step: Step, task: str, known: Known, *, is_last: bool) -> str:
    """Return an argument that is against the task and why; empty if there is none."""
    new = "which no text of the run holds; the task names another"
    stated, meant_days = few(days(step.arguments)), few(days(task))
    for day in stated:
        if known.before(step).miscopied(day, meant_days, stated):
            return f"{step.arguments[day.start : day.end]}, {new}"
    strange = [day for day in stated if not known.before(step).has_day(day)]
    if len(strange) > 1 and _apart(strange) & _apart(meant_days):
        return f"{step.arguments[strange[0].start : strange[0].end]}, {new}"
    named, meant_names = few(ids(step.arguments)), few(ids(task))
    for name in sorted(set(named) - known.before(step).names):
        if any(exchanged(name, meant) and meant not in named for meant in meant_names):
            return f"{as_written(name, step.arguments)}, {new}"
    asked = few(amounts(task))
    for each in few(amounts(step.arguments)):
        long = sum(sign.isdigit() for sign in each.literal) >= _A_NUMBER
        meant = [
            a
            for a in asked
            if (long and slip(each.literal, a.literal))
            or (exchanged(each.literal, a.literal) and _in_unit_of(step.arguments, each, task, a))
        ]
        apart = min((abs(v - w) for a in meant for v in each.as_one for w in a.as_one), default=0)
        if apart <= _NEXT:
            continue
        held = known.before(step).values
        rest = held | (known_values([step.arguments]) - each.readings)
        follows = not long and any(derived(value, rest) for value in each.as_one)
        is_known = bool(each.readings & held) or any(a.literal in step.arguments for a in meant)
        if not is_known and not follows:
            return f"{each.literal}, {new}"
    groups = _ALTERNATIVES + _STAGES * is_last
    return _other_way(step, task, known.before(step).texts, groups)


def _other_way(
    step: Step, task: str, texts: Iterable[str], groups: Iterable[frozenset[str]]
) -> str:
    """Return a word that says how a thing is done, where the task rules it out; empty if there is none."""
    for key, value in arguments(step).items():
        word = (
            value.lower()
            if isinstance(value, str) and any(map(_HOW.fullmatch, name_words(key)))
            else ""
        )
        if word.isalpha() and (other := _excluded(key, word, step, texts, task, groups)):
            return f"{value} for {key}, and the task says: {other}"
    return ""


def _in_unit_of(arguments_: str, each: Figure, task: str, meant: Figure) -> bool:
    """Return whether the name of a figure of arguments is the word behind a figure of the task."""
    unit = unit_behind(task, meant)
    return bool(unit) and unit == unit_of(arguments_, each)


def _excluded(
    key: str,
    word: str,
    step: Step,
    texts: Iterable[str],
    task: str,
    groups: Iterable[frozenset[str]],
) -> str:
    """Return the words of the task that rule out an argument of which no other text speaks; empty if it does not."""
    about = re.compile(rf"\b{word}s?\b", re.IGNORECASE)
    if any(about.search(text) for text in texts if text != task):
        return ""
    said = [*about.finditer(task)]
    if said:
        denied = [_DENIES.search(task[: each.start()]) for each in said]
        if _WHEN.search(quote(task, *said[0].span(), limit=300)):
            return ""
        return f"{denied[0][0]}{said[0][0]}" if denied[0] and all(denied) else ""
    others = [
        each
        for group in groups
        if word in group
        for other in group - {word}
        for each in re.finditer(rf"\b{other}\b", task, re.IGNORECASE)
    ]
    named = re.compile(rf"\b{re.escape(key)}\b", re.IGNORECASE)
    others = [
        each
        for each in others
        if named.search(task, max(0, each.start() - _BESIDE), each.end() + _BESIDE)
        or _BY.search(task[: each.start()])
    ]
    told = {each[0].lower() for each in others}
    if len(told) != 1 or any(each in step.arguments.lower() for each in told):
        return ""
    if any(DOUBT.search(quote(task, *each.span(), limit=300)) for each in others):
        return ""
    return quote(task, *others[0].span(), limit=120)


def _apart(found: Iterable[Day]) -> set[int]:
    """Return the days between each two dates that have one reading and a year."""
    dates = [
        date(*next(iter(day.readings)))
        for day in found
        if len(day.readings) == 1 and min(day.readings)[0]
    ]
    return {abs((one - other).days) for one, other in combinations(dates, 2)} - {0}


def _bans(text: str) -> Iterator[_Ban]:
    for sentence in sentences(_SAID_BY_OTHERS.sub(" ", text[:4000])):
        if _WHEN.search(sentence):
            continue
        for match in _NO_LIST.finditer(sentence):
            verbs = {stem(each) for each in re.findall(r"\bno (\w+)", match[0], re.IGNORECASE)}
            yield _Ban(frozenset(verbs), frozenset(), (), (), True, sentence)
        for match in _OTHER_THAN.finditer(sentence):
            before = stems(sentence[: match.start()])
            yield _Ban(before, frozenset([stem(match["name"])]), (), (), False, sentence)
        for match in _NEVER.finditer(sentence):
            if match["left"] is not None:
                paths = tuple(_PATH.findall(match["left"]))
                yield _Ban(frozenset(), frozenset(), (), paths, False, sentence)
            elif not _UNLESS.search(re.sub("^never", "", match[0], flags=re.IGNORECASE)):
                verbs = {stem(each) for each in re.findall(r"[a-z]+", match["verbs"].lower())}
                rest = match["rest"]
                yield _Ban(
                    frozenset(verbs - {"or", "and", "nor"}),
                    frozenset(w for w in stems(rest) if not _ARTICLES.fullmatch(w)) - _TITLE,
                    tuple((stem(m["noun"] or ""), _codes(m["ids"])) for m in _IDS.finditer(rest)),
                    tuple(_PATH.findall(rest)),
                    bool(_ANY.fullmatch(rest)),
                    sentence,
                )


def _breaks(step: Step, ban: _Ban, *, own: bool) -> bool:
    words = frozenset(stem(word) for word in name_words(step.tool))
    used = {
        key: each
        for key, each in arguments(step).items()
        if not any(map(LEFT_OUT.fullmatch, name_words(key)))
    }
    values = [str(each) for _, each in leaves(used) if len(str(each)) <= 200]
    if any(stems(f"{key} {each}") & DRAFTS for key, each in used.items() if each):
        return False
    if not all(_has_one(used, noun, codes) for noun, codes in ban.ids):
        return False
    if ban.paths:
        paths = [value for value in values if " " not in value and _PATH.search(value)]
        under = any(
            f"{value}/".startswith(f"{p.rstrip('/')}/") for value in paths for p in ban.paths
        )
        return acts(step) and len(paths) == 1 and under
    # A longer text may speak of a thing without being about it.
    about = words.union(*(stems(each) for each in values if len(each.split()) <= _FEW_WORDS))
    about |= stems(" ".join(key for key, value in used.items() if value))
    if not ban.verbs & words or words & DRAFTS:
        return False
    # A tool with another noun in its name does something else to the same object.
    rest = words - ban.verbs - ban.objects
    if ban.of_all:
        return own and acts(step)
    return bool(ban.objects) and ban.objects <= about and not rest


def _uses(step: Step, ban: _Ban) -> bool:
    """Return whether a call that changes something is given what is not to be used: as a value, or as one that is not none."""
    if not (ban.objects and ban.verbs <= _USES and _IMPERATIVE.search(ban.text) and acts(step)):
        return False
    given = [
        (name, each)
        for name, each in leaves(arguments(step))
        if not any(map(LEFT_OUT.fullmatch, name_words(name)))
    ]
    told = [str(each) for _, each in given if len(str(each).split()) <= _FEW_WORDS]
    told += [name for name, each in given if isinstance(each, (int, float)) and each > 0]
    words = frozenset(stem(word) for word in name_words(step.tool))
    if words & (_TELLS | DRAFTS) or not ban.objects <= stems(" ".join(told)):
        return False
    return all(_has_one(dict(given), noun, codes) for noun, codes in ban.ids)


def _codes(text: str) -> frozenset[str]:
    return frozenset(each.strip(".").lower() for each in re.findall(_ID, text))


def _has_one(used: Mapping[str, Any], noun: str, codes: frozenset[str]) -> bool:
    """Return whether arguments have one of the codes: those named by the noun, where there are such."""
    named = [each for key, each in used.items() if noun and noun in map(stem, name_words(key))]
    return bool(_codes(" ".join(map(str, named or used.values()))) & codes)
