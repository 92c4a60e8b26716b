"""Simulates the team of ``real_team.py`` in Python alone, and bounds the counts of its real runs.

::

    python benchmarks/replay/team_bounds.py              # 1,000 runs of each class, a minute or two
    python benchmarks/replay/team_bounds.py --runs 100   # fewer, printed and not written
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from erring_model import LENGTH, NUMBERS, PLACES, ErringModel, decision_of  # noqa: E402
from random_programs import RESAMPLE, points  # noqa: E402
from replay_page import TEAM, lower, upper  # noqa: E402

from mast_trace_judge.arms import ArmResult  # noqa: E402
from mast_trace_lab.confirm.preparation import limits_of  # noqa: E402
from mast_trace_lab.confirm.statistics import Experiment  # noqa: E402
from mast_trace_lab.program.setup import Setup  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_lab.program.budget import ReplayTrial

RUNS = 1000
_TAIL = 0.005
"""Chance with which right code breaks one of the bounds; four classes have eight of them."""


@dataclass(frozen=True)
class TeamClass:
    """A class of failures of the team.

    Attributes:
        name: for the table.
        rate: V at the steps before the planted error, and at the start.
        always: whether the model makes the planted error in every replay, too.
        coin: success rate of a coin that decides whatever the team answers; 0 for the answer itself.
    """

    name: str
    rate: float
    always: bool = False
    coin: float = 0.0

    @property
    def by_coin(self) -> bool:
        """True if nothing is planted."""
        return self.coin > 0


CLASSES = (
    TeamClass("single error, V .9", 0.9),
    TeamClass("single error, V .6", 0.6),
    TeamClass("systematic, no fix helps", 0.9, always=True),
    TeamClass("nothing planted, V .6", 0.9, coin=0.6),
)


def main() -> None:
    """Simulate the classes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, help="runs of each class; nothing is written then")
    chosen = parser.parse_args()
    for kind in CLASSES:
        found = simulated(kind, chosen.runs or RUNS)
        print(kind.name, json.dumps(found), flush=True)
        if chosen.runs is None:
            store_counts(kind, "simulated", found)


def simulated(kind: TeamClass, runs: int) -> dict[str, Any]:
    """Return the counts of simulated confirmations."""
    return counts([simulate(kind, seed) for seed in range(runs)])


def counts(told: Sequence[tuple[str, Confirmation]]) -> dict[str, Any]:
    """Return counts of endings and conclusions, and means of what they cost."""
    runs = len(told)
    return {
        "runs": runs,
        "origin": dict(sorted(Counter(each for each, _ in told).items())),
        "status": dict(sorted(Counter(each.status for _, each in told).items())),
        "replays": round(sum(each.replays for _, each in told) / runs, 1),
        "calls": round(sum(each.live_calls for _, each in told) / runs, 1),
    }


def simulate(kind: TeamClass, seed: int) -> tuple[str, Confirmation]:
    """Confirm one simulated failure; return its ending and the conclusion."""
    draw = random.Random(f"simulated {kind.name} {seed}")
    place = PLACES[seed % len(PLACES)]
    model = ErringModel(kind.rate, place, planted=kind.always, draw=draw)
    experiment = Experiment(
        points(LENGTH),
        prior={},
        sources=dict.fromkeys(range(LENGTH), (RESAMPLE,)),
        limits=limits_of(Setup(("program",))),
        seed=seed,
    )
    while (trial := experiment.ask()) is not None:
        experiment.tell(replay(kind, model, trial))
    told = experiment.conclusion()
    return ending(told, None if kind.always or kind.by_coin else decision_of(place)), told


def replay(kind: TeamClass, model: ErringModel, trial: ReplayTrial) -> ArmResult:
    """Return the result of a simulated replay: sums instead of messages."""
    arm, draw = trial.arm, model.draw
    assert draw is not None
    if arm.operator == "verify":
        return ArmResult(arm, "ok", success=False, phase=trial.phase)
    kept = arm.step if arm.operator in {"start", "keep"} else arm.step - 1
    recorded = ErringModel(kind.rate, model.place, planted=not kind.by_coin)
    excess = [
        (recorded if decision_of(agent) <= kept else model).excess(agent)
        for agent in range(len(NUMBERS))
    ]
    right = not any(excess)
    return ArmResult(
        arm=arm,
        status="ok",
        success=draw.random() < kind.coin if kind.by_coin else right,
        phase=trial.phase,
        pair=trial.pair,
        live_calls=LENGTH - 1 - kept,
        # The last request holds all sums but the last one.
        calls_hash=f"{kept} {excess[:-1]}" if kept < LENGTH - 1 else "",
        answer=str(sum(NUMBERS) + sum(excess)),
    )


def ending(told: Confirmation, truth: int | None) -> str:
    """Return ``right``, ``wrong`` or ``none``: the step that was called the origin against the true one.

    Where nothing is to be confirmed, each named step is wrong; so is a joint one.
    """
    if told.status == "overdetermined":
        return "wrong"
    if told.origin is None:
        return "none"
    return "right" if told.origin == truth else "wrong"


def bounds(counts: dict[str, Any], runs: int) -> tuple[int, int]:
    """Return the least right and the most wrong endings that so many real runs may have.

    Both allow for the error of the simulated rate (its one-sided 95 % bound) and of the real runs.
    """
    right, wrong = (counts["origin"].get(each, 0) for each in ("right", "wrong"))
    least = lower(right, counts["runs"]) if right else 0.0
    most = upper(wrong, counts["runs"])
    return _quantile(runs, least), runs - _quantile(runs, 1 - most)


def _quantile(runs: int, rate: float) -> int:
    """Return the largest count that is missed with a chance of at most `_TAIL`."""
    below = 0.0
    for count in range(runs + 1):
        below += math.comb(runs, count) * rate**count * (1 - rate) ** (runs - count)
        if below > _TAIL:
            return count
    return runs


def store_counts(kind: TeamClass, source: str, found: dict[str, Any]) -> None:
    """Write the counts of one class, ``real`` or ``simulated``, beside those of the others.

    ``replay_page.py`` makes the table when both are there.
    """
    known = json.loads(TEAM.read_text()) if TEAM.exists() else {}
    known[kind.name] = {**known.get(kind.name, {}), source: found}
    ordered = {each.name: known[each.name] for each in CLASSES if each.name in known}
    TEAM.write_text(json.dumps(ordered, indent=1) + "\n")


if __name__ == "__main__":
    main()
