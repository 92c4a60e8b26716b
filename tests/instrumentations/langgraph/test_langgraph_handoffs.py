"""Hand-offs by `Command`."""

from __future__ import annotations

from itertools import count
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from langgraph_programs import (
    arithmetic,
    ask,
    calculator,
    linear,
    says,
    supervised,
    swarm,
    swarm_script,
)
from langgraph_routes import desk, handoffs

pytestmark = pytest.mark.framework("langgraph")


class TestHandoffs:
    """`Command` from one agent to another."""

    def test_is_on_the_message_that_goes_with_it(self, recorded):
        """Source and target, as on the tools of a supervisor or a swarm."""

        def node(_state: MessagesState) -> Command[Literal["expert"]]:
            return Command(goto="expert", update={"messages": [AIMessage("Expert!")]})

        desk(node, "expert").compile().invoke(ask())

        assert handoffs(recorded) == [("send_message", "desk", "expert")]
        first, second = recorded.trajectory().steps
        assert (first.handoff_to, second.handoff_to) == ("expert", "")

    def test_without_words_is_on_the_turn(self, recorded):
        """Control goes over although nobody sends a message."""
        desk(lambda _state: Command(goto="expert"), "expert").compile().invoke(ask())

        assert handoffs(recorded) == [("invoke_agent", "desk", "expert")]

    def test_from_within_a_graph_is_the_outer_agents(self, recorded):
        """`Command(graph=PARENT)`: the agent whose node the graph is hands over."""

        def leave(_state: MessagesState) -> Command[Any]:
            return Command(
                graph=Command.PARENT, goto="boss", update={"messages": [AIMessage("over to you")]}
            )

        builder = StateGraph(MessagesState)
        builder.add_node("team", linear(MessagesState, worker=says("done"), leaver=leave))
        builder.add_node("boss", says("fine"))
        builder.add_edge(START, "team")
        builder.compile().invoke(ask())

        assert handoffs(recorded) == [("send_message", "team", "boss")]

    def test_beside_an_edge_and_a_condition_only_the_command_counts(self, recorded):
        """The node's edge leads to one agent, its condition to another, its `Command` to a third."""

        def node(_state: MessagesState) -> Command[Any]:
            return Command(goto="c", update={"messages": [AIMessage("All!")]})

        builder = desk(node, "a", "b", "c")
        builder.add_edge("desk", "a")
        builder.add_conditional_edges("desk", lambda _state: "b", ["b"])
        builder.compile().invoke(ask())

        assert handoffs(recorded) == [("send_message", "desk", "c")]
        assert set(recorded.sent_messages()[0][1]) == {"a", "b", "c"}

    def test_edges_and_conditions_are_none(self, recorded):
        """The program passes the word on; nobody hands over."""
        builder = desk(says("Hm."), "a", "b", path=lambda _state: "b")
        builder.compile().invoke(ask())

        assert handoffs(recorded) == []

    def test_going_on_with_oneself_is_none(self, recorded):
        """A `Command` back to its own node."""
        turns = count()

        def node(_state: MessagesState) -> Command[Any]:
            goto = "desk" if next(turns) == 0 else "__end__"
            return Command(goto=goto, update={"messages": [AIMessage("Again.")]})

        desk(node).compile().invoke(ask())

        assert handoffs(recorded) == []

    @pytest.mark.parametrize(("team", "script"), [(supervised, arithmetic), (swarm, swarm_script)])
    def test_of_a_tool_are_told_once(self, recorded, models, team, script):
        """The tool's span has it; the agent's turn and words have not."""
        team(models(script)).invoke(ask())

        assert [operation for operation, _, _ in handoffs(recorded)] == ["execute_tool"]

    def test_between_agents_in_functions(self, recorded, models):
        """The documented pattern: a node runs its agent and goes back to the supervisor."""
        expert = calculator(models(arithmetic))

        def math(state: MessagesState) -> Command[Literal["boss"]]:
            answer = expert.invoke(state)["messages"][-1].content
            return Command(goto="boss", update={"messages": [AIMessage(answer, name="math")]})

        builder = StateGraph(MessagesState)
        builder.add_node("math", math)
        builder.add_node("boss", says("Fine."))
        builder.add_edge(START, "math")
        builder.compile().invoke(ask())

        assert recorded.sent_messages() == [
            ("math", ("boss",), "2 + 3 is 5"),
            ("boss", (), "Fine."),
        ]
        assert handoffs(recorded) == [("send_message", "math", "boss")]
