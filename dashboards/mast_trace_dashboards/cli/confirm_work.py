"""`mast-trace confirm work`."""

from __future__ import annotations


def work() -> None:
    """Placeholder."""
