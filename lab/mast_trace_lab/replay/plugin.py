"""The plugin of replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_dashboards.plugins import Plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typer import Typer


class Replay(Plugin):
    """The command `replay`."""

    name = "replay"

    def commands(self) -> Mapping[str, Callable[[Typer], None]]:
        """Return `replay`."""
        from mast_trace_lab.replay import command as replay

        return {"replay": replay.register}
