"""The allowlist of names in readers' statements: ``allowed.toml``, resolved for the engine."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.engine import Handle

_FUNCTIONS = "SELECT name, alias_to, is_aggregate FROM system.functions"
_TABLE_FUNCTIONS = "SELECT lower(name) FROM system.table_functions"


@dataclass(frozen=True)
class Lists:
    """The reviewed names, as they are written.

    Attributes:
        functions: those that are not aggregates.
        aggregates: without combinators.
        combinators: endings of aggregates.
        table_functions: in FROM.
        formats: of output.
        settings: those that a reader may set.
        syntax: kinds of nodes in a parsed tree.
        catalogue: database -> system table -> columns that are shown.
    """

    functions: frozenset[str]
    aggregates: frozenset[str]
    combinators: tuple[str, ...]
    table_functions: frozenset[str]
    formats: frozenset[str]
    settings: frozenset[str]
    syntax: frozenset[str]
    catalogue: dict[str, dict[str, dict[str, str]]]


@cache
def lists() -> Lists:
    """Return the lists."""
    file = resources.files("mast_trace_collector.clickhouse_http") / "allowed.toml"
    read: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))

    def names(kind: str) -> frozenset[str]:
        return frozenset(name for group in read[kind] for name in group["names"].split())

    return Lists(
        functions=names("functions"),
        aggregates=names("aggregates"),
        # The longest first: MergeState ends in State.
        combinators=tuple(sorted(names("combinators"), key=len, reverse=True)),
        table_functions=frozenset(name.lower() for name in names("table_functions")),
        formats=names("formats"),
        settings=names("settings"),
        syntax=names("syntax"),
        catalogue={name: read[name] for name in ("system", "information_schema")},
    )


class Functions:
    """Looks up functions as an engine does: without regard to case, by alias, with combinators.

    Args:
        handle: a connection to the engine.
    """

    def __init__(self, handle: Handle) -> None:
        known = lists()
        listed = known.functions | known.aggregates
        # Listed names that are no functions of the engine are keywords to its parser.
        allowed, aggregates, refused = {name.lower() for name in listed}, set(), set()
        rows = handle.text(_FUNCTIONS).splitlines()
        for name, alias_to, is_aggregate in (row.split("\t") for row in rows):
            if (alias_to or name) not in listed:
                refused.add(name.lower())
                continue
            allowed.add(name.lower())
            if is_aggregate == "1":
                aggregates.add(name.lower())
        tables = handle.text(_TABLE_FUNCTIONS).split()
        self._allowed = frozenset(allowed - refused)
        self._aggregates = frozenset(aggregates - refused)
        self._refused = frozenset(refused | (set(tables) - known.table_functions - self._allowed))

    def may_call(self, name: str) -> bool:
        """Return whether a reader may call the function of this name."""
        return name.lower() in self._allowed or _combined(name, self._aggregates)

    def may_name(self, name: str) -> bool:
        """Return whether a reader may name a column so: no refused function may have the name."""
        return name.lower() in self._allowed or not (
            name.lower() in self._refused or _combined(name, self._refused)
        )


def _combined(name: str, aggregates: frozenset[str]) -> bool:
    """Return whether the name consists of one of these and one or more combinators."""
    waiting = [name]
    while waiting:
        text = waiting.pop()
        for ending in lists().combinators:
            if text.endswith(ending):
                rest = text.removesuffix(ending)
                if rest.lower() in aggregates:
                    return True
                waiting.append(rest)
    return False
