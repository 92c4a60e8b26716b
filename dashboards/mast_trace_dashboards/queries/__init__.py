"""The named queries: the source of every number that people see.

The CLI, the web view, Grafana and the alerts run the same text. A filter is an array parameter,
empty for all; a time range is half-open: from ``since`` up to, not including, ``until``. A query is
a module-level constant of any module of this package; it needs no registration.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING

from mast_trace_collector.plugins import answers
from mast_trace_dashboards.plugins import Plugin
from mast_trace_dashboards.queries.query import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

logger = logging.getLogger(__name__)


def _constants() -> Iterator[Query]:
    """Yield the queries of this package's modules, in the order in which they are defined."""
    for module in iter_modules(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Query):
                yield value


def by_name(queries: Iterable[Query]) -> Mapping[str, Query]:
    """Return queries by their names.

    Raises:
        ValueError: two different ones share a name.
    """
    named: dict[str, Query] = {}
    for query in queries:
        if named.setdefault(query.name, query) is not query:
            raise ValueError(f"two queries have the name {query.name}")
    return MappingProxyType(named)


class _Queries(Mapping[str, Query]):
    """The queries of this package, and those of plugins, which are asked only for what is none of these."""

    def __init__(self, own: Mapping[str, Query]) -> None:
        self._own = own

    def __getitem__(self, name: str) -> Query:
        return self._own[name] if name in self._own else self._added[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._added

    def __len__(self) -> int:
        return len(self._own) + len(self._added)

    @cached_property
    def _added(self) -> Mapping[str, Query]:
        added: dict[str, Query] = {}
        for plugin, queries in answers(Plugin, lambda each: tuple(each.queries())):
            for query in queries:
                if query.name in self._own or query.name in added:
                    logger.warning("the query %s of %s is left out", query.name, plugin.name)
                else:
                    added[query.name] = query
        return added


QUERIES: Mapping[str, Query] = _Queries(by_name(_constants()))
"""Every named query by its name."""
