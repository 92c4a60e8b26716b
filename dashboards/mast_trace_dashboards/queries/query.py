"""Named queries: SQL with typed parameters and columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace_collector.storage.transient import is_too_large

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

_PLACEHOLDER = re.compile(r"\{(\w+):[^{}]+\}")
_AT_ONCE = 2
"""Questions of a page that the database answers at the same time."""
MOST_RUNS: Final = 40_000
"""Runs whose model calls the embedded engine sums at once in its 1 GiB, beside another question."""
MOST_KEYS: Final = 10_000
"""Rows that each stretch of a summed query gives."""
_MOST_TEXTS: Final = 20
"""Texts in a column of texts, in the queries too."""
_RUNS_BY_HOUR: Final = """
SELECT toUnixTimestamp(toStartOfHour(Start)) AS Hour, count() AS Runs FROM mast_run_states
WHERE Start >= {since:DateTime64(3)} AND Start < {until:DateTime64(3)}
GROUP BY Hour ORDER BY Hour"""


@dataclass(frozen=True)
class Param:
    """A parameter of a query.

    Attributes:
        type: its ClickHouse type.
        default: its value when none is given; a filter's empty list means all.
        meaning: one line.
    """

    type: str
    default: Any
    meaning: str


def limit(rows: int) -> dict[str, Param]:
    """Return the parameter `limit`, with its default."""
    return {"limit": Param("UInt32", rows, "most rows to return")}


@dataclass(frozen=True)
class Column:
    """A column of a query's result: its ClickHouse type and its meaning in one line."""

    type: str
    meaning: str = ""


@dataclass(frozen=True)
class Query:
    """A SELECT with a name.

    Attributes:
        name: of the query.
        meaning: one line on its rows.
        template: the text, with ``{name:Type}`` for each parameter.
        params: by name.
        columns: by name, in the order of the result.
        wishes: settings of the engine that change no row, sent where the user may set them; see `Store.query`.
        wishes_with: the parameter without which they are not sent; empty: always sent.
    """

    name: str
    meaning: str
    template: str
    params: Mapping[str, Param]
    columns: Mapping[str, Column]
    wishes: Mapping[str, Any] = field(default_factory=dict)
    wishes_with: str = ""

    @property
    def sql(self) -> str:
        """The text for ClickHouse, with unbound parameters."""
        return self.template.strip()

    def values(self, **given: Any) -> dict[str, Any]:
        """Return a value for every parameter.

        Raises:
            TypeError: the query has no parameter of a given name.
        """
        if unknown := given.keys() - self.params.keys():
            raise TypeError(f"query {self.name} has no parameter {', '.join(sorted(unknown))}")
        return {name: given.get(name, param.default) for name, param in self.params.items()}

    def run(self, store: Store, **given: Any) -> list[dict[str, Any]]:
        """Return the rows, in the query's order."""
        values = self.values(**given)
        wished = not self.wishes_with or values[self.wishes_with]
        return store.query(self.sql, values, wishes=self.wishes if wished else {})

    def one(self, store: Store, **given: Any) -> dict[str, Any] | None:
        """Return the first row; None if there is none."""
        return next(iter(self.run(store, **given)), None)

    def text(self, replacements: Mapping[str, str]) -> str:
        """Return the SQL with parameters replaced by other text, such as a tool's own macros.

        Args:
            replacements: parameter name -> SQL; other parameters stay.
        """
        return _PLACEHOLDER.sub(lambda m: replacements.get(m[1], m[0]), self.sql)


@dataclass(frozen=True)
class SummedQuery(Query):
    """Sums over the runs of a range; many runs are summed in stretches of time, for the memory is limited.

    Texts and times are the keys of its rows. The limit is one of each ``Part``.

    Attributes:
        order: the key by which rows are sorted, as the text sorts them.
        derived: columns that are no sums, from a row of sums.
    """

    order: Callable[[dict[str, Any]], Any] = field(kw_only=True)
    derived: Mapping[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)

    def run(self, store: Store, **given: Any) -> list[dict[str, Any]]:
        """Return the rows, in the query's order."""
        values = self.values(**given)
        stretches = [] if values["only"] else _stretches(store, values["since"], values["until"])
        if len(stretches) < 2:
            return super().run(store, **given)
        sums: dict[tuple[Any, ...], dict[str, Any]] = {}
        wide = {**given, "limit": max(values["limit"], MOST_KEYS)}
        for since, until in stretches:
            for row in super().run(store, **{**wide, "since": since, "until": until}):
                key = tuple(value for value in row.values() if isinstance(value, str | datetime))
                if (known := sums.setdefault(key, row)) is not row:
                    known.update({name: _sum(known[name], value) for name, value in row.items()})
        for row in sums.values():
            row.update({name: derive(row) for name, derive in self.derived.items()})
        ranks: Counter[Any] = Counter()
        rows = []
        for row in sorted(sums.values(), key=self.order):
            ranks[row.get("Part")] += 1
            if ranks[row.get("Part")] <= values["limit"]:
                rows.append(row)
        return rows


def _stretches(store: Store, since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    """Return the parts of a range that hold at most `MOST_RUNS` runs each, or those of one hour."""
    ends = [since]
    runs = 0
    for row in store.query(_RUNS_BY_HOUR, {"since": since, "until": until}):
        if runs and runs + row["Runs"] > MOST_RUNS:
            ends.append(datetime.fromtimestamp(row["Hour"], timezone.utc))
            runs = 0
        runs += row["Runs"]
    return list(zip(ends, [*ends[1:], until], strict=True))


def _sum(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one if other is None else other
    if isinstance(one, list):
        return sorted({*one, *other})[:_MOST_TEXTS]
    return one if isinstance(one, str | datetime) else one + other


def side_by_side(*questions: Callable[[], Any]) -> list[Any]:
    """Ask what a page shows at the same time, and return the answers in the order of the questions.

    The database plans a query on one core, which is most of the time of all but the largest stores. A question for
    which the memory is too small beside another one is asked again alone.

    Raises:
        StorageError: the database does not answer.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = [pool.submit(question) for question in questions]
    return [
        question() if is_too_large(answer.exception() or Exception()) else answer.result()
        for question, answer in zip(questions, asked, strict=True)
    ]
