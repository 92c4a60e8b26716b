"""The picture of who writes to whom stays within its frame and tells there from back."""

from __future__ import annotations

import re

import pytest

from mast_trace_dashboards.web.graph import HEIGHT, MOST_AGENTS, WIDTH, drawn
from mast_trace_dashboards.web.steps import Edge


def ring(count: int, *, letters: int = 5) -> list[Edge]:
    """As many agents, each of whom writes to the next."""
    names = [f"{number}".ljust(letters, "x") for number in range(count)]
    return [Edge(a, b, 1) for a, b in zip(names, names[1:] + names[:1], strict=True)]


def test_there_and_back_do_not_lie_on_each_other() -> None:
    graph = drawn([Edge("a", "b", 3), Edge("b", "a", 1)], [Edge("a", "b", 2)], {"a": 0, "b": 1})
    assert graph
    assert len({arrow.path for arrow in graph.arrows}) == 3
    assert len({(arrow.x, arrow.y) for arrow in graph.arrows}) == 3
    assert [arrow.handed for arrow in graph.arrows] == [False, False, True]
    assert graph.arrows[0].thickness > graph.arrows[1].thickness
    assert "a writes to b, 3 times" in graph.summary


@pytest.mark.parametrize("count", range(2, MOST_AGENTS + 1))
@pytest.mark.parametrize("letters", [1, 40])
def test_everything_is_in_the_frame(count: int, letters: int) -> None:
    graph = drawn(ring(count, letters=letters), [], {})
    assert graph
    for node in graph.nodes:
        assert node.left >= 0
        assert node.left + node.width <= WIDTH
        assert 0 <= node.top <= HEIGHT - 26
    for arrow in graph.arrows:
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", arrow.path)]
        assert all(-20 <= x <= WIDTH + 20 for x in numbers[::2])
        assert all(-20 <= y <= HEIGHT + 20 for y in numbers[1::2])


@pytest.mark.parametrize(
    "said", [[], [Edge("a", "a", 9)], ring(MOST_AGENTS + 1)], ids=["none", "to itself", "too many"]
)
def test_sometimes_there_is_no_picture(said: list[Edge]) -> None:
    """The table has the numbers then, too."""
    assert drawn(said, [], {}) is None
