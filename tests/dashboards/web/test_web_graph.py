"""The picture of who writes to whom stays within its frame, tells there from back, and can be read of many agents."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.web.conversation.graph import (
    BOX_HEIGHT,
    WIDTH,
    Arc,
    Graph,
    Span,
    arcs_of,
    drawn,
    label_of,
)
from mast_trace_dashboards.web.conversation.table import (
    BOXES,
    MOST_BOXES,
    MOST_LINES,
    Choice,
    table_of,
)
from mast_trace_dashboards.web.run_view import Blamed

Counts = dict[tuple[str, str], int]


def ring(count: int, *, letters: int = 5) -> Counts:
    """As many agents, each of whom writes to the next."""
    names = [f"{number}".ljust(letters, "x") for number in range(count)]
    return dict.fromkeys(zip(names, names[1:] + names[:1], strict=True), 1)


def company(leads: int = 5, workers: int = 5) -> Counts:
    """A boss, who writes to leads, who write to their workers and get answers."""
    said: Counts = {}
    for lead in (f"lead {n}" for n in range(leads)):
        pairs = [("boss", lead), *((lead, f"{lead} worker {n}") for n in range(workers))]
        said |= {pair: 3 for one, other in pairs for pair in ((one, other), (other, one))}
    return said


def colours_of(messages: Counts) -> dict[str, int]:
    return dict.fromkeys((agent for pair in messages for agent in pair), 0)


def names_in(graph: Graph | None) -> list[str | None]:
    assert graph
    return [node.agent for node in graph.nodes]


def test_there_and_back_do_not_lie_on_each_other() -> None:
    graph = drawn({("a", "b"): 3, ("b", "a"): 1}, {("a", "b"): 2}, {"a": 0, "b": 1})
    assert graph
    assert len({arrow.arc.path for arrow in graph.arrows}) == 3
    assert len({(arrow.arc.x, arrow.arc.y) for arrow in graph.arrows}) == 3
    assert [(arrow.times, arrow.handed) for arrow in graph.arrows] == [
        (3, False),
        (2, True),
        (1, False),
    ]
    assert graph.arrows[0].arc.thickness > graph.arrows[2].arc.thickness
    assert "2 agents; most often a writes to b, 3 times" in graph.summary
    assert "hands over to b, 2 times" in graph.arrows[1].words


@pytest.mark.parametrize("count", [2, 3, BOXES, 200])
@pytest.mark.parametrize("boxes", [BOXES, MOST_BOXES])
def test_everything_is_in_the_frame(count: int, boxes: int) -> None:
    graph = drawn({**ring(count), ("0xxxx", "1xxxx"): 12345}, {}, {}, Choice(boxes=boxes))
    assert graph
    assert len(graph.nodes) == min(count, boxes)
    tops = [node.top for node in graph.nodes]
    assert tops[0] >= 0
    assert tops[-1] + BOX_HEIGHT <= graph.height
    assert all(after - before > BOX_HEIGHT for before, after in pairwise(tops))
    for arrow in graph.arrows:
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", arrow.arc.path)]
        # The curve stays within a quarter of the way from its ends to its middle points.
        assert all(
            0 <= (x + 3 * bent) / 4 <= WIDTH for x, bent in [numbers[0:4:2], numbers[6:2:-2]]
        )
        assert all(0 <= y <= graph.height for y in numbers[1::2])
        assert arrow.arc.x is None or 0 < arrow.arc.x < WIDTH


def test_arrows_of_a_small_picture() -> None:
    """Longer ones bend farther, busier ones are thicker, and a number without room is left out."""
    assert arcs_of([Span(0, 1, 3), Span(0, 1, 12), Span(0, 3, 2), Span(2, 0, 20)]) == [
        Arc("M282.0 25.5 C303.3 25.5 303.3 49.2 289.0 49.2", 2.0, None, None),
        Arc("M282.0 22.5 C303.3 22.5 303.3 53.8 289.0 53.8", 3.0, 298.9, 42.1),
        Arc("M282.0 19.5 C340.7 19.5 340.7 127.5 289.0 127.5", 1.7, 326.9, 77.5),
        Arc("M118.0 89.5 C78.0 89.5 78.0 22.5 111.0 22.5", 3.4, 87.1, 60.0),
    ]


@pytest.mark.parametrize("messages", [{}, {("a", "a"): 9}], ids=["none", "to itself"])
def test_sometimes_there_is_no_picture(messages: Counts) -> None:
    assert drawn(messages, {}, {}) is None


@pytest.mark.parametrize("count", [BOXES + 1, 3000])
def test_of_many_agents_the_busiest_are_drawn_and_the_others_are_one(count: int) -> None:
    messages = {**ring(count), ("boss", "0xxxx"): 50, ("1xxxx", "boss"): 20}
    graph = drawn(messages, {("7xxxx", "boss"): 4}, {})
    assert graph
    assert len(graph.nodes) == BOXES
    assert graph.folded == count + 1 - (BOXES - 1)
    assert (graph.nodes[-1].agent, graph.nodes[-1].label) == (None, f"{graph.folded:,} more agents")
    assert {"boss", "0xxxx", "1xxxx", "7xxxx"} <= set(names_in(graph))
    assert f"{count + 1:,} agents; most often boss writes to 0xxxx, 50 times" in graph.summary


def test_who_erred_is_never_folded() -> None:
    messages = company()
    quiet = ["lead 4 worker 4", "lead 3 worker 3"]
    messages = {pair: 1 if set(pair) & set(quiet) else 9 for pair in messages}
    blamed = Blamed(quiet[0], frozenset([quiet[1]]))
    assert not set(quiet) & set(names_in(drawn(messages, {}, {})))
    graph = drawn(messages, {}, {}, None, blamed)
    assert graph
    marks = {node.agent: node.mark for node in graph.nodes if node.mark}
    assert marks == {quiet[0]: "decisive", quiet[1]: "mode"}
    assert len(graph.nodes) == BOXES
    everybody = Blamed(None, frozenset(each for pair in messages for each in pair))
    assert len(names_in(drawn(messages, {}, {}, None, everybody))) == 31
    crowd = Blamed("7xxxx", frozenset(each for pair in ring(3000) for each in pair))
    names = names_in(drawn(ring(3000), {}, {}, None, crowd))
    assert len(names) == MOST_BOXES
    assert "7xxxx" in names


def marks_in(graph: Graph | None) -> dict[str | None, str]:
    assert graph
    return {node.agent: node.mark for node in graph.nodes if node.mark}


@pytest.mark.parametrize("blamed", [None, Blamed(), Blamed(None, frozenset("a"))])
def test_an_unknown_agent_erred_only_where_a_step_is_decisive(blamed: Blamed | None) -> None:
    messages = {("", "a"): 1, ("a", "b"): 2}
    assert "decisive" not in marks_in(drawn(messages, {}, {"a": 0}, None, blamed)).values()
    assert marks_in(drawn(messages, {}, {"a": 0}, None, Blamed(""))) == {"": "decisive"}


def test_an_unknown_agent_is_folded_unless_it_erred() -> None:
    messages = {**dict.fromkeys(ring(30), 9), ("", "0xxxx"): 1}
    assert "" not in names_in(drawn(messages, {}, {}))
    assert "" in names_in(drawn(messages, {}, {}, None, Blamed("")))


def test_those_who_write_to_each_other_stand_together_below_who_began() -> None:
    """Each lead among thirty agents is followed by its own workers."""
    messages = company()
    graph = drawn(messages, {}, colours_of(messages), Choice(boxes=40))
    order = names_in(graph)
    assert order[0] == "boss"
    for place, agent in enumerate(order):
        if agent and agent.startswith("lead") and "worker" not in agent:
            assert set(order[place + 1 : place + 6]) == {f"{agent} worker {n}" for n in range(5)}


def test_a_ring_is_drawn_as_one() -> None:
    """Also where its agents are named in another order; the shortest way around has 14 places."""
    names = ["a", "e", "b", "f", "c", "g", "d", "h"]
    messages = dict.fromkeys([*zip("abcdefgh", "bcdefgha", strict=True)], 3)
    shuffled = {pair: messages[pair] for pair in sorted(messages, key=lambda p: names.index(p[0]))}
    order = names_in(drawn(shuffled, {}, {}))
    assert sum(abs(order.index(one) - order.index(other)) for one, other in messages) <= 16


def test_a_chosen_agent_and_a_least_number_narrow_the_picture() -> None:
    messages = {**company(), ("lead 1", "lead 2"): 1}
    graph = drawn(messages, {}, {}, Choice(("lead 1",)))
    assert graph
    assert graph.agents == 31
    assert set(names_in(graph)) == {
        "lead 1",
        "boss",
        "lead 2",
        *(f"lead 1 worker {n}" for n in range(5)),
    }
    assert [node.agent for node in graph.nodes if node.chosen] == ["lead 1"]
    narrower = names_in(drawn(messages, {}, {}, Choice(("lead 1",), least=2)))
    assert "lead 2" not in narrower
    nobody = drawn(messages, {}, {}, Choice(("nobody",)))
    assert nobody
    assert not nobody.arrows


def test_too_many_arrows_are_left_out_but_nobody_is() -> None:
    names = [f"n{number}" for number in range(30)]
    messages = {(one, other): 1 for one in names for other in names}
    graph = drawn(messages, {}, {})
    assert graph
    assert len(graph.arrows) < graph.pairs
    drawn_ends = [word for arrow in graph.arrows for word in re.findall(r"n\d+", arrow.words)]
    assert set(drawn_ends) == {name for name in names_in(graph) if name}


def test_the_choice_stands_in_the_address() -> None:
    given = [("project", "p"), ("with", "a & b"), ("part", "1"), ("with", ""), ("least", " 3 ")]
    choice = Choice.of([*given, ("with", "é"), ("token", "secret"), ("boxes", "999")])
    assert (choice.agents, choice.least, choice.boxes) == (("a & b", "é"), 3, MOST_BOXES)
    assert choice.address() == "?project=p&with=a+%26+b&with=%C3%A9&least=3&boxes=100#graph"
    assert choice.toggled("é") == "?project=p&with=a+%26+b&least=3&boxes=100#graph"
    assert choice.whole() == "?project=p#graph"
    assert choice.larger() == ""
    assert Choice().larger() == "?boxes=40#graph"
    assert Choice.of([("least", ""), ("boxes", "0")]) == Choice(boxes=2)


@pytest.mark.parametrize("given", [[("least", "-1")], [("boxes", "many")], [("with", "a")] * 51])
def test_a_strange_choice_is_refused(given: list[tuple[str, str]]) -> None:
    with pytest.raises(ConfigurationError):
        Choice.of(given)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("planner", "planner"),
        ("x" * 200 + "-17", "xxxxxxxx…x-17"),
        ("研究员研究员研究员", "研究员研…究员"),
        ("a\nb\u202e", "a b<U+202E>"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("", "unknown"),
    ],
)
def test_labels_fit_their_boxes_and_keep_both_ends(name: str, label: str) -> None:
    assert label_of(name, 13) == label


def test_the_table_is_complete_and_beyond_its_end_has_the_chosen_ones_first() -> None:
    table = table_of(ring(MOST_LINES), {("0xxxx", "1xxxx"): 2}, Choice())
    assert (len(table.lines), table.all_lines) == (MOST_LINES, MOST_LINES + 1)
    table = table_of(ring(3000), {("0xxxx", "2999x"): 2}, Choice(("2999x",)))
    assert [line[:2] for line in table.lines[:3]] == [
        ("2998x", "2999x"),
        ("2999x", "0xxxx"),
        ("0xxxx", "2999x"),
    ]
    small = table_of({("a", "b"): 1, ("b", "a"): 2}, {("a", "b"): 5}, Choice(("nobody",)))
    assert [tuple(line) for line in small.lines] == [
        ("b", "a", 2, False),
        ("a", "b", 1, False),
        ("a", "b", 5, True),
    ]
