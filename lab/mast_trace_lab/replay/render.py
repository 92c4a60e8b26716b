"""Output of a replay that changes nothing: for people, and for other programs."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import to_dict
from mast_trace_dashboards.cli.output import console, draft_of, plain

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace.trajectory import Trajectory
    from mast_trace_lab.replay import Replayed

_STYLES = {"identical": "bold green"}


def write_replay(path: Path, run: Trajectory | None) -> None:
    """Write a replayed run as JSON, in the form of a downloaded run.

    Raises:
        ConfigurationError: there is no run, or the file cannot be written.
    """
    if run is None:
        raise ConfigurationError(f"nothing was written to {path}: the program recorded no run")
    text = json.dumps({"trajectory": to_dict(run), "verdict": None}, ensure_ascii=False)
    try:
        with draft_of(path) as draft:
            draft.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror or error}") from error


def show(recorded: Trajectory, done: Replayed) -> None:
    """Print the result of a replay for people."""
    shown = console()
    shown.print(plain(done.status, _STYLES.get(done.status, "bold red")), end="")
    report = done.report
    if report is None:
        shown.print(plain(f": {done.text}"))
        return
    models = report.served_exchanges + report.waiting_exchanges
    tools = report.served_executions + report.waiting_executions
    shown.print(
        plain(
            f": {report.served_exchanges} of {models} model calls and {report.served_executions} of "
            f"{tools} tool calls answered from run {recorded.trace_id[:12]}, "
            f"{report.live_executions} tools executed"
        )
    )
    if done.text:
        shown.print(plain(done.text))
    elif done.status == "identical":
        shown.print(plain(f"All {len(recorded.steps)} steps are the same."))
    if done.exit_status:
        shown.print(plain(f"The program ended with {done.exit_status}."))


def as_dict(done: Replayed) -> dict[str, object]:
    """Return the result of a replay for other programs."""
    return {
        "status": done.status,
        "text": done.text,
        "report": None if done.report is None else dataclasses.asdict(done.report),
        "exit_status": done.exit_status,
    }
