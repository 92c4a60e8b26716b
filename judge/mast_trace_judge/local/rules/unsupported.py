"""Mode 2.6, reasoning-action mismatch, where a message states what no result carries."""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import (
    DOUBT,
    failed,
    finding,
    first_line,
    is_said,
    is_tool,
    name_words,
)
from mast_trace_judge.local.arithmetic import COUNTED, derived, near
from mast_trace_judge.local.dates import days, is_near
from mast_trace_judge.local.figures import known_values
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.stated import (
    Known,
    acts,
    amounts,
    arguments,
    as_written,
    few,
    fields,
    ids,
    owner,
    repairs,
    sentences,
    stem,
    stems,
    transacts,
)
from mast_trace_judge.local.texts import prose, quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.dates import Day
    from mast_trace_judge.verdict import ModeFinding

_ADMITS = re.compile(
    r"\b(?:fail\w*|error\w*|could ?n[o']t|cannot|can't|unable|unavailable|unreachable|did(?: not|n't)|no answer|timed? ?out"
    r"|denied|declin\w*|reject\w*|maintenance|estimat\w*|assum\w*|approx\w*|roughly|about [$\u20ac\u00a3]?\d|guess\w*|typical\w*|usual\w*"
    r"|my knowledge|general knowledge|rule of thumb|own|myself|choose|chose|pick\w*|defaults?|as always|times? out|will do|new|named?"
    r"|I (?:open|start|begin|take|use|number|set|bid)|memory|recall|remember|around|down|offline|retry\w*|problem|issue|typo|mistyped|wrong|sorry"
    r"|nicht|kein\w*|etwa|rund|circa|ungef\u00e4hr|unos|unas|seg\u00fan|aprox\w*|pas|environ)\b|~|n't\b",
    re.IGNORECASE,
)
"""A message with one of these tells of the failure, or that it estimates."""
_ASKS = re.compile(
    r"\?|\b(?:if|whether|should|must|would|could|might|may|want\w*|need\w*|ask\w*|request\w*|require\w*|look\w* for|search\w*"
    r"|was|were|until|unless|will|need|please|used to|then|after|once|soon|other|another|similar)\b",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"\b(?:no|not|never|none|nothing|neither|nor|without|un\w{4,}|non|lacks?|excludes?|excluding|except|fail\w*|sold out"
    r"|cannot|declin\w*|reject\w*|den(?:y|ied)|false|missing)\b|n't\b|\bnon-",
    re.IGNORECASE,
)
_PLANS = re.compile(
    r"\b(?:propos\w*|suggest\w*|mov(?:e|ed|ing)|postpon\w*|resched\w*|schedule\w*|plan\w*|book\w*|new|next|offer\w*|extend\w*"
    r"|deadline|due|notice|latest|end of|remind\w*|shall|will|let'?s|please)\b",
    re.IGNORECASE,
)
"""Words of dates that an agent sets or derives by itself."""
_OF_TIME = frozenset(
    map(stem, ("until", "from", "since", "before", "after", "date", "with", "when", "that", "this"))
)
_CLAUSE = re.compile(r"[.;\n!?]\s|\n|,\s|\band\b|\bbut\b|\s[-\u2013(]\s?|:\s")
_IS = re.compile(r"\b(?:is|are)\b|\b(?:it|they|that)'(?:s|re)\b", re.IGNORECASE)
_OTHER = re.compile(
    r"(?<=[a-z,] )[A-Z][a-z]+\b|(?<=\w )\w*\d\w*|(?<=^on )\w+|(?<=^ on )\w+|(?<=^in )\w+|(?<=^ in )\w+"
)
"""A name or number inside a clause, or a place at its beginning, which may be of another thing."""
_WEEKDAY = re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]*day)?\b")
_YES = {"true": True, "yes": True, "false": False, "no": False}
_EMPTY_WORDS = frozenset(["is", "has", "can", "was", "are", "be", "of", "the", "in", "on", "to"])
_SUM = re.compile(r"\d\s*\)*\s*(?:\*\*|[-+*/%^])\s*\(*\s*\d")
_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_AMOUNT = 100
_NAME, _LONGEST_NAME = 4, 60
"""Characters of a text that names a thing."""
_VERSION = re.compile(r"(?<![\w.-])\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w-]|\.\d)")
_LONG_FIGURE = 4
"""Digits of figures of which two are hardly an agent's own."""
_TRIES = 4
"""Messages and acts after a failure in which its consequences are sought."""
_LETTERS = re.compile("[A-Za-z]+")
_CHOSEN = re.compile(r"lat|lon|lng|x$|y$|\w*rate$|dropout|temperature")
"""Names of arguments whose numbers are known or chosen."""
_CALCULATES = re.compile(r"calc|comput|convert|add_|date", re.IGNORECASE)
"""Beginnings of the names of tools whose results the agent may work out itself."""


@rule("2.6", contradicts=True)
def swallowed_error(trajectory: Trajectory) -> list[ModeFinding]:
    """A call fails, and its agent goes on with values that nothing in the run holds (heuristic).

    Definition: MAST 2.6. The failed call is not repeated with success. The agent's next messages state a date, a
    figure of three digits or an identifier that no earlier text holds and that does not follow from those by
    one step of arithmetic, or the next call has a fraction as an argument, or any of them if it books, pays or the like. They have two of them right behind it, say nothing else, or
    speak of what the call was about, by its name or arguments, and tell of no failure. Where another call of the agent has succeeded
    since, an identifier is needed.
    """
    steps = trajectory.steps
    last_good = {(s.tool, s.arguments): s.index for s in steps if is_tool(s) and not failed(s)}
    broken: dict[str, Step] = {}
    gone_on: dict[str, tuple[Step, list[str]]] = {}
    known = Known(trajectory)
    tried: Counter[int] = Counter()
    for step in steps:
        agent = owner(step)
        if is_tool(step):
            if _is_broken(step) and last_good.get((step.tool, step.arguments), -1) < step.index:
                broken[agent] = step
                gone_on.pop(agent, None)
            elif (call := broken.get(agent)) and not failed(step) and _mends(step, call, steps):
                del broken[agent]
            elif agent in broken and not failed(step) and agent not in gone_on:
                used = step.arguments if transacts(step) else _fractions(step)
                used = used if step.tool != broken[agent].tool else ""
                made = _invented(used, known.before(step), broken[agent])
                gone_on[agent] = step, made
        elif is_said(step) and (call := broken.get(agent)):
            text = " ".join(part for part in sentences(prose(step.text)) if part[-1] != "?")
            admits = _ADMITS.search(text)
            tried[call.index] += 1
            wrong, new = gone_on.get(agent, (step, []))
            if new and not admits:
                why = f"{call.tool} failed and was not repeated with success; {agent} then calls {wrong.tool} with {', '.join(as_written(each, wrong.arguments) for each in new[:3])}, which nothing in the run holds."
                told = [first_line(call), quote(wrong.arguments)]
                return [finding("2.6", 0.7, Evidence.HEURISTIC, why, [call, wrong], told)]
            new = [] if admits else _invented(text, known.before(step), call)
            alone = agent not in gone_on or not ids(text) <= known.names
            several = [] if admits else _several(text, known)
            next_to_it = step.index == call.index + 1 and len(new) > 1
            new = new if alone and (next_to_it or _is_about(text, call)) else several
            if new:
                why = f"{call.tool} failed and was not repeated with success; {step.agent} then states {', '.join(new[:3])}, which nothing in the run holds."
                told = [first_line(call), quote(step.text)]
                return [finding("2.6", 0.7, Evidence.HEURISTIC, why, [call, step], told)]
            if admits or tried[call.index] >= _TRIES:
                del broken[agent]
    return []


@rule("2.6", contradicts=True)
def misread_date(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent states a date that nothing holds in place of one that its tools have returned (heuristic).

    Definition: MAST 2.6. A result since the agent's last message holds a date that the message lacks; the
    message has it with the two digits of its day exchanged, or its day miscopied (see `Known.miscopied`) beside one of the same words or where message and result have
    one date each and share an amount, or another one of these months, without a word of plans. No later message has
    the right date.
    """
    known = Known(trajectory)
    results: dict[str, list[Step]] = defaultdict(list)
    for step in trajectory.steps:
        if is_tool(step):
            results[owner(step)].append(step)
        elif is_said(step) and (found := results.pop(step.agent, [])):
            stated = few(days(step.text))
            pairs = ((day, result) for result in found for day in stated)
            for wrong, result in pairs:
                given = few(days(result.text))
                alone = (
                    not known.periods(step.text)
                    and len(stated) == len({day.readings for day in given}) == 1
                    and _shares(step, result)
                )
                copied = [day for day in given if alone or _is_copy(step, wrong, result, day)]
                if not known.before(step).miscopied(wrong, copied, stated):
                    other = not known.has_day(wrong, known.periods(step.text))
                    copied = [
                        day
                        for day in given
                        if other and _same_place(step, wrong, result, day, stated)
                    ]
                if copied and not _is_told_later(trajectory, step, copied):
                    told = step.text[wrong.start : wrong.end]
                    why = f"{step.agent} states {told}, which nothing in the run holds; {result.tool} returned another day."
                    quotes = [first_line(result), quote(step.text, wrong.start, wrong.end)]
                    return [finding("2.6", 0.7, Evidence.HEURISTIC, why, [result, step], quotes)]
    return []


def _is_told_later(trajectory: Trajectory, step: Step, given: Sequence[Day]) -> bool:
    """Return whether a later message has one of some dates: it may correct the one before it."""
    meant = {reading[1:] for each in given for reading in each.readings}
    later = (each for each in trajectory.steps[step.index + 1 :] if is_said(each))
    return any(
        reading[1:] in meant
        for each in later
        for day in few(days(each.text))
        for reading in day.readings
    )


def _is_copy(step: Step, wrong: Day, result: Step, given: Day) -> bool:
    """Return whether a date may be meant for another one: its day has the same two digits, or a word beside it is the same."""
    turned = {f"{one[2]:02}"[::-1] for one in wrong.readings} & {
        f"{other[2]:02}" for other in given.readings
    }
    return bool(turned or _beside(step.text, wrong, 4) & _beside(result.text, given, 2))


def _shares(step: Step, result: Step) -> bool:
    """Return whether a message passes on a figure of three digits, or one with decimals, of a result."""
    told = {value for each in amounts(step.text) for value in each.as_one}
    return any(each >= _AMOUNT or each % 1 for each in told & known_values([result.text]))


def _same_place(step: Step, wrong: Day, result: Step, given: Day, stated: tuple[Day, ...]) -> bool:
    """Return whether a message has a date where a result has another one: beside the same words (see `is_near`)."""
    said = {reading[1:] for each in stated for reading in each.readings}
    near_by = any(is_near(one, other) for one in wrong.readings for other in given.readings)
    if not near_by or said & {reading[1:] for reading in given.readings}:
        return False
    if _PLANS.search(quote(step.text, wrong.start, wrong.end, limit=300)):
        return False
    begin = max((each.end() for each in _CLAUSE.finditer(step.text, 0, wrong.start)), default=0)
    rest = _CLAUSE.search(step.text, wrong.end)
    if DOUBT.search(step.text[begin : rest.start() if rest else None]):
        return False
    return bool(_beside(step.text, wrong, 4) & _beside(result.text, given, 2))


def _beside(text: str, day: Day, words: int) -> set[str]:
    """Return the stems of some words before a date and of the one behind it, without those of time."""
    clause = re.split(r"[.;!?\n]\s", text[max(0, day.start - 60) : day.start])[-1]
    before = re.findall(r"[A-Za-z]+", clause)[-words:]
    behind = re.findall(r"[A-Za-z]+", text[day.end : day.end + 30])[:1]
    return {stem(word) for word in (*before, *behind) if len(word) >= 4} - _OF_TIME


def _flags(results: list[Step], message: Step) -> tuple[dict[str, set[bool]], dict[str, Step]]:
    """Return the yes or no of each field in results, and the last result that holds the field."""
    flags: dict[str, set[bool]] = defaultdict(set)
    source: dict[str, Step] = {}
    for result in results:
        for name, value in fields(result.text, message.text):
            flag = value if isinstance(value, bool) else _YES.get(str(value).lower())
            if flag is not None and (isinstance(value, bool) or "=" in result.text):
                flags[name].add(flag)
                source[name] = result
    return flags, source


@rule("2.6", contradicts=True)
def misread_flag(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent says the opposite of a yes or no that its tools have returned (heuristic).

    Definition: MAST 2.6. Every value of the field in the results since the agent's last message or act is
    the same. One clause of the message holds all words of the field's name; it says that it is so and ends
    with them, or has hardly another word and stands in a sentence about what the result is about. It has a negation
    where the value is yes, or none where it is no, and asks, requires and recalls nothing. No clause of a later message
    says it as it is.
    """
    results: dict[str, list[Step]] = defaultdict(list)
    for step in trajectory.steps:
        if is_tool(step):
            if acts(step):
                results.clear()
            results[owner(step)].append(step)
        elif is_said(step) and (found := results.pop(step.agent, [])):
            flags, source = _flags(found, step)
            for name, values in flags.items():
                words = [
                    w for w in re.findall(r"[A-Z]?[a-z]+", name) if w.lower() not in _EMPTY_WORDS
                ]
                longest = max(map(len, words), default=0)
                since = trajectory.steps[source[name].index + 1 : step.index]
                called = {word[:_NAME] for each in since for word in name_words(each.tool)}
                if (
                    len(values) != 1
                    or longest < _NAME
                    or called & {w.lower()[:_NAME] for w in words}
                ):
                    continue
                result = source[name]
                known = f"{result.text} {result.arguments} {trajectory.task}".lower()
                said = _stated_flag(step.text, words, _named(result), known, longest > _NAME)
                right = next(iter(values))
                later = (each for each in trajectory.steps[step.index + 1 :] if is_said(each))
                if (
                    said is not None
                    and said[0] is not right
                    and not any(_says(each.text, words, so=right) for each in later)
                ):
                    place = result.text.find(name)
                    value = "yes" if not said[0] else "no"
                    why = f"{result.tool} returned {value} for {name}, and {step.agent} says the opposite."
                    quotes = [
                        quote(result.text, place, place + len(name)),
                        quote(step.text, *said[1]),
                    ]
                    return [finding("2.6", 0.65, Evidence.HEURISTIC, why, [result, step], quotes)]
    return []


def _says(text: str, words: list[str], *, so: bool) -> bool:
    """Return whether a clause has all words of a field's name, and a negation unless it is so."""
    wanted = {stem(word) for word in words}
    for clause in _CLAUSE.split(text):
        have = stems(clause)
        denied = {each[2:] for each in have if each.startswith("un") and len(each) > 5}
        rest = _LETTERS.sub(lambda each: "" if stem(each[0]) in wanted else each[0], clause)
        if wanted <= have | denied and bool(_NEGATIVE.search(rest) or denied & wanted) is not so:
            return True
    return False


def _named(result: Step) -> frozenset[str]:
    """Return the texts of a result and of its call by which a sentence may name what they are about."""
    told = [*(value for _, value in fields(result.text)), *arguments(result).values()]
    texts = {str(value).lower() for value in told if not isinstance(value, bool)}
    return frozenset(each for each in texts if _NAME <= len(each) <= _LONGEST_NAME)


def _stated_flag(
    text: str, words: list[str], named: frozenset[str], known: str, telling: bool
) -> tuple[bool, tuple[int, int]] | None:
    """Return whether a clause affirms a field, and where; None where none speaks plainly of it.

    A clause that does not name the thing speaks of it if the field's name is ``telling``, of five letters or more.
    A date is no name of another thing.
    """
    wanted = {stem(word) for word in words}
    undated = list(text)
    for day in days(text):
        undated[day.start : day.end] = " " * (day.end - day.start)
    others = _WEEKDAY.sub(lambda each: " " * len(each[0]), "".join(undated))
    start = 0
    bounds = [*(match.span() for match in _CLAUSE.finditer(text)), (len(text), len(text))]
    found = []
    for end, next_start in bounds:
        clause = text[start:end]
        have = stems(clause)
        denied = {each[2:] for each in have if each.startswith("un") and len(each) > 5}
        said = re.findall(r"\w+", clause)
        ends = stem(said[-1]) in {*wanted, *("un" + w for w in wanted)} if said else False
        sentence = quote(text, start, end, limit=400)
        about = any(each in sentence.lower() for each in named)
        told = len(said) <= len(words) + 3 and about
        verb = len(words) > 1 and said[:1] == words[:1]
        if any(name.lower() not in known for name in _OTHER.findall(others[start:end])):
            telling = about = told = False
        if wanted <= have | denied and (_IS.search(clause) or told or verb) and (telling or about):
            if not (ends or told):
                return None
            if _ASKS.search(quote(others, start, end, limit=400)) or text[end : end + 1] == "?":
                return None
            # "sold_out" denies by itself.
            rest = _LETTERS.sub(lambda each: "" if stem(each[0]) in wanted else each[0], clause)
            negative = bool(_NEGATIVE.search(rest) or denied & wanted)
            found.append((not negative, (start, end)))
        start = next_start
    return found[0] if len({each for each, _ in found}) == 1 else None


def _mends(step: Step, call: Step, steps: Sequence[Step]) -> bool:
    """Return whether a call repairs a failed one, and does not ask for another thing that was on offer beside it."""
    if not repairs(step, call):
        return False
    known = [f"{each.text} " for each in steps[: call.index]]
    pairs = zip(arguments(step).values(), arguments(call).values(), strict=False)
    return not any(
        one != other and all(any(f'"{each}"' in text for text in known) for each in (one, other))
        for one, other in pairs
        if isinstance(one, str) and isinstance(other, str)
    )


def _is_broken(step: Step) -> bool:
    """Return whether a call failed that is no run of code, whose author often computes by hand then."""
    code = "\\n" in step.arguments or len(step.arguments) > 500
    return failed(step) and bool(step.tool) and not code


def _fractions(step: Step) -> str:
    """Return the arguments of a call that are no whole numbers: whole ones are often limits and the like."""
    return " ".join(
        str(each)
        for name, each in arguments(step).items()
        if isinstance(each, float) and not _CHOSEN.match(name)
    )


def _is_about(text: str, call: Step) -> bool:
    """Return whether a text has no words, or a word of a call's name or arguments, or two of its figures."""
    asked = stems(call.arguments) | {stem(word) for word in name_words(call.tool)}
    about = {word for word in asked if len(word) >= 3}
    figures_ = known_values([text]) & {v for each in amounts(call.arguments) for v in each.as_one}
    return not stems(text) or bool(stems(text) & about) or len(figures_) > 1


def _invented(text: str, known: Known, call: Step) -> list[str]:
    """Return the dates, identifiers and figures of a text that no earlier one holds, each once."""
    strange: list[Day] = [day for day in days(text) if not known.has_day(day)]
    new = [text[day.start : day.end] for day in strange] + sorted(ids(text) - known.names)
    figures_ = [each for each in amounts(text) if not known.has_figure(each)]
    # An agent whose calculator fails may compute by hand: only a wrong result is made up.
    asked = [
        text
        for each in arguments(call).values()
        if _SUM.search(text := str(each)) and not days(text)
    ]
    if not asked and _CALCULATES.match(call.tool):
        return []
    right = [_evaluated(each) for each in asked]
    if asked and (
        None in right or any(near(v, r) for f in figures_ for v in f.as_one for r in right if r)
    ):
        return new
    return [*dict.fromkeys([*new, *(each.literal for each in figures_)])]


def _several(text: str, known: Known) -> list[str]:
    """Return the dates, versions and long figures of a text that no earlier one holds; none if there is but one.

    A figure that follows from the others or from known ones is none, and neither is a planned date.
    """
    long = [
        each
        for each in amounts(text)
        if sum(sign.isdigit() for sign in each.literal) >= _LONG_FIGURE
        and not known.has_figure(each)
    ]
    found = [
        each.literal
        for each in long
        if not any(
            derived(value, known.values | known_values([text]) - each.readings, COUNTED)
            for value in each.as_one
        )
    ]
    if not _PLANS.search(text):
        given = [each for each in days(text) if min(each.readings)[0] and not known.has_day(each)]
        found += [text[each.start : each.end] for each in given]
    versions = {
        each for each in _VERSION.findall(text) if not any(each in one for one in known.texts)
    }
    found += sorted(versions)
    return found if len(found) > 1 else []


def _evaluated(expression: str) -> float | None:
    """Return the value of plain arithmetic; None of anything else."""
    try:
        return _value(ast.parse(expression[:300].strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError(ast.dump(node)[:100])
