"""The picture of who writes to whom stays within its frame and tells there from back."""

from __future__ import annotations

import re

import pytest

from mast_trace_dashboards.web.conversation_graph import HEIGHT, MOST_AGENTS, WIDTH, drawn
from mast_trace_dashboards.web.finding.agent_matrix import MOST_AGENTS as MOST_IN_MATRIX
from mast_trace_dashboards.web.finding.agent_matrix import SHADES, agent_matrix


def ring(count: int, *, letters: int = 5) -> dict[tuple[str, str], int]:
    """As many agents, each of whom writes to the next."""
    names = [f"{number}".ljust(letters, "x") for number in range(count)]
    return dict.fromkeys(zip(names, names[1:] + names[:1], strict=True), 1)


def test_there_and_back_do_not_lie_on_each_other() -> None:
    graph = drawn({("a", "b"): 3, ("b", "a"): 1}, {("a", "b"): 2}, {"a": 0, "b": 1})
    assert graph
    assert len({arrow.path for arrow in graph.arrows}) == 3
    assert len({(arrow.x, arrow.y) for arrow in graph.arrows}) == 3
    assert [arrow.handed for arrow in graph.arrows] == [False, False, True]
    assert graph.arrows[0].thickness > graph.arrows[1].thickness
    assert "a writes to b, 3 times" in graph.summary


@pytest.mark.parametrize("count", range(2, MOST_AGENTS + 1))
@pytest.mark.parametrize("letters", [1, 40])
def test_everything_is_in_the_frame(count: int, letters: int) -> None:
    graph = drawn(ring(count, letters=letters), {}, {})
    assert graph
    for node in graph.nodes:
        assert node.left >= 0
        assert node.left + node.width <= WIDTH
        assert 0 <= node.top <= HEIGHT - 26
    for arrow in graph.arrows:
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", arrow.path)]
        assert all(-20 <= x <= WIDTH + 20 for x in numbers[::2])
        assert all(-20 <= y <= HEIGHT + 20 for y in numbers[1::2])


@pytest.mark.parametrize("messages", [{}, {("a", "a"): 9}], ids=["none", "to itself"])
def test_sometimes_there_is_no_picture(messages: dict[tuple[str, str], int]) -> None:
    """The table has the numbers then, too."""
    assert drawn(messages, {}, {}) is None


@pytest.mark.parametrize("count", [MOST_AGENTS + 1, 3000])
def test_of_many_agents_the_busiest_are_drawn_and_the_others_are_one(count: int) -> None:
    messages = {**ring(count), ("boss", "0xxxx"): 50, ("1xxxx", "boss"): 20}
    graph = drawn(messages, {("7xxxx", "boss"): 4}, {})
    assert graph
    assert len(graph.nodes) == MOST_AGENTS
    assert graph.folded == count + 1 - (MOST_AGENTS - 1)
    assert [node.agent for node in graph.nodes if "others" in node.agent] == [
        f"{graph.folded:,} others"
    ]
    assert {"boss", "0xxxx", "1xxxx", "7xxxx"} <= {node.agent for node in graph.nodes}
    assert f"{count + 1:,} agents; most often boss writes to 0xxxx, 50 times" in graph.summary


def test_those_who_write_to_each_other_stand_side_by_side() -> None:
    """A ring that is named in another order is still drawn as a ring."""
    names = ["a", "e", "b", "f", "c", "g", "d", "h"]
    messages = dict.fromkeys([*zip("abcdefgh", "bcdefgha", strict=True)], 3)
    shuffled = {pair: messages[pair] for pair in sorted(messages, key=lambda p: names.index(p[0]))}
    graph = drawn(shuffled, {}, {})
    assert graph
    around = [node.agent for node in graph.nodes]
    apart = [abs(around.index(one) - around.index(other)) for one, other in messages]
    assert all(each in (1, 7) for each in apart)


def test_thirty_agents_have_a_matrix_with_all_numbers() -> None:
    messages = {**ring(30), ("0xxxx", "1xxxx"): 9}
    order = [f"{number}".ljust(5, "x") for number in range(30)]
    assert agent_matrix(messages, {}, order, more_than=30) is None
    matrix = agent_matrix(messages, {("0xxxx", "2xxxx"): 2}, order, more_than=12)
    assert matrix
    assert list(matrix.agents) == order
    assert [cell.times for cell in matrix.rows[0][:4]] == [0, 9, 2, 0]
    assert matrix.rows[0][1].shade == SHADES
    assert matrix.rows[0][0].shade == 0
    assert sum(cell.times for row in matrix.rows for cell in row) == 29 + 9 + 2


def test_of_very_many_agents_the_least_busy_share_a_row() -> None:
    matrix = agent_matrix(ring(3000), {}, [], more_than=12)
    assert matrix
    assert len(matrix.agents) == MOST_IN_MATRIX
    assert matrix.folded == 3000 - MOST_IN_MATRIX + 1
    assert sum(cell.times for row in matrix.rows for cell in row) == 3000
