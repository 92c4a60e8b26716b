"""Plain graphs: edges, conditions, `Command`, `Send`, sub-graphs and functions."""

from __future__ import annotations

import operator
import re
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send
from langgraph_programs import Topics, ask, chain, linear, says, writers, writers_script

from mast_trace.testing import capture_spans

pytestmark = pytest.mark.framework("langgraph")


def agents(recorded: Any) -> list[str]:
    return [s.attributes["gen_ai.agent.name"] for s in recorded.named("invoke_agent")]


class TestEdges:
    """Static, conditional and joining edges."""

    def test_each_node_is_an_agent_and_speaks_to_the_next(self, recorded, models):
        """A writer and a critic as functions: two turns, two messages, two model calls."""
        writers(models(writers_script)).invoke(ask())

        recorded.check_shape()
        assert recorded.sent_messages() == [
            ("writer", ("critic",), "A poem."),
            ("critic", (), "Too short."),
        ]
        assert recorded.counts()["chat"] == 2

    def test_a_text_that_a_node_takes_from_its_model_is_one_step(self, recorded, models):
        """The model's answer and the message that carries it are one step of the trajectory."""
        writers(models(writers_script)).invoke(ask())

        assert [s.kind.value for s in recorded.trajectory().steps] == ["message", "message"]

    def test_a_condition_decides_the_recipient(self, recorded):
        """A conditional edge leads to one of two agents."""
        builder = StateGraph(MessagesState)
        builder.add_node("a", says("to b"))
        builder.add_node("b", says("I am b"))
        builder.add_node("c", says("I am c"))
        builder.add_edge(START, "a")
        builder.add_conditional_edges("a", lambda _state: "b", ["b", "c"])
        builder.compile().invoke(ask())

        assert recorded.sent_messages() == [("a", ("b",), "to b"), ("b", (), "I am b")]

    def test_a_join_waits_for_all_and_each_speaks_to_it(self, recorded):
        """Two parallel nodes and the one that waits for both."""
        builder = StateGraph(MessagesState)
        builder.add_node("left", says("left"))
        builder.add_node("right", says("right"))
        builder.add_node("join", says("both"))
        builder.add_edge(START, "left")
        builder.add_edge(START, "right")
        builder.add_edge(["left", "right"], "join")
        builder.compile().invoke(ask())

        recorded.check_shape()
        assert sorted(recorded.sent_messages()) == [
            ("join", (), "both"),
            ("left", ("join",), "left"),
            ("right", ("join",), "right"),
        ]

    def test_messages_without_ids_are_told_once(self, recorded):
        """A message that the reducer names afterwards is not new to the next node."""

        def echo(state: MessagesState) -> dict[str, Any]:
            return {"messages": [*state["messages"], AIMessage("mine")]}

        linear(MessagesState, first=says("one"), second=echo).invoke(ask())

        assert [text for _, _, text in recorded.sent_messages()] == ["one", "mine"]

    def test_the_same_words_of_two_agents_are_two_messages(self, recorded):
        """Each agent that says "yes" says it."""
        linear(MessagesState, a=says("yes"), b=says("yes")).invoke(ask())

        assert recorded.sent_messages() == [("a", ("b",), "yes"), ("b", (), "yes")]


class TestCommand:
    """Nodes that choose the next one themselves."""

    def test_goto_names_the_recipient(self, recorded):
        """A node that returns a `Command` speaks to the node that it goes to."""

        def router(_state: MessagesState) -> Command[Literal["expert"]]:
            return Command(goto="expert", update={"messages": [AIMessage("Expert!")]})

        builder = StateGraph(MessagesState)
        builder.add_node("router", router)
        builder.add_node("expert", says("Here."))
        builder.add_edge(START, "router")
        builder.compile().invoke(ask())

        assert recorded.sent_messages() == [
            ("router", ("expert",), "Expert!"),
            ("expert", (), "Here."),
        ]
        turn = recorded.named("invoke_agent")[0].attributes
        assert turn["mast.next_speaker.name"] == "expert"
        assert turn["mast.next_speaker.selected_by"] == "code"


class TestSend:
    """Fan-out."""

    def test_each_worker_gets_its_own_input_and_speaks_to_the_one_who_collects(self, recorded):
        """Map and reduce over a state that holds no messages: updates count as messages."""

        def plan(_state: Topics) -> dict[str, Any]:
            return {"topics": ["cats", "dogs"]}

        def research(state: dict[str, Any]) -> dict[str, Any]:
            return {"facts": [f"{state['topic']} sleep"]}

        def report(state: Topics) -> dict[str, Any]:
            return {"report": " and ".join(sorted(state["facts"]))}

        builder = StateGraph(Topics)
        builder.add_node("plan", plan)
        builder.add_node("research", research)
        builder.add_node("report", report)
        builder.add_edge(START, "plan")
        builder.add_conditional_edges(
            "plan", lambda state: [Send("research", {"topic": t}) for t in state["topics"]]
        )
        builder.add_edge("research", "report")
        builder.add_edge("report", END)
        builder.compile().invoke({"report": ""})

        recorded.check_shape()
        assert agents(recorded) == ["plan", "research", "research", "report"]
        sent = recorded.sent_messages()
        assert sent[0] == ("plan", ("research",), '{"topics": ["cats", "dogs"]}')
        assert sorted(sent[1:3]) == [
            ("research", ("report",), "cats sleep"),
            ("research", ("report",), "dogs sleep"),
        ]
        assert sent[3] == ("report", (), "cats sleep and dogs sleep")
        run = recorded.trajectory()
        saw = [
            {message.content for message in run.seen_by(turn)}
            for turn in run.invocations
            if turn.agent == "research"
        ]
        assert saw == [{"cats"}, {"dogs"}]


class TestSubgraphs:
    """Graphs in nodes."""

    def test_a_team_in_a_node_shows_its_members_inside(self, recorded):
        """A workflow as a node: its agents are inside of the node's turn, their last words go out."""
        team = linear(MessagesState, researcher=says("facts"), editor=says("edited"))
        linear(MessagesState, team=team, boss=says("fine")).invoke(ask())

        recorded.check_shape()
        assert recorded.tree().splitlines() == [
            "invoke_workflow LangGraph",
            "  invoke_agent team",
            "    invoke_agent researcher",
            "      send_message researcher",
            "    invoke_agent editor",
            "      send_message editor",
            "  invoke_agent boss",
            "    send_message boss",
        ]
        assert recorded.sent_messages() == [
            ("researcher", ("editor",), "facts"),
            ("editor", ("boss",), "edited"),
            ("boss", (), "fine"),
        ]

    def test_a_subgraph_that_leaves_for_the_parent_loses_nothing(self, recorded):
        """`Command(graph=PARENT)` drops inner messages from the state; the trace has them."""

        def leave(_state: MessagesState) -> Command[Any]:
            return Command(
                graph=Command.PARENT, goto="boss", update={"messages": [AIMessage("over to you")]}
            )

        team = linear(MessagesState, worker=says("lost"), leaver=leave)
        builder = StateGraph(MessagesState)
        builder.add_node("team", team)
        builder.add_node("boss", says("fine"))
        builder.add_edge(START, "team")
        builder.compile().invoke(ask())

        recorded.check_shape()
        assert not [s.name for s in recorded.all if not s.status.is_ok]
        assert [(who, text) for who, _, text in recorded.sent_messages()] == [
            ("worker", "lost"),
            ("team", "over to you"),
            ("boss", "fine"),
        ]
        assert recorded.sent_messages()[1][1] == ("boss",)


class TestFunctionalAPI:
    """Entrypoints and tasks."""

    def test_tasks_are_agents_that_answer_the_entrypoint(self, recorded):
        """`@task` functions speak to the `@entrypoint` that calls them."""

        @task
        def research(topic: str) -> str:
            return f"{topic} sleep"

        @task
        def write(facts: str) -> str:
            return f"Essay: {facts}"

        @entrypoint()
        def essay(topic: str) -> str:
            return write(research(topic).result()).result()

        essay.invoke("cats")

        recorded.check_shape()
        assert recorded.tree().splitlines() == [
            "invoke_workflow essay",
            "  invoke_agent essay",
            "    invoke_agent research",
            "      send_message research",
            "    invoke_agent write",
            "      send_message write",
        ]
        assert recorded.sent_messages() == [
            ("research", ("essay",), "cats sleep"),
            ("write", ("essay",), "Essay: cats sleep"),
        ]
        assert recorded.trajectory().task == "cats"


class TestStates:
    """The output of nodes."""

    def test_an_update_is_cut_before_it_is_rendered(self, recorded):
        """A node may write anything: objects of the program are named, not rendered."""

        class Opaque:
            def __str__(self) -> str:
                raise AssertionError("rendered")

        class Loose(TypedDict, total=False):
            thing: object
            number: int

        linear(Loose, maker=lambda _state: {"thing": Opaque(), "number": 7}).invoke({"number": 1})

        assert recorded.sent_messages() == [("maker", (), '{"thing": "<Opaque>", "number": 7}')]

    @pytest.mark.parametrize("before", ["", "." * 65_530], ids=["escaped", "cut"])
    def test_a_secret_inside_of_an_update_is_redacted(self, before: str) -> None:
        """JSON escapes its quotes, and the cut leaves a part of it."""

        class Loose(TypedDict, total=False):
            thing: list[str]
            number: int

        secret = 'pin "1234"'
        update = {"thing": [before + secret, before], "number": 7}
        with capture_spans(
            ["langgraph"], redact=lambda text: text.replace(secret, "#")
        ) as captured:
            linear(Loose, maker=lambda _state: update).invoke({"number": 1})
        [message] = captured.named("send_message")
        assert message.attributes is not None
        assert not re.search("pin|1234", str(dict(message.attributes)))
        assert message.attributes["mast.content.redacted"] == ("mast.message.content",)

    def test_a_node_that_writes_nothing_says_nothing(self, recorded):
        """No update, no message; the turn itself is recorded."""
        linear(MessagesState, silent=lambda _state: None, loud=says("hm")).invoke(ask())

        assert agents(recorded) == ["silent", "loud"]
        assert [who for who, _, _ in recorded.sent_messages()] == ["loud"]

    def test_shorthand_messages_are_read_like_others(self, recorded):
        """Pairs and mappings, which LangGraph turns into messages, are messages."""

        def pair(_state: MessagesState) -> dict[str, Any]:
            return {"messages": [("ai", "a pair")]}

        def mapping(_state: MessagesState) -> dict[str, Any]:
            return {"messages": {"role": "assistant", "content": "a mapping"}}

        linear(MessagesState, pair=pair, mapping=mapping).invoke(ask())

        assert [text for _, _, text in recorded.sent_messages()] == ["a pair", "a mapping"]

    def test_a_graph_with_reduced_lists_reports_what_is_new(self, recorded):
        """A worker's addition is its message, not the whole list."""

        class Log(TypedDict):
            log: Annotated[list[str], operator.add]

        graph = chain(
            Log, one=lambda _s: {"log": ["first"]}, two=lambda _s: {"log": ["second"]}
        ).compile()
        graph.invoke({"log": []})

        assert [text for _, _, text in recorded.sent_messages()] == ["first", "second"]
