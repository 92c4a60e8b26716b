"""Kills `mast-trace up` and `mast-trace collect` until so many kills are recorded in all.

Each round takes the case with the fewest kills so far, and adds a line to ``results.jsonl``. It can
be ended at any time and taken up again. Exit status 1 if a round lost or doubled a span, a start
failed, or a process hung; that round's folder is kept.

::

    nice -n 19 python benchmarks/durability/run.py --until 1000
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

ENOUGH = 5
"""Rounds that found something, after which it ends."""
HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1] / "tests"
sys.path[:0] = [str(HERE), str(TESTS)]

from cases import COMMANDS, KINDS, PROTOCOLS, RESULTS, Case, least_tested, record, recorded  # noqa: E402
from nursery import Nursery  # noqa: E402
from report import write_report  # noqa: E402
from round import play  # noqa: E402

from mast_trace_collector.storage import Store  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cases import Outcome


def main() -> int:
    """Run rounds; return the exit status."""
    asked = _arguments()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="mast-trace-durability-", dir=asked.folder))
    print(f"folder: {folder}", flush=True)
    bad = 0
    nursery = Nursery()
    try:
        with _server(folder) as server:
            while asked.seed is not None or _killed(asked.results) < asked.until:
                bad += _round(asked, folder, server, nursery)
                if asked.seed is not None or bad >= ENOUGH:
                    break
    except KeyboardInterrupt:
        print("ended; the next run goes on from here")
    finally:
        nursery.close()
        if not bad:
            shutil.rmtree(folder)
        if asked.results == RESULTS:
            write_report()
    return 1 if bad else 0


def _killed(results: Path) -> int:
    return sum(each.kills for each in recorded(results))


def _round(asked: argparse.Namespace, folder: Path, server: str, nursery: Nursery) -> bool:
    """Play and record a round; whether it found something."""
    case = least_tested(recorded(asked.results))
    if asked.seed is not None:
        case = Case(asked.kind, asked.command, asked.protocol)
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(10**9)
    place = folder / f"{case.command.split()[0]}-{seed}"
    place.mkdir()
    database = f"round_{seed}"
    try:
        outcome = play(
            *(case, seed, asked.kills),
            folder=place,
            database=f"{server}/{database}",
            nursery=nursery,
        )
    except RuntimeError:
        print(f"LOOK AT {place}: {case}, seed {seed}", flush=True)
        traceback.print_exc()
        return True
    with Store.open(server) as store:
        store.command(f"DROP DATABASE IF EXISTS {database}", use_database=False)
    record(outcome, asked.results)
    bad = bool(outcome.lost or outcome.doubled or outcome.failed_starts)
    _say(outcome, place if bad else None)
    if not bad:
        shutil.rmtree(place)
    return bad


def _say(outcome: Outcome, kept: Path | None) -> None:
    found = f"LOOK AT {kept}: " if kept else ""
    print(
        f"{found}{outcome.kills} kills of {outcome.command} {outcome.kind}, {outcome.protocol}, "
        f"seed {outcome.seed}: {outcome.acknowledged} acknowledged, {outcome.lost} lost, "
        f"{outcome.doubled} doubled, {outcome.failed_starts} failed starts, "
        f"{outcome.seconds / max(outcome.kills, 1):.1f} s a kill",
        flush=True,
    )


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[str]:
    """The database address for commands with ``--url``; empty for others."""
    command = [sys.executable, str(TESTS / "clickhouse_server.py"), str(folder / "server")]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--until", type=int, default=1000, help="kills in all, earlier runs' too")
    parser.add_argument("--kills", type=int, default=10, help="kills in one round")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file that rounds go to")
    parser.add_argument("--folder", type=Path, help="folder in which data folders are made")
    again = parser.add_argument_group("one round alone, as one that found something")
    again.add_argument("--seed", type=int)
    again.add_argument("--kind", choices=KINDS, default=KINDS[0])
    again.add_argument("--command", choices=COMMANDS, default=COMMANDS[0])
    again.add_argument("--protocol", choices=PROTOCOLS, default=PROTOCOLS[0])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
