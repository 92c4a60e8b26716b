"""Commands whose modules are imported when they are called.

Importing all of them takes a second, which would delay a command that only shows a run.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

MODULES = {
    "demo": "demo",
    "up": "up",
    "collect": "collect",
    "web": "web",
    "runs": "runs",
    "outcome": "runs",
    "show": "show",
    "cost": "cost",
    "profile": "profile",
    "patterns": "patterns",
    "mcp": "mcp",
    "judge": "judge",
    "check": "check",
    "cases": "cases",
    "replay": "replay",
    "confirm": "confirm",
    "inject": "inject",
    "selftest": "selftest",
    "dataset": "dataset",
    "lessons": "lessons",
    "experiment": "experiment",
    "train": "train",
    "label": "labels",
    "import": "transfer",
    "export": "transfer",
    "erase": "erase",
    "retain": "retain",
    "backup": "backup",
    "restore": "backup",
    "alerts": "alerts",
    "dashboards": "dashboards",
    "migrate": "admin",
    "config": "admin",
    "doctor": "admin",
}
"""Command -> module in this package whose `register` adds it; in the order of `--help`."""


class LazyGroup(TyperGroup):
    """The group of all commands."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (newer Typers hold a click of their own)
        """Return the names of all commands."""
        return list(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Import a command; None if there is none of this name."""
        if cmd_name not in MODULES:
            return None
        if cmd_name not in self.commands:
            part = typer.Typer()
            import_module(f"{__package__}.{MODULES[cmd_name]}").register(part)
            made = typer.main.get_group(part)
            self.commands[cmd_name] = made.commands[cmd_name]
        return self.commands[cmd_name]
