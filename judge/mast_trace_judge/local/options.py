"""Options that a run compared: a table of values per option, read from results of tools."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace_judge.local.figures import figures
from mast_trace_judge.local.rules._evidence import is_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mast_trace.trajectory import Step, Trajectory

_A_NAME = 40
"""Characters up to which an argument or a cell is a name."""
_LONGEST = 20_000
"""Characters of arguments or of a result that are read; longer ones are documents."""
_MOST = 50
"""Number of options with which nothing is compared any more."""


@dataclass(frozen=True)
class Value:
    """A value of an option: one property, as a result gives it.

    Attributes:
        text: word for word.
        step: the call that returned it.
    """

    text: str
    step: Step

    @property
    def number(self) -> float | None:
        """The figure of the value; None unless it has one figure of one reading."""
        found = figures(self.text)
        if len(found) != 1 or len(found[0].readings) != 1:
            return None
        return next(iter(found[0].readings))

    @property
    def frame(self) -> str:
        """The text around the figure; equal frames have one unit and one currency."""
        return re.sub(r"\d+(?:[.,]\d+)*", "#", self.text.strip().lower())


Options = dict[str, dict[str, Value]]
"""Values by option, in lower case, and by property."""


def options_of(trajectory: Trajectory) -> Options:
    """Return the options of a run: arguments in which equal calls differ, and rows of results.

    Other calls that name an option add a property to it. A property that is returned twice with different values is left out, for it may have changed.
    """
    table: dict[str, dict[str, list[Value]]] = defaultdict(lambda: defaultdict(list))
    calls: dict[str, list[tuple[Step, Mapping[str, Any]]]] = defaultdict(list)
    for step in trajectory.steps:
        if is_tool(step) and step.error is None:
            calls[step.tool].append((step, _object(step.arguments)))
            for option, name, text in _rows(step.text):
                table[option][name].append(Value(text, step))
    compared = {tool: list(_by_argument(made)) for tool, made in calls.items()}
    for tool, found in compared.items():
        for option, step in found:
            table[option][tool].append(Value(step.text, step))
    if len(table) > _MOST:
        return {}
    for tool, made in calls.items():
        for step, arguments in made if not compared[tool] else ():
            for option in {str(value).strip().lower() for value in arguments.values()} & set(table):
                table[option][tool].append(Value(step.text, step))
    return {option: _settled(values) for option, values in table.items()}


def _settled(values: Mapping[str, list[Value]]) -> dict[str, Value]:
    return {
        name: each[-1] for name, each in values.items() if len({value.text for value in each}) == 1
    }


def _by_argument(
    made: list[tuple[Step, Mapping[str, Any]]],
) -> Iterable[tuple[str, Step]]:
    """Yield the value of the one argument in which calls of a tool differ, with each call."""
    keys = {tuple(sorted(arguments)) for _, arguments in made}
    if len(keys) != 1:
        return
    differing = [
        key
        for key in next(iter(keys))
        if len({json.dumps(arguments[key], sort_keys=True) for _, arguments in made}) > 1
    ]
    if len(differing) != 1:
        return
    for step, arguments in made:
        value = arguments[differing[0]]
        if _is_name(value):
            yield value.strip().lower(), step


def _rows(text: str) -> Iterable[tuple[str, str, str]]:
    """Yield option, property and value of a list of rows that have equal keys and one name each."""
    value = _loaded(text) if text.lstrip()[:1] in ("[", "{") else None
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    if not isinstance(value, list) or not 2 <= len(value) <= _MOST:
        return
    if not all(isinstance(row, dict) and row.keys() == value[0].keys() for row in value):
        return
    names = [key for key in value[0] if all(_is_name(row[key]) for row in value)]
    names = [key for key in names if len({row[key].lower() for row in value}) == len(value)]
    if len(names) != 1:
        return
    for row in value:
        for key, each in row.items():
            if key != names[0]:
                yield row[names[0]].strip().lower(), key, str(each)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _A_NAME and not figures(value)


def _object(arguments: str) -> Mapping[str, Any]:
    value = _loaded(arguments)
    return value if isinstance(value, dict) else {}


def _loaded(text: str) -> Any:
    if len(text) > _LONGEST:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
