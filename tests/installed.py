"""True if a framework is there, without importing it."""

from __future__ import annotations

from importlib.util import find_spec


def installed(module: str) -> bool:
    """Return whether a module can be imported.

    Name a part of the framework, not the framework: folders of tests are called like them.
    """
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
