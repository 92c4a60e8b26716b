"""Puts one-line mistakes into important modules, one at a time, and checks that a test fails.

The mutants are made by mutmut. ``targets.toml`` lists the mutated modules and their tests,
``judged.toml`` the assessment of each mutant that no test kills. A run can be broken off and taken
up again: who was killed stays in ``history`` until the mutated function changes; what survived is
tried again after its tests have changed, and in a new checkout. Results are written to
``results.json``, from which the table in ``README.md`` is made.

::

    python benchmarks/mutants/run.py                # all targets
    python benchmarks/mutants/run.py fusion alerts  # these
    python benchmarks/mutants/run.py --anew fusion  # all of its mutants, whatever is known of them
    python benchmarks/mutants/run.py --table        # only the page, from stored results
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import history
import page
import tomllib
from history import KILLED
from workplace import ROOT, Target, difference, lay_out, python_of, statuses, try_again

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
MEMORY = Path("/dev/shm")
"""A folder in memory, if there is one: a sync takes no time there, and takes most of the spool
tests' time elsewhere.
"""
LEAST = 90.0
"""Percent of the mutants of a target that must be killed, those judged harmless left out."""


def main() -> int:
    """Run the given targets; the status is 1 where a mutant survives that has not been assessed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", help="names in targets.toml; all if none is given")
    parser.add_argument("--table", action="store_true", help="write the page from stored results")
    parser.add_argument("--anew", action="store_true", help="forget who was killed before")
    given = parser.parse_args()
    # Ended from outside, too, the known results are written.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    targets = {name: Target(name, **values) for name, values in _read("targets.toml").items()}
    if unknown := set(given.targets) - targets.keys():
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(targets)}")
    failed = False
    for name in [] if given.table else given.targets or targets:
        if given.anew:
            history.path_of(name).unlink(missing_ok=True)
            shutil.rmtree(targets[name].workplace / "mutants", ignore_errors=True)
        result = _run(targets[name], _results().get(name, {}).get("judged", {}))
        # Another process may have finished another target meanwhile.
        results = {**_results(), name: result}
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        failed |= bool(result["open"]) or result["percent"] < LEAST
    page.write(_results())
    return int(failed)


def _results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def _run(target: Target, before: Mapping[str, str]) -> dict[str, Any]:
    """Try a target's mutants; `before` has the changes of those that were assessed in the last run."""
    place = lay_out(target)
    try_again(target)
    python = python_of(target)
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(HERE),
        "MUTANTS_KILLED": str(history.path_of(target.name)),
        "MAST_TRACE_DATA": os.environ.get("MAST_TRACE_DATA", str(ROOT / ".." / "shared" / "data")),
    }
    children = os.environ.get("MUTANTS_AT_ONCE", "2")
    command = [python, str(HERE / "in_rounds.py"), "run", "--max-children", children]
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        environment["TMPDIR"] = folder
        try:
            done = subprocess.run(command, cwd=place, env=environment, check=False)
        finally:
            history.write(target.name, place)
    # Broken off, mutmut may leave half a file behind; the next run makes it anew.
    found = {} if done.returncode else statuses(place)
    if not found or "not checked" in found.values():
        raise SystemExit(f"mutmut did not finish {target.name}: run it again to go on")
    judged = _read("judged.toml").get(target.name, {})
    alive = {name for name, status in found.items() if status not in KILLED}
    counted = Counter(found.values())
    killed = sum(counted[status] for status in KILLED)
    changes = {name: difference(place, name) for name in sorted(alive)}
    # A mutant's number is another's once its function has changed: then it is judged anew, and
    # taken out of `judged` in results.json.
    same = (name for name in alive if before.get(name, changes[name]) == changes[name])
    harmless = {name for name in same if any(fnmatchcase(name, each) for each in judged)}
    for name, change in changes.items():
        harmless |= {name for each in judged if fnmatchcase(change, each)}
    print(f"{target.name}: {dict(counted)}")
    for name in sorted(alive - harmless):
        print(f"--- {name}: {found[name]}\n{changes[name]}")
    return {
        "mutants": len(found),
        "killed": killed,
        "harmless": len(harmless),
        "open": sorted(alive - harmless),
        "judged": {name: before.get(name, changes[name]) for name in sorted(alive & judged.keys())},
        "percent": round(100 * killed / max(1, len(found) - len(harmless)), 1),
        "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
        "commit": _commit(),
    }


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def _read(name: str) -> dict[str, Any]:
    path = HERE / name
    return tomllib.loads(path.read_text()) if path.exists() else {}


if __name__ == "__main__":
    sys.exit(main())
