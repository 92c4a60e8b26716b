"""The kinds of faults that can be planted: each is the label of a run that it made fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeVar

Level = Literal["answer", "request", "message", "result"]
"""The place of a change: a model's answer, its request, a message on its way, a tool's result."""

REPAIRED: Final = "Agents often repair such a fault, so that a run with it may have failed by a later error of its own."
"""The usual reason for which labels are uncertain."""


class Planted(NamedTuple):
    """One kind of fault.

    Attributes:
        mode: code of the failure mode; empty for a fault of the environment.
        level: the place of the change.
        uncertain: the reason for which its labels are often wrong, found by rollouts in `benchmarks/injection`;
            empty if they are not.
    """

    mode: str
    level: Level
    uncertain: str = ""


PLANTED: Final[Mapping[str, Planted]] = {
    "1.1-unit": Planted("1.1", "answer"),
    "1.1-constraint": Planted("1.1", "answer"),
    "1.3-repeat": Planted("1.3", "answer"),
    "1.5-no-end": Planted("1.5", "answer"),
    "2.2-assume": Planted("2.2", "answer"),
    "2.3-wrong-agent": Planted("2.3", "answer"),
    "2.3-other-task": Planted("2.3", "answer", REPAIRED),
    "2.4-withhold": Planted("2.4", "answer"),
    "2.6-number": Planted("2.6", "answer"),
    "2.6-computed": Planted("2.6", "answer"),
    "2.6-arguments": Planted("2.6", "answer"),
    "3.1-later": Planted("3.1", "answer"),
    "3.2-unchecked": Planted("3.2", "answer"),
    "3.3-approve": Planted("3.3", "answer"),
    "1.2-other-role": Planted("1.2", "request"),
    "1.4-lose-oldest": Planted("1.4", "request"),
    "2.1-restart": Planted("2.1", "request"),
    "2.5-ignore-peer": Planted("2.5", "request"),
    "message-number": Planted("", "message"),
    "message-cut": Planted("", "message"),
    "tool-error": Planted("", "result"),
    "tool-timeout": Planted("", "result"),
    "tool-stale": Planted("", "result"),
    "tool-empty": Planted("", "result"),
    "tool-wrong": Planted("", "result"),
    "tool-passes": Planted("", "result"),
}
"""Every kind by the name of its operator, those of failure modes first, in the order of MAST's codes by level."""

UNCERTAIN: Final = frozenset(name for name, kind in PLANTED.items() if kind.uncertain)
"""Names of the operators whose labels are often wrong; they are used only where somebody asks for them."""

Item = TypeVar("Item")


def is_uncertain(name: str) -> bool:
    """Return whether labels of an operator are uncertain; false for labels that no operator has made."""
    return name in UNCERTAIN


def certain(
    items: Iterable[Item], operator_of: Callable[[Item], str]
) -> tuple[list[Item], Counter[str]]:
    """Return the items whose label is not uncertain, and the number of the others by operator.

    Args:
        items: labelled runs, in any shape.
        operator_of: returns the operator that made an item; empty for labels of other sources.
    """
    kept: list[Item] = []
    left_out: Counter[str] = Counter()
    for item in items:
        if is_uncertain(name := operator_of(item)):
            left_out[name] += 1
        else:
            kept.append(item)
    return kept, left_out


def left_out_words(counts: Mapping[str, int]) -> str:
    """Return the sentence that says how many labels were left out; empty if none was."""
    number = sum(counts.values())
    if not number:
        return ""
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    labels, were = ("label", "was") if number == 1 else ("labels", "were")
    return f"{number} {labels} of uncertain operators {were} left out ({told}); --uncertain takes them in."
