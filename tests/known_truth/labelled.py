"""Records failures of a program by drawn causes, each labelled with the step that erred, as a person would label it."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from known_truth.failures import EXAMPLES, FAULTS, Failure, model_of, place_of, spoilt, whole
from labelled_set import Program, variables
from scripted_llm import Reply, ScriptedLLM
from team_policies import VOICES

from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.batch import read_alone
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_lab.confirm.preparation import check
from mast_trace_lab.program.recording import record
from mast_trace_lab.program.setup import Setup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from known_truth.failures import Place

    from mast_trace_collector.storage import Store

AGAIN: Final = """
import contextlib
import sys
import mast_trace
mast_trace.instrument()
sys.path[:0] = sys.argv[1:3]
program = __import__(sys.argv[3])
for _ in range(int(sys.argv[4])):
    with contextlib.suppress(Exception):
        program.main()
"""
"""Runs a program so many times in one process."""


class Drawn:
    """A model that makes no error in its first run, and one drawn error in each run thereafter.

    Attributes:
        made: number of the answer that erred in each run; None where no place of the run was the drawn one.
    """

    def __init__(self, program: str, voice: int) -> None:
        self._model, self._draw = model_of(program, voice), random.Random(f"{program} {voice}")
        self._seen: list[dict[str, Any]] = []
        self._wrong: tuple[Place, str, int] | None = None
        self._asked = 0
        self.made: list[int | None] = []

    def __call__(self, request: dict[str, Any]) -> Reply | str:
        """Answer a request."""
        place = place_of(request)
        if not self._seen or place == place_of(self._seen[0]):
            self._wrong, self._asked = self._drawn() if self.made else None, 0
            self.made.append(None)
        if len(self.made) == 1:
            self._seen.append(request)
        self._asked += 1
        reply = self._model(request)
        if self._wrong is None or place != self._wrong[0]:
            return reply
        self.made[-1] = self._asked - 1
        return spoilt(reply, *self._wrong[1:])

    def _drawn(self) -> tuple[Place, str, int]:
        once = Counter(map(place_of, self._seen))
        while True:
            request, fault = self._draw.choice(self._seen), self._draw.choice(FAULTS)
            by = self._draw.randint(1, 9)
            reply = self._model(request)
            if once[place_of(request)] == 1 and spoilt(reply, fault, by) != whole(reply):
                return place_of(request), fault, by


def failures(
    store: Store, program: Program, python: str, voice: int, runs: int
) -> Iterator[Failure]:
    """Run a program so many times, and yield the runs that failed by the drawn error."""
    where = EXAMPLES / program.file
    folders = (str(where.parent), str(EXAMPLES))
    command = (python, "-c", AGAIN, *folders, where.stem, str(runs))
    with ExitStack() as stack:
        model = Drawn(program.name, voice)
        server = stack.enter_context(ScriptedLLM(model))
        label = f"{program.name} {voice}"
        made = record(
            store,
            command,
            label=label,
            timeout=600.0,
            environment=variables(program, server.url),
        )
    assert len(made) == len(model.made)
    for each, call in zip(made, model.made, strict=True):
        if each.outcome == "failure" and call is not None:
            summary = run_summary(store, each.trace_id, project=each.project)
            assert summary is not None
            yield Failure(summary, read_alone(store, summary), {}, [call])


def label(store: Store, program: Program, python: str, count: int, runs: int) -> int:
    """Label so many failures of a program, spread over its voices; return how many there were."""
    labels = []
    for voice in range(VOICES):
        for found in islice(failures(store, program, python, voice, runs), count // VOICES):
            step = check(found.run, Setup((python,), plain=("*",)))[found.calls[0]].step
            labels.append(
                HumanLabel(
                    trace_id=found.summary.trace_id,
                    project=found.summary.project,
                    annotator="truth",
                    modes=(),
                    decisive_step=step,
                    decisive_agent=found.run.steps[step].agent,
                )
            )
    save_labels(store, labels)
    return len(labels)
