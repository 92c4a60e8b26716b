"""The filters of the run list, as encoded in the page's address."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.web.numbers import whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_OTHERS = ("part", "token")
"""Parameters of an address that are no filters: the requested part of the page, and the token."""


OUTCOMES = ("failure", "success", "unknown")
"""Outcomes that a run may have, as the filter offers them."""
MOST_VALUES = 10_000
"""Number of values at which the query `filter_values` ends."""
_FIXED = {"outcome": OUTCOMES, "mode": tuple(FAILURE_MODES)}
"""Values of the filters whose values do not depend on the runs."""


class StrangeValue(NamedTuple):
    """A chosen value that the filter does not know, with those that it knows."""

    filter: str
    value: str
    known: tuple[str, ...]


@dataclass(frozen=True)
class Filters:
    """The chosen values; an empty one means all.

    Attributes:
        text: must occur in the run's texts.
        before: cursor: only runs that started before, in nanoseconds since the epoch.
        before_run: cursor: of the runs that started at that time, only those with a smaller id.
        project: selected by an operator, who sees all; the whole page is then of this project.
    """

    project: str = ""
    framework: str = ""
    service: str = ""
    agent: str = ""
    outcome: str = ""
    mode: str = ""
    text: str = ""
    before: str = ""
    before_run: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filters:
        """Read them from an address; `unknown_in` returns its other parameters."""
        return cls(**{name: query.get(name, "").strip() for name in cls.__dataclass_fields__})

    @classmethod
    def unknown_in(cls, query: Iterable[str]) -> list[str]:
        """Return the names in an address that narrow nothing, because there are no such filters."""
        return sorted({*query} - {*cls.__dataclass_fields__, *_OTHERS})

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the query `runs`."""
        given: dict[str, Any] = {
            "frameworks": [self.framework] if self.framework else [],
            "services": [self.service] if self.service else [],
            "agents": [self.agent] if self.agent else [],
            "outcomes": [self.outcome] if self.outcome else [],
            "modes": [self.mode] if self.mode else [],
        }
        before = whole(self.before)
        if before is not None:
            given.update(before=min(before, 2**63 - 1), before_run=self.before_run)
        return given

    def after(self, row: Mapping[str, Any]) -> str:
        """Return the address of the page that continues after a row."""
        return replace(self, before=str(row["StartNs"]), before_run=row["TraceId"]).query()

    def query(self) -> str:
        """Return them as the query string of an address."""
        chosen = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return "?" + urlencode({name: value for name, value in chosen.items() if value})

    def strange(self, offered: Mapping[str, Sequence[str]]) -> list[StrangeValue]:
        """Return the chosen values that no run can have, or has.

        Args:
            offered: the values of runs by the name of the filter, the most frequent first. A list of
                `MOST_VALUES` may lack some, and is not relied on.
        """
        known = {"project": (), "framework": (), "service": (), "agent": (), **offered, **_FIXED}
        chosen = {name: getattr(self, name) for name in known}
        return [
            StrangeValue(name, chosen[name], tuple(values))
            for name, values in known.items()
            if chosen[name] and chosen[name] not in values and len(values) < MOST_VALUES
        ]

    @property
    def names(self) -> list[str]:
        """The names of those that narrow, as addresses have them."""
        return [name for name in self.__dataclass_fields__ if not name.startswith("before")]

    @property
    def chosen(self) -> bool:
        """True if any filter is set."""
        return any(getattr(self, name) for name in self.names)
