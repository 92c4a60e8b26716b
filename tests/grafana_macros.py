"""Macro expansion as the ClickHouse plugin for Grafana (4.20) does it before a query runs.

Only what the shipped queries use, and the plugin's neighbours of it: enough to run every panel's
query on a real engine in tests, as Grafana would. After `pkg/macros/macros.go` of the plugin; the
conversion of variables is Grafana's ``singlequote`` format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

_STRINGS_OR_COMMENTS = re.compile(r"'(?:[^'\\]|\\.|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_VARIABLE = re.compile(r"\$\{(\w+):singlequote\}")
_CONDITIONAL = re.compile(r"\$__conditionalAll\(")
_INNERMOST = re.compile(r"\$__(\w+)(?:\(((?:[^()$]|\([^()$]*\))*)\))?")


@dataclass(frozen=True)
class Selection:
    """The time range and the values of variables that a person has selected on a dashboard.

    Attributes:
        start: beginning of the range.
        end: end of it.
        interval: seconds between two points of a line.
        variables: chosen values by name; ``["$__all"]`` stands for ``options``.
        options: the values that a variable offers.
    """

    start: datetime
    end: datetime
    interval: int = 60
    variables: Mapping[str, Sequence[str]] = field(default_factory=dict)
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def expand(self, sql: str) -> str:
        """Return the SQL that reaches ClickHouse; unknown macros stay as they are."""
        text = _STRINGS_OR_COMMENTS.sub(
            lambda m: m[0] if m[0].startswith("'") else " " * len(m[0]), sql
        )
        text = self._conditionals(text)
        text = _VARIABLE.sub(lambda m: self._quoted(m[1]), text)
        while (replaced := _INNERMOST.sub(self._macro, text)) != text:
            text = replaced
        return text

    def _macro(self, match: re.Match[str]) -> str:
        name, arguments = match[1], match[2]
        plain = self._plain(name)
        if plain is not None:
            return plain if arguments is None else f"{plain}({arguments})"
        if arguments is None:
            return match[0]
        given = [part.strip() for part in arguments.split(",")]
        return self._with_column(name, given) or match[0]

    def _plain(self, name: str) -> str | None:
        seconds = {"fromTime": self.start, "toTime": self.end}
        if name in seconds:
            return f"toDateTime({int(seconds[name].timestamp())})"
        if name.removesuffix("_ms") in seconds and name.endswith("_ms"):
            moment = seconds[name.removesuffix("_ms")]
            return f"fromUnixTimestamp64Milli({int(moment.timestamp() * 1000)})"
        return str(max(self.interval, 1)) if name == "interval_s" else None

    def _with_column(self, name: str, given: list[str]) -> str | None:
        column = given[0]
        low, high = int(self.start.timestamp()), int(self.end.timestamp())
        step = max(self.interval, 1)
        if name in {"dateTimeFilter", "dt"} and len(given) == 2:
            date = self._with_column("dateFilter", [given[0]])
            return f"({date}) AND ({self._with_column('timeFilter', [given[1]])})"
        return {
            "timeFilter": f"{column} >= toDateTime({low}) AND {column} <= toDateTime({high})",
            "timeFilter_ms": (
                f"{column} >= fromUnixTimestamp64Milli({low * 1000}) "
                f"AND {column} <= fromUnixTimestamp64Milli({high * 1000})"
            ),
            "dateFilter": (
                f"{column} >= toDate('{self.start:%Y-%m-%d}') "
                f"AND {column} <= toDate('{self.end:%Y-%m-%d}')"
            ),
            "timeInterval": f"toStartOfInterval(toDateTime({column}), INTERVAL {step} second)",
            "timeInterval_ms": (
                f"toStartOfInterval(toDateTime64({column}, 3), INTERVAL {step * 1000} millisecond)"
            ),
        }.get(name)

    def _quoted(self, name: str) -> str:
        chosen = list(self.variables.get(name, ()))
        if chosen == ["$__all"]:
            chosen = list(self.options.get(name, ()))
        return ",".join("'" + value.replace("'", "\\'") + "'" for value in chosen)

    def _conditionals(self, text: str) -> str:
        """The condition, or 1=1 where all values of its variable are chosen."""
        while match := _CONDITIONAL.search(text):
            depth, position = 1, match.end()
            while depth and position < len(text):
                depth += {"(": 1, ")": -1}.get(text[position], 0)
                position += 1
            if depth:
                raise ValueError("$__conditionalAll: a bracket is not closed")
            condition, _, variable = text[match.end() : position - 1].rpartition(",")
            if not condition or not variable.strip().startswith("$"):
                raise ValueError("$__conditionalAll takes a condition and a variable")
            chosen = list(self.variables.get(variable.strip().strip("${}"), ()))
            kept = "1=1" if chosen in ([], [""], ["$__all"]) else condition
            text = text[: match.start()] + kept + text[position:]
        return text
