"""Commands that replay a run, to be copied from its page."""

from __future__ import annotations

import shlex
from typing import Final, NamedTuple

PROGRAM: Final = "YOUR COMMAND"
"""Stands for the program that made the run."""


class Command(NamedTuple):
    """A command, and its effect."""

    effect: str
    text: str


def whole_run(trace_id: str, project: str) -> list[Command]:
    """Return the commands that replay a run from its beginning."""
    verify = "Runs the program again from the record, and shows the first difference"
    confirm = "Proves by replays which step decided the failure"
    return [
        Command(verify, _line("replay", trace_id, project)),
        Command(confirm, _line("confirm", trace_id, project)),
    ]


def from_step(trace_id: str, project: str, step: int) -> list[Command]:
    """Return the commands that keep the run up to a step, and run the rest live."""
    effects = {
        "Keeps this answer, and runs the rest live": f"--keep {step}",
        "Replaces this answer by the text of a file": f"--fix {step}=@answer.txt",
        "Asks the model again here": f"--resample {step}",
    }
    return [
        Command(effect, _line("replay", trace_id, project, change))
        for effect, change in effects.items()
    ]


def _line(command: str, trace_id: str, project: str, change: str = "") -> str:
    of_project = f"--project {shlex.quote(project)}" if project else ""
    parts = ("mast-trace", command, shlex.quote(trace_id), change, of_project, "--", PROGRAM)
    return " ".join(filter(None, parts))
