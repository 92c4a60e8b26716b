"""Examples of a training set, one a line in JSONL: a prompt, the label of its run, and the run; the reward of an answer."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, StrictInt

from mast_trace.exceptions import ConfigurationError, VerdictUnreadable
from mast_trace.trajectory import Trajectory, to_dict, trajectory_from_dict
from mast_trace_judge.llm.answers import Reading, parse_answer
from mast_trace_judge.llm.quotes import QuoteCheck
from mast_trace_judge.llm.verification import Verifier
from mast_trace_judge.study.labelled import same_agent
from mast_trace_lab.inject.dataset import SOURCES, Source

_WIDTH = 20
"""A run's number of steps for each step of sigma, where sigma is not set."""


class StepAnswer(BaseModel):
    """The answer to the question ``step``, to the letter: training is to teach the format."""

    model_config = ConfigDict(extra="forbid")

    step: StrictInt


def named_step(text: str, example: Example) -> int | None:
    """Return the step that an answer names; None if the format gate is closed.

    The gate is open to an answer that has the shape that its question asks for, and a step that the
    run has. An answer to ``read`` names the step that it puts first, and only steps with a quote that is in
    the run count: the judge drops the others.
    """
    try:
        if example.question == "step":
            step = parse_answer(text, StepAnswer, repair=False).step
            return step if 0 <= step < example.steps else None
        reading = parse_answer(text, Reading, repair=False)
    except VerdictUnreadable:
        return None
    suggested = Verifier(QuoteCheck(example.run), example.steps).suggestions(reading)
    return suggested[0].step if suggested else None


@dataclass(frozen=True)
class Reward:
    """The settings of the reward.

    Attributes:
        step_weight: lambda, the weight of the step's distance; the rest is that of the agent, 0 to 1.
        sigma: width of the Gaussian in steps; None: a twentieth of the run's steps, at least 1.
    """

    step_weight: float = 0.5
    sigma: float | None = None

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigurationError: the weight is no share, or the width is not above 0.
        """
        if not 0.0 <= self.step_weight <= 1.0:
            raise ConfigurationError(f"lambda is a number from 0 to 1, not {self.step_weight:g}")
        if self.sigma is not None and not (0.0 < self.sigma < math.inf):
            raise ConfigurationError(f"sigma is a number of steps above 0, not {self.sigma:g}")

    def of_text(self, text: str, example: Example) -> float:
        """Return the reward of an answer, 0 to 1; 0 where the format gate is closed."""
        step = named_step(text, example)
        return 0.0 if step is None else self.of_step(step, example)

    def of_step(self, step: int, example: Example) -> float:
        """Return ``lambda * exp(-(t - t*)^2 / (2 sigma^2)) + (1 - lambda) * right agent``.

        The agent is that of the step in the run. Where the label blames no agent, the distance alone
        counts.
        """
        sigma = self.sigma or max(1.0, example.steps / _WIDTH)
        near = math.exp(-((step - example.step) ** 2) / (2 * sigma**2))
        if not example.agent:
            return near
        agent = same_agent(example.run.steps[step].agent, example.agent)
        return self.step_weight * near + (1.0 - self.step_weight) * agent


FORMAT: Final = 1
Question = Literal["read", "step"]
"""``read``: the judge's first question about a run; ``step``: the number of the decisive step alone."""


@dataclass(frozen=True)
class Division:
    """The examples on both sides.

    Attributes:
        train: those to train on.
        held_out: those that training never sees.
        by: ``task``, or ``origin`` where nearly all examples have one task.
        unused: examples of the other side's operators, which are on neither side.
    """

    train: tuple[Example, ...]
    held_out: tuple[Example, ...]
    by: str
    unused: int = 0


def divide(
    examples: Sequence[Example], share: float, *, seed: int = 0, all_operators: bool = False
) -> Division:
    """Hold a share of the examples out.

    Examples that have the run, the origin or the text of the task in common stay together; where that
    leaves one group, examples of one run or origin do. Groups are taken in an order that the seed
    decides, until the share is reached.

    Args:
        examples: all of them.
        share: to hold out, above 0 and below 1.
        seed: of the order.
        all_operators: train on operators too that are marked as held out.

    Raises:
        ConfigurationError: the share is none, or there are too few groups to hold one out.
    """
    if not 0.0 < share < 1.0:
        raise ConfigurationError(
            f"the share to hold out is a number above 0 and below 1, not {share:g}"
        )
    by, groups = "task", _groups(examples, lambda each: _origin(each) + _task(each))
    if max(map(len, groups)) > (1.0 - share / 2) * len(examples):
        by, groups = "origin", _groups(examples, _origin)
    if len(groups) < 2:
        raise ConfigurationError(
            f"all {len(examples)} examples come from one run: none can be held out. Label failures of "
            "other runs, or plant faults in several"
        )
    groups.sort(key=lambda group: _place(group, seed))
    held: list[Example] = []
    train: list[Example] = []
    for number, group in enumerate(groups):
        fits = len(held) + len(group) / 2 <= share * len(examples) or not held
        last = number == len(groups) - 1
        (held if fits and not (last and not train) else train).extend(group)
    used = [each for each in train if all_operators or not each.held_out_operator]
    if not used:
        raise ConfigurationError(
            "all examples to train on were planted by operators that are held out: plant faults by "
            "others as well, or train on all operators by --all-operators"
        )
    return Division(tuple(used), tuple(held), by, len(train) - len(used))


def _groups(
    examples: Sequence[Example], keys: Callable[[Example], tuple[str, ...]]
) -> list[list[Example]]:
    """Return the examples in groups; two that have a key in common are in one."""
    above: dict[str, str] = {}

    def top(key: str) -> str:
        while above.setdefault(key, key) != key:
            above[key] = above[above[key]]
            key = above[key]
        return key

    for each in examples:
        first, *others = keys(each)
        for other in others:
            above[top(other)] = top(first)
    found: dict[str, list[Example]] = {}
    for each in examples:
        found.setdefault(top(keys(each)[0]), []).append(each)
    return list(found.values())


def _origin(example: Example) -> tuple[str, ...]:
    # A group is a run's id, or the text of a task for labels of people, which is no origin.
    group = () if example.group == example.run.task else (f"run {example.group}",)
    return (f"run {example.id}", *group)


def _task(example: Example) -> tuple[str, ...]:
    task = " ".join(example.run.task.split())
    return (f"task {task}",) if task else ()


def _place(group: Iterable[Example], seed: int) -> str:
    name = min(each.id for each in group)
    return hashlib.sha256(f"{seed}\0{name}".encode()).hexdigest()


@dataclass(frozen=True)
class Example:
    """A prompt and its label.

    Attributes:
        id: of the run.
        source: who labelled it: a person, a replay that proved it, or the injection that made it.
        group: runs of one origin share it.
        question: the question of the prompt.
        prompt: the messages, each with ``role`` and ``content``.
        step: index of the labelled step.
        agent: the agent to blame; empty where it is none, as for a fault of a tool.
        mode: code of the failure mode; several with commas between; empty if none is known.
        operator: of the injection; empty for the other sources.
        held_out_operator: whether the operator is one of those that no training should see.
        run: the run, from which agents and quotes are read.
    """

    id: str
    source: Source
    group: str
    question: Question
    prompt: tuple[dict[str, str], ...]
    step: int
    agent: str
    mode: str
    operator: str
    held_out_operator: bool
    run: Trajectory

    @property
    def steps(self) -> int:
        """Number of steps of the run."""
        return len(self.run.steps)


def write_examples(examples: Iterable[Example], path: Path) -> int:
    """Write a training set, replacing an earlier file; return the number of its examples.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partly, count = path.with_name(f"{path.name}.part"), 0
    with partly.open("w", encoding="utf-8") as file:
        for example in examples:
            file.write(json.dumps(_plain(example), ensure_ascii=False) + "\n")
            count += 1
    partly.replace(path)
    return count


def read_examples(path: Path) -> list[Example]:
    """Read a training set.

    Raises:
        ConfigurationError: the file holds something else, or nothing; the text names the line.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the training set {path}: {error}") from error
    found, ids = [], set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            example = _example(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                f"{path}:{number} is no training example ({type(error).__name__}: {error}): write the "
                "file by `mast-trace train export`"
            ) from error
        if example.id in ids:
            raise ConfigurationError(f"{path}:{number} has the run {example.id} a second time")
        ids.add(example.id)
        found.append(example)
    if not found:
        raise ConfigurationError(f"{path} holds no training example")
    if len({example.question for example in found}) > 1:
        raise ConfigurationError(f"{path} mixes questions: export one file for each")
    return found


def _plain(example: Example) -> dict[str, Any]:
    values = {name: value for name, value in vars(example).items() if name != "run"}
    prompt = list(example.prompt)
    return {"format": FORMAT, **values, "prompt": prompt, "steps": example.steps} | {
        "run": to_dict(example.run)
    }


def _example(shape: dict[str, Any]) -> Example:
    if shape["format"] != FORMAT:
        raise ValueError(f"format {shape['format']}; this version reads {FORMAT}")
    if shape["question"] not in get_args(Question):
        raise ValueError(f"unknown question {shape['question']!r}")
    if shape["source"] not in SOURCES:
        raise ValueError(f"unknown source {shape['source']!r}")
    prompt = tuple(
        {"role": str(each["role"]), "content": str(each["content"])} for each in shape["prompt"]
    )
    example = Example(
        id=str(shape["id"]),
        source=shape["source"],
        group=str(shape["group"]),
        question=shape["question"],
        prompt=prompt,
        step=int(shape["step"]),
        agent=str(shape["agent"]),
        mode=str(shape["mode"]),
        operator=str(shape["operator"]),
        held_out_operator=bool(shape["held_out_operator"]),
        run=trajectory_from_dict(shape["run"]),
    )
    if not prompt:
        raise ValueError("the prompt is empty")
    if not 0 <= example.step < example.steps:
        raise ValueError(f"step {example.step} of a run with {example.steps} steps")
    return example
