"""Refuses fixes that hold what only the right answer knows.

A fix with the right answer in it turns every failure into success, at any step, and so proves nothing.
A correction may hold what the run knew before the step, and nothing of the right answer besides.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from mast_trace.messages import parsed
from mast_trace_judge.local.addressing.recognition import clean
from mast_trace_judge.local.figures import figures, known_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mast_trace.trajectory import Trajectory

_ESCAPE = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
_STANDS_FOR: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEEPEST: Final = 6
"""Levels of escapes that are read: JSON within JSON has one more at each level."""
_ANSWER: Final = {"text", "tool_calls"}

_QUOTED = re.compile(
    r'"([^"\n]{2,200})"|\u201c([^\u201d\n]{2,200})\u201d|\u201e([^\u201c\u201d\n]{2,200})[\u201c\u201d]'
    r"|\u00ab([^\u00bb\n]{2,200})\u00bb|`([^`\n]{2,200})`|(?<!\w)'([^'\n]{2,200})'(?!\w)"
)
_WORD = re.compile(r"[^\W_]+")
_SHORT_WORDS = 12
"""Words up to which a right answer counts as a quoted word as a whole."""


def texts_in(text: str) -> list[str]:
    """Return a text and, if it is JSON, all its strings, keys, numbers and truth values, each once.

    A string that is JSON itself, such as the arguments of a call, is read likewise.
    """
    return list(dict.fromkeys([text, *_leaves(parsed(text))]))


def said_in(answer: str) -> list[str]:
    """Return the texts of an answer, with its calls if it is given as JSON, without that form's keys."""
    shape = parsed(answer)
    if isinstance(shape, dict) and "tool_calls" in shape and not set(shape) - _ANSWER:
        calls = shape["tool_calls"] if isinstance(shape["tool_calls"], list) else []
        given = [list(call.values()) if isinstance(call, dict) else call for call in calls]
        shape = [shape.get("text"), given]
    return [each for each in dict.fromkeys(_leaves(shape)) if each.strip()]


def spelled_out(texts: Iterable[str]) -> list[str]:
    """Return texts, each also with JSON's escapes decoded wherever they stand, and as one sees it."""
    found: dict[str, None] = {}
    for text in texts:
        read = text
        for _ in range(_DEEPEST):
            found[read] = found[clean(read)] = None
            if "\\" not in read or (decoded := _ESCAPE.sub(_decoded, read)) == read:
                break
            read = decoded
        else:
            found[read] = found[clean(read)] = None
    return list(found)


def _leaves(value: Any) -> Iterator[str]:
    """Yield what JSON says, in order, without null; nesting is no recursion, for it may be deep."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += [part for pair in reversed(each.items()) for part in reversed(pair)]
        elif isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, str):
            yield each
            inner = parsed(each)
            if inner != each:
                waiting.append(inner)
        elif isinstance(each, bool):
            yield str(each).lower()
        elif isinstance(each, int | float):
            yield _number(each)


def _number(value: float) -> str:
    """Return a number with all its digits, without an exponent."""
    spelled = repr(value)
    return format(Decimal(spelled), "f") if "e" in spelled else spelled


def _decoded(found: re.Match[str]) -> str:
    escape = found[0]
    if not escape.startswith("\\u"):
        return _STANDS_FOR.get(escape[1], escape[1])
    units = bytes.fromhex(escape.replace("\\u", ""))
    return units.decode("utf-16-be", "replace")


def known_before(run: Trajectory, step: int, span_id: str = "") -> list[str]:
    """Return the texts that the run held before a step: its task, earlier steps, and its inputs.

    Args:
        run: the recorded run.
        step: index of the step; its own text does not count.
        span_id: the model call that made the step; what it was shown counts.
    """
    earlier = [text for each in run.steps[:step] for text in (each.text, each.arguments)]
    calls = [call for call in run.invocations if span_id and call.span_id == span_id]
    shown = [message for call in calls for message in run.seen_by(call)]
    asked = [call.text for message in shown for call in message.tool_calls]
    return [run.task, *earlier, *(message.content for message in shown), *asked]


def leaked(fix: str, answers: Iterable[str], known: Iterable[str]) -> str:
    """Return the first thing in a fix that only the right answers hold; empty if there is none.

    Compared are numbers in any notation and quoted words; a right answer of at most twelve words also
    counts as a whole. JSON is read, on all sides: a number after an escaped newline is a number.

    Args:
        fix: text of the fix.
        answers: the right answers, as far as known, and the reasons given with the outcome.
        known: texts of the run before the step.
    """
    given = list(answers)
    # A truth value or a single character of JSON is too common to be the answer by itself.
    told = [
        each
        for each in _read(given)
        if each in given or (len(each) > 1 and each not in {"true", "false"})
    ]
    read = [_read([fix]), told, _read(known)]
    found = _leaked(*read)
    if found:
        return found
    # Escapes outside JSON are read on all sides or on none: paths hold backslashes, too.
    further = [spelled_out(texts) for texts in read]
    return "" if further[:2] == read[:2] else _leaked(*further)


def _read(texts: Iterable[str]) -> list[str]:
    return [each for text in texts for each in texts_in(text)]


def _leaked(fix: Sequence[str], answers: Sequence[str], before: Sequence[str]) -> str:
    numbers, said = known_values(before), [_words(each) for each in before]
    whole = "\n".join(fix)
    of_fix = {value: each.literal for each in figures(whole) for value in each.readings}
    text = _words(whole)
    for answer in answers:
        for figure in figures(answer):
            if figure.readings & numbers:
                continue
            for value in figure.readings & of_fix.keys():
                return of_fix[value]
        for words in _quoted(answer):
            wanted = _words(words)
            if wanted.strip() and wanted in text and not any(wanted in each for each in said):
                return words
    return ""


def _words(text: str) -> str:
    """Return the words in lower case with single spaces between and around them."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _quoted(answer: str) -> Iterator[str]:
    for match in _QUOTED.finditer(answer):
        yield next(filter(None, match.groups()))
    whole = answer.strip().strip(".!").strip()
    if 0 < len(whole.split()) <= _SHORT_WORDS:
        yield whole
