"""The frameworks' own test suites, with and without `mast_trace.instrument()`, compared test by test.

Each suite runs in an environment of its own, from its source distribution. Tests that differ are run
again three times each way; those that differ every time are confirmed. Writes ``results.json`` and the
table of ``README.md``. Ends with status 1 if a difference is confirmed or a suite does not run.

::

    python benchmarks/transparency/run.py
    python benchmarks/transparency/run.py langgraph-swarm langgraph-supervisor
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from compare import Compared, SuiteError, compare  # noqa: E402
from suites import suites  # noqa: E402
from table import write_table  # noqa: E402

RESULTS = HERE / "results.json"


def main() -> int:
    """Compare the suites that are named, or all."""
    known = {suite.name: suite for suite in suites()}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("suites", nargs="*", help=f"some of {', '.join(known)}; all if absent")
    wanted = parser.parse_args().suites or list(known)
    if unknown := set(wanted) - known.keys():
        parser.error(f"no suite is called {', '.join(sorted(unknown))}")
    results = read_results()
    bad = False
    for name in wanted:
        suite = known[name]
        if suite.reason:
            print(f"{name}: not run: {suite.reason}")
            continue
        try:
            compared = compare(suite)
        except (SuiteError, subprocess.SubprocessError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            bad = True
            continue
        print(f"{name}: {compared.tests} tests, {compared.spans} spans, {compared.confirmed=}")
        bad = bad or bool(compared.confirmed)
        results[name] = compared
        written = {name: each.to_dict() for name, each in sorted(results.items())}
        RESULTS.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
        write_table(list(known.values()), results)
    return int(bad)


def read_results() -> dict[str, Compared]:
    """Read the results of earlier runs, so that a suite can be compared alone."""
    if not RESULTS.exists():
        return {}
    return {name: Compared(**row) for name, row in json.loads(RESULTS.read_text("utf-8")).items()}


if __name__ == "__main__":
    sys.exit(main())
