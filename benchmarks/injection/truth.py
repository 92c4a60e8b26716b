"""Compares the labels of planted faults with the truth, operator by operator, on teams that err at random.

::

    python benchmarks/injection/truth.py                # writes truth.json and the table; three minutes of a quiet core
    python benchmarks/injection/truth.py --labels 5 --out FILE    # fewer labels of each operator, written elsewhere
    python benchmarks/injection/truth.py --operator tool-wrong    # labels of one operator anew; the others' stay

`mast-trace inject`'s own experiment decides which faults are kept; replays are runs of `random_team`. The true origin
of a stored failure is found by rollouts from after each of its steps: a fault that was made good (the success rate
rises again above the middle between the rates before and after the fault) is not the origin, the later error is.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from random_team import Change, Habits, Session, Task
from truth_page import FILE, write

from mast_trace.replay.recording import tape_of
from mast_trace_judge.arms import RECOVERY, ArmResult
from mast_trace_lab.inject.experiment import InjectionExperiment
from mast_trace_lab.inject.faults import faults_of
from mast_trace_lab.inject.operators import OPERATORS
from mast_trace_lab.inject.trial import later_steps
from mast_trace_lab.replay.changes import intervention_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.arms import ReplayArm
    from mast_trace_lab.inject.faults import Fault
    from mast_trace_lab.inject.trial import Trial

WORKERS = 2
LABELS = 25
"""Kept labels that are examined of each operator."""
MOST_RUNS = 400
"""Recorded runs after which an operator has to do with fewer labels."""
FAULTS = 2
"""Faults of an operator that are planted in a recorded run."""
FEW, MANY = 40, 160
"""Rollouts from after a step; the larger number where the smaller one does not tell it from the middle."""
HARMLESS = 0.1
"""A fault after which success falls by less than this has caused nothing."""
HABITS = tuple(
    Habits(errs, plans, notices, again)
    for errs, plans in ((0.01, 0.15), (0.03, 0.3), (0.05, 0.3))
    for notices, again in ((0.1, 0.2), (0.4, 0.5), (0.7, 0.8))
)


class Team:
    """A recorded run of a team, and its replays.

    Attributes:
        recorded: the run.
    """

    def __init__(self, number: int) -> None:
        """Record runs until one succeeds."""
        rng = Random(f"recorded {number}")
        self._habits = HABITS[number % len(HABITS)]
        self._task = Task(
            rng.choice(("bolts", "nuts", "washers")), {7: rng.randint(2, 14), 8: rng.randint(2, 12)}
        )
        self.rng = Random(f"replays {number}")
        while True:
            session = Session(self._task, self._habits, rng)
            if session.run():
                break
        self.recorded = session.trajectory(f"{number:032x}", success=True)
        self._answers = tuple(session.answers)
        self._tape = tape_of(self.recorded)

    def run(self, change: Change) -> tuple[Session, bool]:
        """Replay the team once."""
        session = Session(self._task, self._habits, self.rng, change)
        return session, session.run()

    def change_of(self, arm: ReplayArm) -> Change:
        """Return what the replay of an arm serves and changes."""
        if arm.operator == "verify":
            return Change(self._answers)
        made = intervention_of(self.recorded, self._tape, arm)
        if made.change == "start":
            return Change()
        if made.change == "result":
            text = made.error or made.result or ""
            return Change(
                self._answers[: arm.step + 1], results={arm.step: (text, arm.operator == "error")}
            )
        served = self._answers[: made.position]
        if made.change == "ask":
            return Change(served, requests={made.position: made.request or {}})
        last = made.answer if made.answer is not None else self._answers[made.position]
        return Change((*served, last))

    def rate(self, change: Change, count: int) -> float:
        """Return the success rate of so many replays."""
        return sum(self.run(change)[1] for _ in range(count)) / count


def labels_of(number: int, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Plant faults of the operators that are wanted in a run; return those that cause failures, with their truth."""
    team = Team(number)
    faults: list[Fault] = []
    for fault in faults_of(team.recorded, number, wanted):
        if sum(each.operator == fault.operator for each in faults) < FAULTS:
            faults.append(fault)
    if not faults:
        return []
    stored: dict[int, Session] = {}
    replays: Counter[tuple[int, str]] = Counter()

    def later(place: int) -> tuple[int, ...]:
        return later_steps(stored[place].trajectory("f" * 32, success=False), faults[place])

    experiment = InjectionExperiment(faults, len(team.recorded.steps), {}, later)
    while waiting := experiment.waiting():
        (trial,) = waiting
        if trial.phase == RECOVERY:
            fault = faults[trial.pair]
            change = _from_after(team, fault, stored[trial.pair], trial.arm.step)
        else:
            change = team.change_of(trial.arm)
        session, success = team.run(change)
        replays[trial.pair, trial.phase] += 1
        faulty = trial.phase == "injection" and trial.arm != experiment.trials[-1].restore
        if faulty and not success:  # `inject` stores the first one that failed
            stored.setdefault(trial.pair, session)
        told = {"phase": trial.phase, "pair": trial.pair, "calls_hash": session.asked.hexdigest()}
        experiment.tell(ArmResult(trial.arm, "ok", success, **told))
    return [
        {
            **_examined(team, trial, stored[place]),
            "verdict": trial.verdict,
            "replays": replays[place, "injection"],
            "checks": replays[place, RECOVERY],
        }
        for place, trial in enumerate(experiment.trials)
        if trial.verdict in {"kept", "repaired"}
    ]


def _examined(team: Team, trial: Trial, stored: Session) -> dict[str, Any]:
    """Return a label with the true origin of its stored run; None if the fault causes nothing."""
    fault = trial.fault
    before = team.rate(team.change_of(trial.restore), MANY)
    after = team.rate(team.change_of(fault.change.arm), MANY)
    middle = (before + after) / 2
    origin = None if before - after < HARMLESS else fault.change.step
    last = len(stored.steps) - 2  # after the last one the run has failed
    for step in range(last, fault.change.step - 1, -1) if origin is not None else ():
        change = _from_after(team, fault, stored, step)
        rate = team.rate(change, FEW)
        if abs(rate - middle) < 2.5 * math.sqrt(0.25 / FEW):
            rate = team.rate(change, MANY)
        if rate > middle:
            origin = step + 1
            break
    return {
        "operator": fault.operator,
        "step": fault.change.step,
        "origin": origin,
        "before": round(before, 2),
        "after": round(after, 2),
    }


def _from_after(team: Team, fault: Fault, stored: Session, step: int) -> Change:
    """Return the replay that keeps a stored failure up to a step."""
    results = team.change_of(fault.change.arm).results
    return Change(tuple(stored.answers[: step + 1]), results=results)


def main() -> None:
    """Examine labels until each operator has enough, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=LABELS, help="labels of each operator")
    parser.add_argument("--runs", type=int, default=MOST_RUNS, help="most recorded runs")
    parser.add_argument(
        "--out", type=Path, help="file of the labels; without it truth.json and the page"
    )
    parser.add_argument(
        "--operator",
        action="append",
        choices=list(OPERATORS),
        help="only this operator; repeatable",
    )
    chosen = parser.parse_args()
    examined = chosen.operator or list(OPERATORS)
    labels: list[dict[str, Any]] = []
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with ProcessPoolExecutor(WORKERS) as pool:
        for first in range(0, chosen.runs, len(HABITS)):
            wanted = [name for name in examined if len(found[name]) < chosen.labels]
            if not wanted:
                break
            numbers = range(first, first + len(HABITS))
            for made in pool.map(labels_of, numbers, [wanted] * len(HABITS)):
                for label in made:
                    if len(found[label["operator"]]) < chosen.labels:
                        found[label["operator"]].append(label)
            told = f"{numbers[-1] + 1} runs, {sum(map(len, found.values()))} labels"
            print(f"{told}, {len(wanted)} operators were wanted", flush=True)
            labels = [label for name in examined for label in found[name]]
            if chosen.out:
                chosen.out.write_text(json.dumps(labels))
    if not chosen.out:
        stored = json.loads(FILE.read_text("utf-8")) if chosen.operator else []
        labels += [each for each in stored if each["operator"] not in examined]
        write(sorted(labels, key=lambda each: list(OPERATORS).index(each["operator"])))


if __name__ == "__main__":
    main()
