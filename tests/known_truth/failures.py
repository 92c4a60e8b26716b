"""Confirms failures of real programs whose truth is known, a quarter of them without a decisive step.

::

    python tests/known_truth/failures.py --count 12                      # a quick try: nine errors, three without one
    python tests/known_truth/failures.py --python crewai_stock.py=PATH   # 60, with a framework of another environment

The programs are those of ``examples/``, one made by hand, and CrewAI's crew under a manager. Their models read what
they are shown, and err at one answer of the recorded run. The code is that of `mast-trace confirm` from the
verification to the stored conclusion.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1] / each) for each in ("benchmarks/replay", "examples")]

from labelled_set import HERE as EXAMPLES
from labelled_set import PROGRAMS, Program, installed, variables
from real_team import by_coin
from replay_page import upper
from scripted_llm import Call, Reply, ScriptedLLM, last_text, messages_of, system_text
from team_bounds import ending
from team_policies import PARTS, VOICES, policy, shown_to

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.batch import read_alone
from mast_trace_lab.confirm.confirm import Confirming
from mast_trace_lab.confirm.preparation import FailedRun, check
from mast_trace_lab.program.budget import Budget
from mast_trace_lab.program.forking import LazyParent
from mast_trace_lab.program.recording import NotRecorded, record
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay.arm_runner import executing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.confirmation import Confirmation

    Place = tuple[str, str, int]
    Fault = tuple[str, int]

COUNT: Final = 60
_LONGEST: Final = 90.0
"""Seconds after which a program has not ended; each takes less than ten."""
_TASK: Final = 60
ONE: Final = "one step"
NONE: Final = ("two sufficient", "systematic", "diffuse", "nothing planted", "by chance")
"""Kinds of failures that have no single decisive step, each a twentieth of all."""
CHANCES: Final = (0.0, 0.03)
"""Chance with which an answer of a replay errs besides: the truth stays, as nothing falls before the planted error."""
FAULTS: Final = ("first number", "last number", "withheld")
AMOUNTS: Final = (301, 17)
"""By so much numbers are wrong: a program of few answers has enough ways to fail."""
OURS: Final = (
    Program(str(HERE / "hand_made.py"), "openai", ("openai.resources",)),
    Program(str(HERE / "managed_crew.py"), "crewai", PROGRAMS[3].preload),
)
"""Programs of this folder."""


def place_of(request: dict[str, Any]) -> Place:
    """Return the agent, its task, and the length of its prompt: the same place in runs with other words.

    MetaGPT's coder is shown all turns in one message.
    """
    shown = shown_to(request)
    turns = len(messages_of(request)) + shown.count("Tester: ")
    return system_text(request), shown[:_TASK], turns


def model_of(program: str, voice: int) -> Callable[[dict[str, Any]], Reply | str]:
    """Return the model of a program."""
    if program == "leap_year_team.py":
        return lambda request: insisting(request, voice)
    model = policy(program if program in PARTS else "crewai_stock.py", voice)
    return lambda request: (
        manager(request) if "You are Crew Manager" in system_text(request) else model(request)
    )


def insisting(request: dict[str, Any], voice: int) -> str:
    """Write code that passes its tests, and insist on what was written first, whatever the tests say."""
    right = (
        "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
        "year % 400 == 0 or (year % 4 == 0 and year % 100 != 0)",
        "not year % 4 and (year % 400 == 0 or year % 100 != 0)",
    )[voice]
    written = re.search(r"def is_leap.*\n +return .*", shown_to(request))
    code = written[0] if written else f"def is_leap(year):\n    return {right}"
    return f"```python\n{code}\n```"


def manager(request: dict[str, Any]) -> Reply | str:
    """Hand the task to the agent whose it is, with all that is known, and report the answer."""
    shown, last = shown_to(request), messages_of(request)[-1]
    if last.get("role") == "tool":
        return last_text(request)
    roles = {"must we order": "Buyer", "shall we sell": "Analyst", "are in stock": "Storekeeper"}
    role = next(role for words, role in roles.items() if words in shown)
    tools = [each["function"]["name"] for each in request["tools"]]
    name = next(each for each in tools if "delegate" in each.lower())
    task = re.search(r"How many kettles .*\?", shown)
    return Reply(
        calls=(Call(name, {"task": task[0] if task else "", "context": shown, "coworker": role}),)
    )


def whole(reply: Reply | str) -> Reply:
    """Return an answer that may be a text alone."""
    return Reply(reply) if isinstance(reply, str) else reply


def spoilt(reply: Reply | str, fault: str, by: int) -> Reply:
    """Return an answer with a fault in it, a number by so much; the answer itself if it has no place for it."""
    reply = whole(reply)
    if fault == "withheld":
        return replace(reply, text="I cannot say.", calls=())
    last = r"(?!.*\d)" if fault == "last number" else ""

    def other(text: str) -> str:
        return re.sub(
            rf"\d+{last}", lambda found: str(int(found[0]) + by), text, count=1, flags=re.DOTALL
        )

    calls = tuple(
        Call(each.name, json.loads(other(json.dumps(each.arguments))), each.id)
        for each in reply.calls
    )
    return replace(reply, text=other(reply.text), calls=calls)


@dataclass
class Erring:
    """A model that errs where it is told, and by chance.

    Attributes:
        model: the model without an error.
        wrong: the fault at each place.
        chance: of an error anywhere else.
        draw: the source of chance.
    """

    model: Callable[[dict[str, Any]], Reply | str]
    wrong: Mapping[Place, Fault] = field(default_factory=dict)
    chance: float = 0.0
    draw: random.Random = field(default_factory=random.Random)

    def __call__(self, request: dict[str, Any]) -> Reply | str:
        """Answer a request."""
        reply, fault = self.model(request), self.wrong.get(place_of(request))
        if fault is None and self.chance and self.draw.random() < self.chance:
            fault = FAULTS[2], 0
        return reply if fault is None else spoilt(reply, *fault)


@dataclass(frozen=True)
class Failure:
    """A recorded run: its summary, the run, its planted errors, and their places among its model calls."""

    summary: RunSummary
    run: Trajectory
    wrong: Mapping[Place, Fault]
    calls: Sequence[int]


class Team:
    """A program in one voice, with its model's server and the process from which its replays are forked."""

    def __init__(self, store: Store, program: Program, python: str, voice: int) -> None:
        self._store, self._program, self._voice = store, program, voice
        self._command = (python, str(EXAMPLES / program.file))
        self._model = model_of(program.name, voice)
        self._draw = random.Random(f"{program.name} {voice}")
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start both, and record the run without an error."""
        self._server = self._stack.enter_context(ScriptedLLM(self._model))
        self._environment = variables(self._program, self._server.url)
        parent = LazyParent(self._program.preload, warn=print)
        self._parent = self._stack.enter_context(parent)
        self.clean = self._record({})
        requests = list(self._server.requests)
        once = Counter(map(place_of, requests))
        self._candidates = [
            {place_of(each): fault}
            for each in requests
            for fault in [*product(FAULTS[:2], AMOUNTS), (FAULTS[2], 0)]
            if once[place_of(each)] == 1
            and spoilt(self._model(each), *fault) != whole(self._model(each))
        ]
        self._draw.shuffle(self._candidates)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop both."""
        self._stack.close()

    def _record(self, wrong: Mapping[Place, Fault]) -> Failure:
        self._server.script = Erring(self._model, wrong)
        before, label = len(self._server.requests), f"{self._program.name} {self._voice}"
        (made, *_) = record(
            self._store, self._command, label=label, timeout=_LONGEST, environment=self._environment
        )
        summary = run_summary(self._store, made.trace_id, project=made.project)
        assert summary is not None
        asked = [place_of(each) for each in self._server.requests[before:]]
        calls = [number for number, place in enumerate(asked) if place in wrong]
        return Failure(summary, read_alone(self._store, summary), wrong, calls)

    def failures(self) -> Iterator[Failure]:
        """Yield runs that fail by one error, which is made once; a program that then waits for a person for ever has none."""
        while self._candidates:
            try:
                found = self._record(self._candidates.pop())
            except NotRecorded:
                continue
            if found.run.outcome == "failure" and len(found.calls) == 1:
                yield found

    def confirmed(
        self, failures: Iterator[Failure], kind: str, number: int
    ) -> tuple[str, Confirmation]:
        """Confirm a failure of a kind; return its ending and the conclusion."""
        found = self.clean if kind == "nothing planted" else next(failures)
        wrong = dict(found.wrong)
        if kind == "two sufficient":
            wrong |= next(each.wrong for each in failures if not each.wrong.keys() & wrong.keys())
            found = self._record(wrong)
        always = kind in NONE[:2]
        chance = CHANCES[number % len(CHANCES)] if not kind else 0.0
        self._server.script = Erring(self._model, wrong if always else {}, chance, self._draw)
        setup = Setup(
            self._command,
            oracle=("sh", "-c", "exit 1") if kind == "nothing planted" else (),
            plain=("*",),
            environment=self._environment,
            parent=self._parent,
        )
        points = check(found.run, setup)
        failed = FailedRun(self._store, found.summary, found.run, setup, points)
        coin = {
            "by chance": lambda _kept: 0.5,
            "diffuse": lambda kept: (
                0.9 * (1 - sum(each.step <= kept for each in points) / len(points))
            ),
        }.get(kind)
        execute = executing(found.run, setup)
        if coin is not None:
            execute = by_coin(execute, coin, self._draw)
        made = failed.plan()
        parts = (made.plan, made.experiment, found.run, setup, execute, Budget())
        work = Confirming(self._store, *parts)
        work.resume()
        told = work.run().confirmation
        return ending(told, None if kind else points[found.calls[0]].step), told


def pythons_of(given: Sequence[str] = ()) -> dict[str, str]:
    """Return the Pythons of all programs whose frameworks are installed here, or in an environment that is named."""
    found = installed(given)
    crewai = {"managed_crew.py": found["crewai_stock.py"]} if "crewai_stock.py" in found else {}
    return {**found, **crewai, "hand_made.py": sys.executable}


def confirmed(folder: Path, pythons: Mapping[str, str], count: int) -> Iterator[dict[str, Any]]:
    """Confirm so many failures, spread over programs and voices; yield a row for each.

    Raises:
        MastTraceError: a program cannot be recorded, or its run cannot be replayed.
    """
    known = [each for each in (*PROGRAMS, *OURS) if each.name in pythons]
    teams = [(each, voice) for voice in range(VOICES) for each in known]
    kinds = [NONE[number // 4 % len(NONE)] if number % 4 == 3 else "" for number in range(count)]
    with Store.open(f"chdb://{folder.absolute()}") as store:
        migrate(store)
        number = 0
        for place, (program, voice) in enumerate(teams[:count]):
            share = -(-(count - number) // (len(teams[:count]) - place))
            with Team(store, program, pythons[program.name], voice) as team:
                failures = team.failures()
                for _ in range(share):
                    began = time.monotonic()
                    try:
                        how, told = team.confirmed(failures, kinds[number], number)
                    except StopIteration:  # the program fails in no further way: the next one does
                        break
                    yield {
                        "program": program.name,
                        "kind": kinds[number] or ONE,
                        "ending": how,
                        "status": told.status,
                        "replays": told.replays,
                        "live_calls": told.live_calls,
                        "seconds": round(time.monotonic() - began),
                    }
                    number += 1


def main() -> None:
    """Confirm, and print a row for each failure and the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=COUNT, help="failures to confirm")
    parser.add_argument("--python", action="append", default=[], metavar="PROGRAM=PATH")
    parser.add_argument("--program", action="append", help="only this program; several at once")
    chosen = parser.parse_args()
    pythons = pythons_of(chosen.python)
    pythons = {name: at for name, at in pythons.items() if name in (chosen.program or pythons)}
    rows = []
    with tempfile.TemporaryDirectory(prefix="mast-trace-truth-") as folder:
        for row in confirmed(Path(folder), pythons, chosen.count):
            sys.stdout.write(f"{json.dumps(row)}\n")
            sys.stdout.flush()
            rows.append(row)
    single = [row for row in rows if row["kind"] == ONE]
    for name, some in (("wrong", rows), ("right", single)):
        found, of = sum(row["ending"] == name for row in some), len(some)
        sys.stdout.write(f"{name}: {found} of {of}, at most {upper(found, of):.1%}\n")


if __name__ == "__main__":
    main()
