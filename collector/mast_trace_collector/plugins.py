"""Features that a distribution adds: found by an entry point, and left out where one of them fails.

A package names a subclass of `Plugin` under ``[project.entry-points."mast_trace.plugins"]``; those that
add something that people see derive from `mast_trace_dashboards.plugins.Plugin`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

logger = logging.getLogger(__name__)

GROUP: Final = "mast_trace.plugins"
"""The group of entry points."""


class Plugin:
    """A feature; every method may be left as it is, and imports what it needs when it is called.

    Attributes:
        name: of the feature; of two plugins with one name the first that is found counts.
    """

    name: ClassVar[str]


Kind = TypeVar("Kind", bound=Plugin)
Answer = TypeVar("Answer")


def answers(kind: type[Kind], ask: Callable[[Kind], Answer]) -> Iterator[tuple[Kind, Answer]]:
    """Ask every installed plugin of a kind; yield those that answer, with their answers.

    One that raises is named in the log and left out.

    Args:
        kind: the class whose methods are asked.
        ask: asks one plugin.
    """
    for plugin in installed():
        if not isinstance(plugin, kind):
            continue
        try:
            answer = ask(plugin)
        except Exception as error:
            logger.warning("the plugin %s is left out here: %r", plugin.name, error)
            logger.debug("the plugin %s", plugin.name, exc_info=error)
            continue
        yield plugin, answer


@cache
def installed() -> tuple[Plugin, ...]:
    """Return all plugins that can be imported, in the order of their entry points' names."""
    found: dict[str, Plugin] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        plugin = _loaded(entry)
        if plugin is not None and found.setdefault(plugin.name, plugin) is not plugin:
            logger.warning("a second plugin %s is left out: %s", plugin.name, entry.value)
    return tuple(found.values())


def _loaded(entry: EntryPoint) -> Plugin | None:
    package = entry.value.partition(".")[0].partition(":")[0]
    if find_spec(package) is None:
        # The distribution names a package that was left out of it on purpose.
        return None
    try:
        made = entry.load()()
        if not isinstance(made, Plugin) or not getattr(made, "name", ""):
            raise TypeError(f"{entry.value} is no mast_trace_collector.plugins.Plugin with a name")  # noqa: TRY301
    except Exception as error:
        logger.warning("the plugin %s is left out: %r", entry.name, error)
        logger.debug("the plugin %s", entry.name, exc_info=error)
        return None
    return made
