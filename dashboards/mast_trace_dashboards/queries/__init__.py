"""The named queries: the source of every number that people see.

The CLI, the web view, Grafana and the alerts run the same text. A filter is an array parameter,
empty for all; a time range is half-open: from ``since`` up to, not including, ``until``. A query is
a module-level constant of any module of this package; it needs no registration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from mast_trace_dashboards.queries.query import Query


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


QUERIES: Mapping[str, Query] = by_name(_constants())
"""Every named query by its name."""
