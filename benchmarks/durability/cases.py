"""The cases of the benchmark, the results of their rounds, and the file that keeps them."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

RESULTS = Path(__file__).with_name("results.jsonl")

Kind = Literal["under load", "at start-up", "after SIGTERM", "in pairs"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Protocol = Literal["protobuf", "json", "grpc"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
Command = Literal["up", "collect", "collect --url"]
COMMANDS: tuple[Command, ...] = get_args(Command)


@dataclass(frozen=True)
class Case:
    """The process that is killed, and the manner of the kills.

    Attributes:
        kind: the time of the kills. In pairs: under load, and again while the next process recovers
            the files of the first.
        command: the one that is killed. With ``--url`` the database is another process, which goes
            on.
        protocol: of the spans that are sent meanwhile.
    """

    kind: Kind
    command: Command
    protocol: Protocol


@dataclass(frozen=True)
class Outcome:
    """The result of a round: some kills of one case on one data folder.

    Attributes:
        kind: see `Case`.
        command: see `Case`.
        protocol: see `Case`.
        seed: of all random choices.
        commit: of the source tree; with ``+`` where it was changed.
        kills: SIGKILLs that ended a process.
        starts: processes that were started.
        failed_starts: of these, ended by themselves.
        acknowledged: spans whose senders got an acknowledgement.
        unanswered: spans of requests that got no answer, and were not sent again.
        lost: acknowledged spans that are not stored.
        doubled: spans that are stored more than once, acknowledged or not.
        seconds: duration of the round.
    """

    kind: Kind
    command: Command
    protocol: Protocol
    seed: int
    commit: str
    kills: int
    starts: int
    failed_starts: int
    acknowledged: int
    unanswered: int
    lost: int
    doubled: int
    seconds: float

    @property
    def case(self) -> Case:
        """The command with its protocol and kind, in words."""
        return Case(self.kind, self.command, self.protocol)


def all_cases() -> list[Case]:
    """Return every combination."""
    return [Case(*each) for each in itertools.product(KINDS, COMMANDS, PROTOCOLS)]


def recorded(path: Path = RESULTS) -> list[Outcome]:
    """Return the rounds of earlier runs."""
    if not path.exists():
        return []
    return [Outcome(**json.loads(line)) for line in path.read_text().splitlines()]


def record(outcome: Outcome, path: Path = RESULTS) -> None:
    """Add a round; a whole line or nothing, so that a run that is ended can be taken up again."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(outcome)) + "\n")


def least_tested(outcomes: list[Outcome]) -> Case:
    """Return the case with the fewest kills so far."""
    kills = dict.fromkeys(all_cases(), 0)
    for outcome in outcomes:
        kills[outcome.case] += outcome.kills
    return min(kills, key=lambda case: kills[case])
