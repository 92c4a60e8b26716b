"""The methods of a plugin that the judge asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector import plugins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.local.rules._registry import Rule


class Plugin(plugins.Plugin):
    """A feature that may add rules."""

    def rules(self) -> Sequence[Rule]:
        """Return further rules; each has a version of its own, and a limit of time on every run."""
        return ()
