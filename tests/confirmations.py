"""Stored failed runs of the hand-made shop, whose model reads its input, and confirmations of them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from policies import Planted, shop
from replays import record
from scripted_llm import ScriptedLLM, last_text

from mast_trace.trajectory import to_dict
from mast_trace_collector.storage import Store
from mast_trace_dashboards.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies import Policy

    from mast_trace.trajectory import Trajectory

SHOP = Path(__file__).parent / "judge" / "replay" / "shop.py"
CHOICE, COUNTED, REPORT, PLAN, ORDER = range(5)
"""Steps of the recorded run; the planted error is in the report."""
SERVICE = "shop"
"""Service name of the recorded run."""


def misread(request: dict) -> str:
    """Report another number than the tool's result."""
    return "There are 310 pieces of kettle." if "stock of" in last_text(request) else shop(request)


@dataclass
class Failed:
    """A stored failure.

    Attributes:
        url: of the store.
        recorded: the run.
        server: the model, which errs no more.
        policy: of the server.
        executed: file to which the tool logs its executions.
        folder: for files.
        program: the program.
    """

    url: str
    recorded: Trajectory
    server: ScriptedLLM
    policy: Planted
    executed: Path
    folder: Path
    program: Path = SHOP

    @property
    def command(self) -> tuple[str, ...]:
        """The program."""
        return sys.executable, str(self.program)

    def arguments(self, *options: str, way: str = "") -> list[str]:
        """Return the arguments of `mast-trace confirm`."""
        program = [*self.command, *filter(None, [way])]
        return ["confirm", "--yes", "--url", self.url, *options, "last", "--", *program]

    def store(self) -> Store:
        """Open the store."""
        return Store.open(self.url)


@contextmanager
def failed_shop(
    folder: Path,
    way: str = "",
    *,
    program: Path = SHOP,
    answers: Policy = shop,
    wrong: Policy = misread,
) -> Iterator[Failed]:
    """Record a run in which the counter misreads the stock, store it, and cure the model.

    Args:
        folder: for files.
        way: argument of the program.
        program: the program.
        answers: the model's policy.
        wrong: its policy for the counter until it is cured.
    """
    policy = Planted(answers, "counter", wrong)
    # A path of its own, by which its processes are found.
    program = Path(shutil.copy(program, folder))
    with ScriptedLLM(policy) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        patch.setenv("EXECUTED", str(folder / "executed"))
        patch.setenv("OTEL_SERVICE_NAME", SERVICE)
        patch.setenv("MAST_TRACE_DATA_DIR", str(folder / "data"))
        recorded = record(program, *filter(None, [way]), folder=folder, keep="OPENAI_")
        policy.cured = True
        (folder / "executed").unlink(missing_ok=True)
        url = f"chdb://{folder / 'store'}"
        keep(recorded, url, folder)
        yield Failed(url, recorded, server, policy, folder / "executed", folder, program)


def keep(recorded: Trajectory, url: str, folder: Path) -> None:
    """Put a recorded run into a new store."""
    file = folder / "run.jsonl"
    exported = {"trajectory": to_dict(recorded), "verdict": None, "labels": []}
    file.write_text(json.dumps({"trace_id": recorded.trace_id, **exported}) + "\n", "utf-8")
    assert run(["migrate", "--url", url]) == 0
    assert run(["import", str(file), "--url", url]) == 0


def environment(failed: Failed) -> dict[str, str]:
    """Return the environment of a process that confirms."""
    return {
        **os.environ,
        "OPENAI_BASE_URL": failed.server.url,
        "OPENAI_API_KEY": "scripted",
        "EXECUTED": str(failed.executed),
    }


def spent(store: Store) -> tuple[int, int]:
    """The replays of a store, those that are only reserved included, and their live calls."""
    (row,) = store.query(
        "SELECT count() AS Replays, sum(LiveCalls) AS Calls FROM mast_replays FINAL"
    )
    return row["Replays"], row["Calls"]
