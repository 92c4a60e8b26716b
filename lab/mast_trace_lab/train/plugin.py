"""The plugin of training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_dashboards.plugins import Plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typer import Typer


class Train(Plugin):
    """The command `train`."""

    name = "train"

    def commands(self) -> Mapping[str, Callable[[Typer], None]]:
        """Return `train`."""
        from mast_trace_lab.train import command as train

        return {"train": train.register}
