"""Trains the attribution profiles and calibrations that ship with the judge, on Who&When.

    python benchmarks/judge/train_profiles.py [DATA]

DATA, or MAST_TRACE_DATA, is the folder with `who-and-when/` (arXiv 2505.00212). The result is the same on
every machine; runs stay where they are. Each profile says what it was trained on and how it scored on questions that it had
not seen.
"""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from published import data_folder
from published.who_and_when import read_who_and_when

import mast_trace_judge.local.attribution as package
from mast_trace_judge.local.attribution.calibration import STORED, fit_calibration
from mast_trace_judge.local.attribution.cascade import uncalibrated
from mast_trace_judge.study.training import fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace_judge.study.labelled import LabelledRun

SHIPPED = {
    "ag2-captain": "algorithm-generated",
    "magentic-one": "hand-crafted",
}
FOLDER = Path(package.__file__).parent
Sample = tuple[dict[int, float], int | None]


def main() -> None:
    """Train and write every profile and calibration."""
    data = data_folder(sys.argv[1] if len(sys.argv) > 1 else None)
    runs = {name: read_who_and_when(data, subset) for name, subset in SHIPPED.items()}
    for name, subset in SHIPPED.items():
        profile = fit(
            runs[name],
            name=name,
            frameworks=(name,),
            trained_on=f"{len(runs[name])} {subset} failure logs of Who&When (arXiv 2505.00212)",
        )
        path = FOLDER / "profiles" / f"{name}.json"
        path.write_text(profile.to_json(), encoding="utf-8")
        print(name, profile.labels, "labels", dict(profile.scores), dict(profile.settings))
    alone = [(uncalibrated(run.trajectory)[0], run.step) for run in chain(*runs.values())]
    calibrations = {"cascade": _calibration(alone, runs.values())}
    text = json.dumps(calibrations, indent=1) + "\n"
    (FOLDER / STORED).write_text(text, encoding="utf-8")
    print(text)


def _calibration(
    samples: Iterable[Sample], runs: Iterable[Sequence[LabelledRun]]
) -> dict[str, Any]:
    found = fit_calibration(samples)
    fitted_to = f"{sum(map(len, runs))} failure logs of Who&When (arXiv 2505.00212)"
    return {"share": round(found.share, 2), "first": round(found.first, 2), "fitted_to": fitted_to}


if __name__ == "__main__":
    main()
