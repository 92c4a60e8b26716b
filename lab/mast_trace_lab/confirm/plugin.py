"""The plugin of confirmations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_dashboards.plugins import LastAct, Plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typer import Typer


class Confirm(Plugin):
    """The command `confirm`, and the last act of the demo."""

    name = "confirm"

    def commands(self) -> Mapping[str, Callable[[Typer], None]]:
        """Return `confirm`."""
        from mast_trace_lab.confirm import command as confirm

        return {"confirm": confirm.register}

    def last_act(self) -> LastAct:
        """Return the act that proves the decisive error of one of the demo's runs."""
        from mast_trace_lab.confirm import demo as demo_confirmation

        return LastAct(
            "Replaying one of them",
            "{} has been replayed.",
            demo_confirmation.REPLAYS,
            demo_confirmation.confirm,
        )
