"""The plugin of planted faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_dashboards.plugins import Plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typer import Typer


class Inject(Plugin):
    """The commands `inject` and `dataset`."""

    name = "inject"

    def commands(self) -> Mapping[str, Callable[[Typer], None]]:
        """Return `inject` and `dataset`."""
        from mast_trace_lab.inject import command as inject
        from mast_trace_lab.inject import dataset_command as dataset

        return {"inject": inject.register, "dataset": dataset.register}
