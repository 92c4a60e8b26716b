"""Confirms failures of a real LangGraph team whose model errs at random, and writes what was proved.

::

    python benchmarks/replay/real_team.py                    # 20 runs of each class, replayed in process
    python benchmarks/replay/real_team.py --runs 3           # fewer, printed and not written
    python benchmarks/replay/real_team.py --runs 3 --forked  # each replay is a process, as with --preload

The code is that of `mast-trace confirm` from the verification to the stored conclusion. Runs of the same number are
alike, so that they can be repeated.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "examples")]

import team_program  # noqa: E402
from erring_model import PLACES, ErringModel, decision_of  # noqa: E402
from in_process import InProcess  # noqa: E402
from replay_page import chosen_of  # noqa: E402
from scripted_llm import ScriptedLLM  # noqa: E402
from team_bounds import CLASSES, TeamClass, counts, ending, store_counts  # noqa: E402

from mast_trace.testing import capture_spans  # noqa: E402
from mast_trace_collector.storage import Store, migrate  # noqa: E402
from mast_trace_dashboards.cli.commands.judge import unstored  # noqa: E402
from mast_trace_lab.confirm.confirm import Confirming  # noqa: E402
from mast_trace_lab.confirm.preparation import FailedRun, check  # noqa: E402
from mast_trace_lab.program.budget import Budget  # noqa: E402
from mast_trace_lab.program.forking import Forking, LazyParent  # noqa: E402
from mast_trace_lab.program.setup import Setup  # noqa: E402
from mast_trace_lab.replay.arm_runner import executing  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.arms import ArmResult
    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_lab.program.budget import ReplayAllowance, ReplayTrial
    from mast_trace_lab.program.conducting import Execute

RUNS = 20
"""Runs of a class."""


def main() -> None:
    """Confirm the failures of the chosen classes; what has ended is written after each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, help="runs of each class; nothing is written then")
    parser.add_argument("--forked", action="store_true", help="a process for each replay")
    chosen, kinds = chosen_of(parser, [each.name for each in CLASSES])
    # Class after class within each round, so that an early end leaves as many of each.
    wanted = [(kind, number) for number in range(chosen.runs or RUNS) for kind in kinds]
    ended: dict[int, list[tuple[str, Confirmation]]] = {kind: [] for kind in kinds}
    # An engine does not survive a fork.
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(chosen.jobs, spawned, _open, (chosen.forked,)) as processes:
        running = {processes.submit(_one, *each): each[0] for each in wanted}
        for done in as_completed(running):
            kind = running[done]
            ended[kind].append(done.result())
            found = counts(ended[kind])
            print(CLASSES[kind].name, json.dumps(found), flush=True)
            if chosen.runs is None:
                store_counts(CLASSES[kind], "real", found)


def _open(forked: bool) -> None:
    """Open a bench for all runs of this process."""
    global _bench  # noqa: PLW0603
    _bench = Bench(forked=forked).__enter__()


def _one(kind: int, number: int) -> tuple[str, Confirmation]:
    assert _bench is not None
    return _bench.confirmed(CLASSES[kind], number)


class Bench:
    """A model's server and a store, in which failures are recorded and confirmed.

    Args:
        forked: whether each replay is forked from a process of the program, instead of running in this one.
        store: the store; a new one if absent.
    """

    def __init__(self, *, forked: bool = False, store: Store | None = None) -> None:
        self._forked = forked
        self._given = store
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start the server, and open the store."""
        enter = self._stack.enter_context
        self._server = enter(ScriptedLLM(ErringModel(1.0, 0, planted=False)))
        variables = {"OPENAI_BASE_URL": self._server.url, "OPENAI_API_KEY": "scripted"}
        enter(patch.dict(os.environ, variables))
        if self._given is not None:
            self._store = self._given
        else:
            folder = enter(tempfile.TemporaryDirectory(prefix="mast-trace-team-"))
            self._store = enter(Store.open(f"chdb://{folder}"))
            migrate(self._store)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server, and close the store."""
        self._stack.close()

    def confirmed(self, kind: TeamClass, number: int) -> tuple[str, Confirmation]:
        """Record a failure of a class and confirm it; return its ending and the conclusion."""
        place = PLACES[number % len(PLACES)]
        arguments = ["refused"] if kind.by_coin else []
        self._server.script = ErringModel(kind.rate, place, planted=not kind.by_coin)
        with capture_spans() as captured:
            team_program.main(*arguments)
        recorded = captured.trajectory()
        draw = random.Random(f"{kind.name} {number}")
        self._server.script = ErringModel(kind.rate, place, planted=kind.always, draw=draw)
        with ExitStack() as stack:
            command = (sys.executable, str(HERE / "team_program.py"), *arguments)
            parent: Forking = InProcess(lambda: team_program.main(*arguments))
            if self._forked:
                parent = LazyParent(["langchain_openai", "langgraph"], warn=print)
                stack.enter_context(parent)
            setup = Setup(command, parent=parent)
            points = check(recorded, setup)
            run = summary(kind, number, recorded)
            prepared = FailedRun(self._store, run, recorded, setup, points).plan()
            execute = executing(recorded, setup)
            if kind.by_coin:
                execute = by_coin(execute, lambda _kept: kind.coin, draw)
            work = Confirming(
                self._store, prepared.plan, prepared.experiment, recorded, setup, execute, Budget()
            )
            work.resume()
            told = work.run().confirmation
        truth = None if kind.always or kind.by_coin else points[decision_of(place)].step
        return ending(told, truth), told


def by_coin(execute: Execute, coin: Callable[[int], float], draw: random.Random) -> Execute:
    """Return an execution whose outcomes, but for replays without a change, are those of a coin.

    The step up to which a replay keeps the run tells its rate.
    """

    def executed(trial: ReplayTrial, allowance: ReplayAllowance) -> ArmResult:
        result, arm = execute(trial, allowance), trial.arm
        if trial.phase == "verify" or result.status != "ok":
            return result
        kept = arm.step if arm.operator in {"start", "keep"} else arm.step - 1
        return replace(result, success=draw.random() < coin(kept))

    return executed


def summary(kind: TeamClass, number: int, recorded: Trajectory) -> RunSummary:
    """Return a recorded run as the store summarises it, with an id by which it can be run again alike."""
    noon = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    place = [each.name for each in CLASSES].index(kind.name)
    return replace(
        unstored(recorded),
        project="bench",
        trace_id=f"{place * 1000 + number:032x}",
        service="team",
        framework="langgraph",
        start=noon - timedelta(minutes=2),
        end=noon - timedelta(minutes=1),
        last_seen=noon,
        spans=len(recorded.invocations),
        agents=(),
        outcome="failure",
        termination_reason="",
    )


_bench: Bench | None = None
"""The bench of a process that `main` has started."""

if __name__ == "__main__":
    main()
