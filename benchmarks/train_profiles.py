"""Trains the attribution profiles that ship with the judge, on Who&When (arXiv 2505.00212).

    python benchmarks/train_profiles.py [DATA]

DATA, or MAST_TRACE_DATA, is the folder with `who-and-when/`. The result is the same on every
machine; the runs themselves stay where they are. Each profile says what it was trained on and how
it scored on questions that it had not seen.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mast_trace_judge.attribution as package
from mast_trace_judge.attribution.training import fit
from mast_trace_judge.datasets.labelled import data_folder
from mast_trace_judge.datasets.who_and_when import read_who_and_when

SHIPPED = {
    "ag2-captain": ("algorithm-generated", (r"expert$",)),
    "magentic-one": ("hand-crafted", (r"orchestrator$", r"^(?:web|file) ?surfer$")),
}


def main() -> None:
    """Train and write every profile."""
    data = data_folder(sys.argv[1] if len(sys.argv) > 1 else None)
    for name, (subset, agents) in SHIPPED.items():
        runs = read_who_and_when(data, subset)
        profile = fit(
            runs,
            name=name,
            agents=agents,
            frameworks=(name,),
            trained_on=f"{len(runs)} {subset} failure logs of Who&When (arXiv 2505.00212)",
        )
        path = Path(package.__file__).parent / "profiles" / f"{name}.json"
        path.write_text(profile.to_json(), encoding="utf-8")
        print(name, profile.labels, "labels", dict(profile.scores), dict(profile.settings))


if __name__ == "__main__":
    main()
