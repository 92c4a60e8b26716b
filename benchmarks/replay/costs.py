"""Prices the live calls of simulated confirmations, beside replays that run everything again.

::

    python benchmarks/replay/costs.py   # two minutes on one core; writes costs.json and its table

The runs are those of ``run.py`` with a single error, by V and by length. A live call reads the instructions and all
steps before it; nothing is cached by the provider.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from one_experiment import simulate  # noqa: E402
from random_programs import Policy  # noqa: E402
from replay_page import COSTS, write  # noqa: E402
from run_classes import CLASSES, Class  # noqa: E402

from mast_trace_judge.llm.budget import Price, Tokens  # noqa: E402

if TYPE_CHECKING:
    from mast_trace_judge.arms import ArmResult
    from mast_trace_lab.program.budget import ReplayTrial

RUNS = 300
MODEL, PRICE = "gpt-5-mini", Price(input=0.25, output=2.0)
"""A small model, and its price in US dollars per million tokens."""

INSTRUCTIONS, STEP = 1000, 300
"""Assumed tokens of the instructions and the tools of a call, and of each step, which a call writes."""

NAMES = tuple(
    f"single error, V .{level}{length}"
    for length in (", 10 steps", "", ", 40 steps", ", 80 steps")
    for level in (9, 6, 3)
    if level > 3 or not length
)


def price_of(first: int, length: int) -> float:
    """Return the cost of the live calls from a step to the end of a run, in US dollars."""
    steps = range(first, length)
    read = sum(INSTRUCTIONS + STEP * step for step in steps)
    return PRICE.of(Tokens(input=read, output=STEP * len(steps)))


@dataclass
class Spent:
    """The live calls of replays and their cost.

    Attributes:
        calls: live calls.
        usd: their cost.
        whole_calls: calls of as many replays that answer nothing from the record.
        whole_usd: their cost.
    """

    calls: int = 0
    usd: float = 0.0
    whole_calls: int = 0
    whole_usd: float = 0.0


@dataclass
class Metered(Policy):
    """A simulated program that adds up what its replays cost.

    Attributes:
        spent: the sums of all replays of a class.
    """

    spent: Spent = field(default_factory=Spent)

    def replay(self, trial: ReplayTrial, draw: random.Random, number: int) -> ArmResult:
        """Draw the result of a replay, and add its calls."""
        if trial.arm.operator not in {"verify", "score"}:
            self.spent.calls += trial.calls
            self.spent.usd += price_of(self.length - trial.calls, self.length)
            self.spent.whole_calls += self.length
            self.spent.whole_usd += price_of(0, self.length)
        return super().replay(trial, draw, number)


def measured(name: str) -> dict[str, Any]:
    """Return the sums of the class of a name over all its runs."""
    (kind,) = (each for each in CLASSES if each.name == name)
    spent = Spent()

    def make(draw: random.Random) -> Policy:
        made = kind.make(draw)
        given = {each.name: getattr(made, each.name) for each in fields(made)}
        return Metered(**given, spent=spent)

    metered = Class(kind.name, make, something=True)
    right = sum(simulate(metered, seed).origin == "right" for seed in range(RUNS))
    return {
        "name": kind.name,
        "length": kind.make(random.Random(0)).length,
        "runs": RUNS,
        "right": right,
        **{each.name: round(getattr(spent, each.name), 4) for each in fields(spent)},
    }


def main() -> None:
    """Simulate the classes, and write results and table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    found = []
    with ProcessPoolExecutor(parser.parse_args().jobs) as processes:
        for each in processes.map(measured, NAMES):
            print(json.dumps(each), flush=True)
            found.append(each)
    price = {"model": MODEL, "input": PRICE.input, "output": PRICE.output}
    tokens = {"instructions": INSTRUCTIONS, "step": STEP}
    stored = {"price": price, "tokens": tokens, "classes": found}
    COSTS.write_text(json.dumps(stored, indent=1) + "\n")
    write()


if __name__ == "__main__":
    main()
