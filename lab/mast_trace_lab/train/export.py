"""Makes a training set of labelled failures: people's, those that replays proved, and planted ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import BudgetExhausted
from mast_trace.trajectory import Trajectory, trajectory_from_dict
from mast_trace_judge.llm.interview import messages_about
from mast_trace_judge.llm.run_reader import marked, renderer_of, whole_question
from mast_trace_judge.llm.segments import plan_reading
from mast_trace_judge.llm.transcript import estimate_tokens, nonce
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.planted import is_uncertain
from mast_trace_judge.store.labels import NO_MODES, labels_of
from mast_trace_judge.study.labelled import labelled_runs, named_steps, read_injected
from mast_trace_lab.inject.dataset import Source, labelled
from mast_trace_lab.train.examples import Example, Question

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from mast_trace_collector.storage import Store
    from mast_trace_judge.config import JudgeConfig
    from mast_trace_judge.local.attribution.profile import Profile

_STEP: Final = """\
Read the whole record from its beginning. The run failed. Find the decisive step: the earliest step
without whose error the run would probably have succeeded. It is where the error was made, not where
it was noticed.

Answer with one JSON object that has nothing but the step's id: {"step": 0}"""

UNCERTAIN: Final = "the operator is uncertain (--uncertain takes them in)"


def prompt_of(
    trajectory: Trajectory,
    question: Question,
    config: JudgeConfig,
    *,
    version: str,
    profiles: Sequence[Profile] = (),
) -> tuple[dict[str, str], ...] | None:
    """Return the messages about a run; None where the judge would read the run in several parts.

    Args:
        trajectory: the run.
        question: to be asked about it.
        config: has the window to which texts are shortened.
        version: of the judge, from which the mark of the fences is derived.
        profiles: the user's own.
    """
    local = judge_by_rules(trajectory, profiles)
    writer = renderer_of(trajectory, local, mark=nonce(trajectory.trace_id, version))
    asked = whole_question() if question == "read" else _STEP
    try:
        plan = plan_reading(
            writer,
            window=config.judge_window_tokens,
            budget=config.judge_max_tokens_per_run,
            question=estimate_tokens(asked),
        )
    except BudgetExhausted:
        return None
    if not plan.at_once:
        return None
    return tuple(messages_about(marked(plan.renderer, plan.renderer.record()), asked))


@dataclass(frozen=True)
class Failure:
    """A labelled failure; the attributes are those of `Example`."""

    id: str
    source: Source
    group: str
    run: Trajectory
    step: int
    agent: str
    mode: str = ""
    operator: str = ""
    held_out_operator: bool = False


@dataclass
class Export:
    """Turns labelled failures into examples, and counts those that it leaves out.

    Attributes:
        question: of the prompts.
        config: of the judge whose prompts they are.
        version: of that judge.
        profiles: the user's own.
        uncertain: whether labels of uncertain operators become examples as well.
        written: number of examples by source.
        left_out: number of runs by the reason for which they were left out.
    """

    question: Question
    config: JudgeConfig
    version: str
    profiles: Sequence[Profile] = ()
    uncertain: bool = False
    written: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    def examples(self, failures: Iterable[Failure]) -> Iterator[Example]:
        """Yield an example for each failure that can be one; a run counts once."""
        seen: set[str] = set()
        for each in failures:
            if not self.uncertain and is_uncertain(each.operator):
                self.left_out[UNCERTAIN] += 1
                continue
            if each.id in seen:
                self.left_out["labelled by another source as well"] += 1
                continue
            shown = {step.index for step in each.run.read_steps}
            if each.step not in shown:
                self.left_out["the labelled step is not in the record"] += 1
                continue
            if each.run.outcome == "success":
                self.left_out["the recorded outcome is a success"] += 1
                continue
            prompt = prompt_of(
                each.run,
                self.question,
                self.config,
                version=self.version,
                profiles=self.profiles,
            )
            if prompt is None:
                self.left_out["longer than judge_window_tokens"] += 1
                continue
            seen.add(each.id)
            self.written[each.source] += 1
            yield Example(question=self.question, prompt=prompt, **vars(each))


def stored_failures(
    store: Store, sources: Iterable[Source], *, project: str | None = None
) -> Iterator[Failure]:
    """Yield the labelled failures of a store: people's first, then replays', then planted ones.

    Args:
        store: the database.
        sources: some of `SOURCES`.
        project: only this project's.

    Raises:
        StorageError: the database does not answer.
    """
    wanted = set(sources)
    if "person" in wanted:
        yield from _by_people(store, project)
    for source in ("replay", "injection"):
        if source in wanted:
            yield from _by_experiment(store, source, project)


def set_failures(folder: Path, sources: Iterable[Source]) -> Iterator[Failure]:
    """Yield the failures of a set that `mast-trace dataset build` has written.

    Raises:
        ConfigurationError: the folder holds no such set.
    """
    wanted = set(sources)
    for held_out in (False, True):
        for run in read_injected(folder, held_out=held_out):
            source: Source = "replay" if run.subset == "replay" else "injection"
            if source in wanted and run.step is not None:
                yield Failure(
                    id=run.name,
                    source=source,
                    group=run.group,
                    run=run.trajectory,
                    step=run.step,
                    agent=run.agent,
                    mode=_modes(run.modes),
                    operator=str(run.extra["operator"]),
                    held_out_operator=held_out,
                )


def _by_people(store: Store, project: str | None) -> Iterator[Failure]:
    labels = labels_of(store)
    named = {
        run: said
        for run, said in named_steps(labels).items()
        if project is None or run[0] == project
    }
    modes: dict[str, Counter[str]] = {}
    for label in labels:
        if label.modes and label.modes != NO_MODES:
            modes.setdefault(label.trace_id, Counter()).update(label.modes)
    for run in labelled_runs(store, named):
        if run.step is None or not 0 <= run.step < len(run.trajectory.steps):
            continue
        yield Failure(
            id=run.name,
            source="person",
            group=run.group,
            run=run.trajectory,
            step=run.step,
            agent=run.agent or run.trajectory.steps[run.step].agent,
            mode=_modes(modes.get(run.name, ())),
        )


def _by_experiment(store: Store, source: Source, project: str | None) -> Iterator[Failure]:
    for each in labelled(store, project=project):
        if each.source == source and each.failed:
            yield Failure(
                id=each.id,
                source=source,
                group=each.group,
                run=trajectory_from_dict(each.run),
                step=each.step,
                agent=each.agent,
                mode=each.mode,
                operator=each.operator,
                held_out_operator=each.held_out_operator,
            )


def _modes(codes: Iterable[str]) -> str:
    return ", ".join(sorted(codes))
