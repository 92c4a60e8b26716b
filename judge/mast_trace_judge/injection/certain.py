"""Keeps labels of uncertain operators out, and counts them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from mast_trace_judge.injection.operators import is_uncertain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Item = TypeVar("Item")


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
