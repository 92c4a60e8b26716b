"""Simulates experiments of `mast-trace experiment`, and writes results and the table of the page.

::

    python benchmarks/feedback/run.py              # 1,000 experiments of each kind, some minutes
    python benchmarks/feedback/run.py --count 100  # fewer, printed and not written
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from simulated_teams import AA, DEAF, HARMED, HELPED, Team, decided, simulated, tasks_until  # noqa: E402

from mast_trace_judge.intervals import wilson  # noqa: E402

COUNT: Final = 1000
RESULTS: Final = HERE / "results.json"
PAGE: Final = HERE / "README.md"
MARK: Final = "<!-- table -->"
HEAD: Final = (
    "| experiment | experiments | tasks | better | worse | not decided | 95 % interval of better | tasks an arm "
    "until better, mean |\n|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    """Simulate all kinds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--count", type=int, help="experiments of each kind; nothing is written then"
    )
    count = parser.parse_args().count
    results = []
    for team in (*AA, *DEAF, *HELPED, *HARMED):
        results.append(measured(team, count or COUNT))
        print(line(results[-1]), flush=True)
    if count is None:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        text = PAGE.read_text("utf-8").partition(MARK)[0]
        PAGE.write_text("\n".join([text + MARK, "", HEAD, *map(line, results), ""]), "utf-8")


def measured(team: Team, count: int) -> dict[str, Any]:
    """Return what is said in experiments of a kind."""
    words: Counter[str] = Counter()
    tasks = 0
    for seed in range(count):
        found = simulated(team, seed)
        words[decided(found)] += 1
        tasks += tasks_until(found)
    low, high = wilson(words["better"], count)
    paired = team.design == "pairs"
    return {
        "name": team.name,
        "experiments": count,
        "tasks": team.tasks,
        "better": words["better"] / count,
        "worse": words["worse"] / count,
        "not decided": words["not decided"] / count,
        "low": round(low, 4),
        "high": round(high, 4),
        "tasks_until": round(tasks / count / (1 if paired else 2)),
    }


def line(found: dict[str, Any]) -> str:
    """Return a row of the table."""
    helped = found["better"] > 0.3
    return (
        f"| {found['name']} | {found['experiments']:,} | {found['tasks']:,} | {found['better']:.1%} | "
        f"{found['worse']:.1%} | {found['not decided']:.1%} | {found['low']:.1%} to {found['high']:.1%} | "
        f"{found['tasks_until'] if helped else '-'} |"
    )


if __name__ == "__main__":
    main()
