"""Plants 300 faults in the five example programs, and writes results and tables.

::

    python benchmarks/injection/run.py --python crewai_stock.py=PATH ...  # about half an hour on two quiet cores
    python benchmarks/injection/run.py --share 0.1 --out /tmp/small       # a tenth, written elsewhere

The build goes on where it was interrupted: the store stays in ``--out``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "examples")]

from injection_page import RESULTS, write  # noqa: E402
from labelled_set import TIMEOUT, build_set, installed  # noqa: E402

COUNTS = {
    "langgraph_team.py": 90,
    "ag2_group_chat.py": 75,
    "autogen_group_chat.py": 66,
    "crewai_stock.py": 54,
    "leap_year_team.py": 15,
}
"""Faults of each program; one of MetaGPT's replays starts a Jupyter kernel, and takes ten times as long."""


def main() -> None:
    """Plant the faults, and write what was found after each program and voice."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], metavar="PROGRAM=PATH")
    parser.add_argument("--out", type=Path, help="folder of the set and its store")
    parser.add_argument("--program", action="append", help="only this program; several at once")
    parser.add_argument("--share", type=float, default=1.0, help="share of the 300 faults")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds of one replay")
    chosen = parser.parse_args()
    folder = chosen.out or Path(tempfile.mkdtemp(prefix="mast-trace-injection-"))
    results = folder / "results.json" if chosen.out else RESULTS
    print(f"set and store: {folder}", flush=True)
    counts = {name: max(1, round(chosen.share * count)) for name, count in COUNTS.items()}
    pythons = installed(chosen.python)
    pythons = {name: at for name, at in pythons.items() if name in (chosen.program or pythons)}
    found: list[dict[str, Any]] = []
    for each in build_set(folder, pythons, counts, timeout=chosen.timeout):
        found.append(each)
        faults = each["faults"]
        kept = sum(fault["verdict"] == "kept" for fault in faults)
        print(
            f"{each['program']}, voice {each['voice']}: {len(faults)} faults, {kept} kept, "
            f"{each['replays']} replays in {each['seconds']} s {each['refused']}",
            flush=True,
        )
        results.write_text(json.dumps(found, indent=1) + "\n")
    if results == RESULTS:
        write(found)


if __name__ == "__main__":
    main()
