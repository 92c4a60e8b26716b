"""The plugin of confirmations."""

from __future__ import annotations

from mast_trace_dashboards.plugins import LastAct, Plugin


class Confirm(Plugin):
    """The last act of the demo."""

    name = "confirm"

    def last_act(self) -> LastAct:
        """Return the act that proves the decisive error of one of the demo's runs."""
        from mast_trace_lab.confirm import demo as demo_confirmation

        return LastAct(
            "Replaying one of them",
            "{} has been replayed.",
            demo_confirmation.REPLAYS,
            demo_confirmation.confirm,
        )
