"""The filters of the run list, as encoded in the page's address, and the fields of forms."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlencode

from starlette.exceptions import HTTPException

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.certainty import BASES
from mast_trace_dashboards.queries.runs import SORTS, run_key
from mast_trace_dashboards.run_names import parse_time

if TYPE_CHECKING:
    from starlette.requests import Request

# Python accepts other digits than these, and refuses to parse thousands of them.
_WHOLE = re.compile(r"[0-9]{1,19}")

_LONGEST = 64 * 1024
_MOST_FIELDS = 100


def whole(text: str) -> int | None:
    """Return a text as a whole number; None if it is none, or longer than any of ours."""
    return int(text) if _WHOLE.fullmatch(text) else None


async def read_form(request: Request) -> dict[str, list[str]]:
    """Return the fields; an empty field has an empty text.

    Raises:
        HTTPException: 413, the form is longer than 64 KiB; 400, it has more than 100 fields.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST:
            raise HTTPException(413, "A form of this length is not taken.")
    try:
        given = parse_qs(body.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise HTTPException(400, "A form with so many fields is not taken.") from None
    return defaultdict(lambda: [""], given)


_OTHERS = ("part", "token")
"""Parameters of an address that are no filters: the requested part of the page, and the token."""


OUTCOMES = ("failure", "success", "unknown", "suspect")
"""Outcomes that a run may have, as the filter offers them."""
MOST_VALUES = 10_000
"""Number of values at which the query `filter_values` ends."""
COST = "cost"
"""The order by cost: of the `NEWEST` latest runs that match, as costs are computed when they are asked for."""
NEWEST = 1000
ORDERS = {
    "": "newest first",
    "oldest": "oldest first",
    "took": "longest first",
    "tokens": "most tokens first",
    "steps": "most steps first",
    "errors": "most errors first",
    COST: "most expensive first",
}
"""Orders of the list, with their words."""
AGES = {"1h": "last hour", "24h": "last 24 hours", "7d": "last 7 days", "30d": "last 30 days"}
"""Times since which runs are offered to be listed; any other age or date can be written."""
_FIXED = {
    "outcome": OUTCOMES,
    "mode": tuple(FAILURE_MODES),
    "basis": tuple(BASES),
    "sort": tuple(ORDERS),
}
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
        since: only runs that started at this time or later: an age such as ``24h``, or a date.
        until: only runs that started before this time.
        user: the user for whom the program ran.
        session: the conversation that the run belongs to.
        version: of the service.
        model: that was called.
        decided_by: the agent that made the decisive error.
        basis: the kind of evidence of the place to look at first.
        sort: of `ORDERS`; empty for the newest first.
        text: must occur in the run's texts, its names, its user or version, or begin its id.
        run: only this one.
        page: of a list in another order, from 1.
        before: cursor: only runs that started before, in nanoseconds since the epoch.
        before_run: cursor: of the runs that started at that time, only those with a smaller `run_key`.
        project: selected by an operator, who sees all; the whole page is then of this project.
    """

    project: str = ""
    framework: str = ""
    service: str = ""
    agent: str = ""
    outcome: str = ""
    mode: str = ""
    since: str = ""
    until: str = ""
    user: str = ""
    session: str = ""
    version: str = ""
    model: str = ""
    decided_by: str = ""
    basis: str = ""
    text: str = ""
    run: str = ""
    sort: str = ""
    page: str = ""
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
            "decisive_agents": [self.decided_by] if self.decided_by else [],
            "bases": [self.basis] if self.basis else [],
        }
        for name in ("since", "until"):
            moment = _moment(getattr(self, name))
            if moment is not None:
                given[name] = moment
        before = whole(self.before)
        if before is not None:
            given.update(before=min(before, 2**63 - 1), before_run=self.before_run)
        return given

    @property
    def narrowing(self) -> dict[str, Any]:
        """The parameters of queries on all runs of a time: since, until and services."""
        given = self.parameters()
        return {name: given[name] for name in ("since", "until", "services") if name in given}

    @property
    def group(self) -> dict[str, str]:
        """The parameters of the query `runs_of_group`; empty if no group is chosen."""
        chosen = {name: getattr(self, name) for name in ("user", "session", "version", "model")}
        return {name: value for name, value in chosen.items() if value}

    @property
    def number(self) -> int:
        """The number of the page of a list in another order, from 0."""
        return min(max((whole(self.page) or 1) - 1, 0), 100_000)

    @property
    def sorting(self) -> dict[str, Any] | None:
        """The parameters of the query `runs_sorted` for the chosen order; None for the newest first."""
        if self.sort == "oldest":
            return {"sort": "started", "ascending": 1}
        return {"sort": self.sort} if self.sort in SORTS and self.sort != "started" else None

    def later(self) -> str:
        """Return the address of the next page of a list in another order."""
        return replace(self, page=str(self.number + 2)).query()

    def with_value(self, name: str, value: str) -> str:
        """Return the address of the first page with another value of a filter."""
        return replace(self, **{"page": "", "before": "", "before_run": "", name: value}).query()

    def after(self, row: Mapping[str, Any]) -> str:
        """Return the address of the page that continues after a row."""
        return replace(self, before=str(row["StartNs"]), before_run=run_key(row)).query()

    def query(self) -> str:
        """Return them as the query string of an address."""
        chosen = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return "?" + urlencode({name: value for name, value in chosen.items() if value})

    @property
    def unread(self) -> list[StrangeValue]:
        """The times that cannot be read, with ages that can, and the numbers: the page is as if they were not there."""
        read: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
            **dict.fromkeys(("since", "until"), (_moment, tuple(AGES))),
            **dict.fromkeys(("page", "before"), (whole, ())),
        }
        return [
            StrangeValue(name, value, known)
            for name, (reads, known) in read.items()
            if (value := getattr(self, name)) and reads(value) is None
        ]

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
        return [
            name for name in self.__dataclass_fields__ if not name.startswith(("before", "page"))
        ]

    @property
    def chosen(self) -> bool:
        """True if any filter is set."""
        return any(getattr(self, name) for name in self.names if name != "sort")


def _moment(text: str) -> datetime | None:
    """Return the time that a text names; None if it names none."""
    try:
        return parse_time(text)
    except ConfigurationError:
        return None
