"""Divides examples into those to train on and those held out: no origin and no task on both sides."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mast_trace_lab.train.examples import Example


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
