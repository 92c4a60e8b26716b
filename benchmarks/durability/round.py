"""One round: some kills of one case on one data folder, and a count of the stored spans."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from cases import Case, Outcome
from senders import Senders
from victim import Victim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cases import Kind
    from nursery import Nursery

ROOT = Path(__file__).resolve().parents[2]
COLD = 0.2
"""Share of rounds whose processes are started as a shell would start them."""
_SQL = "SELECT SpanId, count() FROM otel_traces GROUP BY SpanId"


def _loaded(victim: Victim, senders: Senders, dice: random.Random) -> None:
    """Start, and serve for a moment."""
    if victim.start():
        senders.wait_for_more(victim.gone)
        time.sleep(dice.uniform(0.0, 0.3))


def _under_load(victim: Victim, senders: Senders, dice: random.Random) -> None:
    _loaded(victim, senders, dice)
    victim.kill()


def _at_start_up(victim: Victim, _senders: Senders, dice: random.Random) -> None:
    """Kill between the first moment and the first requests that it takes."""
    victim.spawn()
    time.sleep(dice.uniform(0.1, 1.4) * victim.seconds)
    victim.kill()


def _after_sigterm(victim: Victim, senders: Senders, dice: random.Random) -> None:
    _loaded(victim, senders, dice)
    victim.terminate()
    # Sooner rather than later: an orderly end takes a few tenths of a second.
    time.sleep(0.5 * dice.random() ** 2)
    victim.kill()


def _in_pairs(victim: Victim, senders: Senders, dice: random.Random) -> None:
    _under_load(victim, senders, dice)
    _at_start_up(victim, senders, dice)


_KILL: Mapping[Kind, Callable[[Victim, Senders, random.Random], None]] = {
    "under load": _under_load,
    "at start-up": _at_start_up,
    "after SIGTERM": _after_sigterm,
    "in pairs": _in_pairs,
}


def play(
    case: Case, seed: int, kills: int, *, folder: Path, database: str, nursery: Nursery
) -> Outcome:
    """Kill a number of times, then count the stored spans.

    Args:
        case: see `Case`.
        seed: of moments and manners.
        kills: to come to.
        folder: empty; of the data and the log.
        database: address of an empty database on a server, for cases with ``--url``.
        nursery: starts the processes.

    Raises:
        RuntimeError: a process hangs, the last one does not end in order, or the data cannot be
            read.
    """
    began, dice = time.monotonic(), random.Random(seed)
    url = database if case.command.endswith("--url") else ""
    victim = Victim(folder, case.command, url, nursery, cold=dice.random() < COLD)
    senders = Senders(case.protocol, victim.port(case.protocol), seed)
    senders.start()
    try:
        if case.kind == "at start-up":
            # The duration of a start on this machine, over which the kills are spread.
            _loaded(victim, senders, dice)
            victim.finish()
        while victim.kills + victim.failed_starts < kills:
            _KILL[case.kind](victim, senders, dice)
        if victim.start():
            senders.wait_for_more(victim.gone)
    finally:
        senders.stop()
    victim.finish()
    store = url or f"chdb://{folder}/data/clickhouse"
    stored = Counter(dict(nursery.query(store, _SQL, folder / "stored.json")))
    return Outcome(
        *(case.kind, case.command, case.protocol, seed, commit()),
        kills=victim.kills,
        starts=victim.starts,
        failed_starts=victim.failed_starts,
        acknowledged=len(senders.acknowledged),
        unanswered=len(senders.unanswered),
        lost=sum(not stored[span] for span in senders.acknowledged),
        doubled=sum(number > 1 for number in stored.values()),
        seconds=round(time.monotonic() - began, 1),
    )


def commit() -> str:
    """Return the source tree's commit, with ``+`` where it was changed since."""
    parts = ("sdk", "collector", "judge", "dashboards", "lab")
    changed = _git("status", "--porcelain", "--", *parts)
    return _git("rev-parse", "--short", "HEAD").strip() + ("+" if changed else "")


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
