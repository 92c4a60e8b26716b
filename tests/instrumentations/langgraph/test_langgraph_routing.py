"""The agents that come next after a node, and who chose them."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send
from langgraph_programs import (
    arithmetic,
    ask,
    calculator,
    create_agent,
    linear,
    says,
)
from langgraph_routes import Grade, Route, chosen_by, desk, handoffs, routes, turn
from pydantic import BaseModel
from scripted_llm import Reply, system_text

from mast_trace import semconv

pytestmark = pytest.mark.framework("langgraph")


METHODS = ["function_calling", "json_schema", "json_mode"]


class TestWhoChose:
    """`model` where it is known, `code` otherwise."""

    @pytest.mark.parametrize("method", METHODS)
    def test_a_command_that_a_structured_output_names(self, recorded, models, method):
        """The usual supervisor of one's own: ask for the next agent and go there."""
        router = models(routes({"next": "writer"})).with_structured_output(Route, method=method)

        def node(state: MessagesState) -> Command[Literal["writer", "critic"]]:
            return Command(goto=router.invoke(state["messages"]).next)

        desk(node, "writer", "critic").compile().invoke(ask())

        recorded.check_shape()
        assert chosen_by(recorded) == "model"
        assert turn(recorded, "desk")[semconv.SELECTED_SPEAKER] == "writer"

    def test_in_an_async_and_in_a_streamed_run(self, recorded, models):
        """`ainvoke`, `stream` and `astream_events` know it too."""
        router = models(routes({"next": "critic"})).with_structured_output(Route)

        async def node(state: MessagesState) -> Command[Literal["writer", "critic"]]:
            return Command(goto=(await router.ainvoke(state["messages"])).next)

        graph = desk(node, "writer", "critic").compile()

        async def run() -> None:
            await graph.ainvoke(ask())
            async for _ in graph.astream(ask(), stream_mode=["messages", "updates"]):
                pass
            async for _ in graph.astream_events(ask(), version="v2"):
                pass

        asyncio.run(run())
        recorded.check_shape(runs=3)
        desks = [
            s.attributes
            for s in recorded.named("invoke_agent")
            if s.attributes["gen_ai.agent.name"] == "desk"
        ]
        assert [t[semconv.SELECTED_BY] for t in desks] == ["model"] * 3
        assert [h[1:] for h in handoffs(recorded)] == [("desk", "critic")] * 3

    def test_a_condition_on_what_the_node_asked_for(self, recorded, models):
        """The node writes the model's choice into the state, the edge reads it."""
        router = models(routes({"next": "critic"})).with_structured_output(Route)

        class State(MessagesState):
            next: str

        def node(state: State) -> dict[str, Any]:
            return {"next": router.invoke(state["messages"]).next}

        builder = StateGraph(State)
        builder.add_node("desk", node)
        builder.add_node("writer", says("I write."))
        builder.add_node("critic", says("I criticise."))
        builder.add_edge(START, "desk")
        builder.add_conditional_edges("desk", lambda state: state["next"], ["writer", "critic"])
        builder.compile().invoke(ask())

        assert chosen_by(recorded) == "model"
        assert handoffs(recorded) == []

    def test_a_condition_that_asks_the_model_itself(self, recorded, models):
        """The model call is in the function of the edge."""
        router = models(routes({"next": "critic"})).with_structured_output(Route)

        def path(state: MessagesState) -> str:
            return str(router.invoke(state["messages"]).next)

        desk(says("Who is next?"), "writer", "critic", path=path).compile().invoke(ask())

        recorded.check_shape()
        assert chosen_by(recorded) == "model"

    def test_an_inner_agents_structured_response(self, recorded, models):
        """The node runs an agent that answers in a structure."""
        agent = create_agent(
            models(routes({"next": "critic"})), [], name="inner", response_format=_provider(Route)
        )

        def node(state: MessagesState) -> Command[Literal["writer", "critic"]]:
            return Command(goto=agent.invoke(state)["structured_response"].next)

        desk(node, "writer", "critic").compile().invoke(ask())

        recorded.check_shape()
        (decider,) = [
            s.attributes
            for s in recorded.named("invoke_agent")
            if semconv.SELECTED_SPEAKER in s.attributes
        ]
        assert decider[semconv.SELECTED_BY] == "model"

    def test_several_at_once(self, recorded, models):
        """All whom the output names, and nobody else, get the word."""

        class Team(BaseModel):
            members: list[str]

        router = models(routes({"members": ["writer", "critic"]})).with_structured_output(Team)

        def node(state: MessagesState) -> Command[Literal["writer", "critic"]]:
            members = router.invoke(state["messages"]).members
            return Command(goto=[Send(name, state) for name in members])

        desk(node, "writer", "critic").compile().invoke(ask())

        assert chosen_by(recorded) == "model"
        ((_, source, target),) = handoffs(recorded)
        assert (source, set(target.split(", "))) == ("desk", {"writer", "critic"})

    def test_code_that_counts_although_a_model_was_called(self, recorded, models):
        """The model grades; a counter chooses."""
        grader = models(routes({"score": 3, "comment": "writer, critic"}))
        turns = count()

        def node(state: MessagesState) -> Command[Literal["writer", "critic"]]:
            grader.with_structured_output(Grade).invoke(state["messages"])
            return Command(goto=["writer", "critic"][next(turns) % 2])

        desk(node, "writer", "critic").compile().invoke(ask())

        assert chosen_by(recorded) == "code"

    @pytest.mark.parametrize(
        "answer",
        [
            {"next": "critic"},
            {"next": "the writer"},
            {"next": "writer", "reason": "critic"},
            {"next": ""},
        ],
        ids=["another", "a phrase", "both", "none"],
    )
    def test_an_output_that_does_not_name_the_target_alone(self, recorded, models, answer):
        """The output names another agent, more than one, or none: the model did not choose this."""
        router = models(routes(answer)).with_structured_output(Route)

        def node(state: MessagesState) -> Command[Literal["writer", "critic"]]:
            router.invoke(state["messages"])
            return Command(goto="writer")

        desk(node, "writer", "critic").compile().invoke(ask())

        assert chosen_by(recorded) == "code"

    def test_words_that_name_the_target_are_no_structured_output(self, recorded, models):
        """Free text is read by code, however it reads it."""
        model = models(lambda _request: "writer")

        def node(state: MessagesState) -> Command[Literal["writer", "critic"]]:
            return Command(goto=str(model.invoke(state["messages"]).content).strip())

        desk(node, "writer", "critic").compile().invoke(ask())

        assert chosen_by(recorded) == "code"

    def test_a_plain_edge_is_nobodys_choice(self, recorded, models):
        """The edge leads there whatever the model says."""
        router = models(routes({"next": "writer"})).with_structured_output(Route)

        def node(state: MessagesState) -> dict[str, Any]:
            router.invoke(state["messages"])
            return {"messages": [AIMessage("Go on.")]}

        linear(MessagesState, desk=node, writer=says("I write.")).invoke(ask())

        assert chosen_by(recorded) == "code"

    def test_a_choice_of_an_earlier_step_is_not_this_ones(self, recorded, models):
        """Only the model calls of the same step count."""
        router = models(routes({"next": "writer"})).with_structured_output(Route)

        def first(state: MessagesState) -> dict[str, Any]:
            router.invoke(state["messages"])
            return {}

        builder = desk(lambda _state: Command(goto="writer"), "writer", "critic")
        builder.add_node("first", first)
        builder.edges.discard((START, "desk"))
        builder.add_edge(START, "first")
        builder.add_edge("first", "desk")
        builder.compile().invoke(ask())

        assert chosen_by(recorded) == "code"


def _provider(schema: Any) -> Any:
    """The answer's form, given to the model's provider where LangChain tells these apart."""
    try:
        from langchain.agents.structured_output import ProviderStrategy
    except ImportError:
        return schema
    return ProviderStrategy(schema)


class TestWhoCalls:
    """Model calls of a node that also runs an agent."""

    @staticmethod
    def script(request: dict[str, Any]) -> Reply | str:
        if "route" in system_text(request):
            return json.dumps({"next": "writer"})
        return arithmetic(request)

    def test_a_nodes_own_call_is_not_the_inner_agents(self, recorded, models):
        """A node that asks a model itself is an agent, and the agent that it runs is another."""
        model = models(self.script)
        router = model.with_structured_output(Route, method="json_mode")
        expert = calculator(model)

        def command(state: MessagesState) -> Command[Literal["writer"]]:
            expert.invoke(state)
            chosen = router.invoke([("system", "You route."), *state["messages"]])
            return Command(goto=chosen.next)

        builder = StateGraph(MessagesState)
        builder.add_node("before", says("Begin."))
        builder.add_node("command", command)
        builder.add_node("writer", says("I write."))
        builder.add_edge(START, "before")
        builder.add_edge("before", "command")
        builder.compile().invoke(ask())

        recorded.check_shape()
        assert recorded.tree().splitlines() == [
            "invoke_workflow LangGraph",
            "  invoke_agent before",
            "    send_message before",
            "  invoke_agent command",
            "    invoke_agent math",
            "      chat scripted",
            "      execute_tool add",
            "      chat scripted",
            "      send_message math",
            "    chat scripted",
            "  invoke_agent writer",
            "    send_message writer",
        ]
        callers = [s.attributes["gen_ai.agent.name"] for s in recorded.named("chat")]
        assert callers == ["math", "math", "command"]
        assert recorded.sent_messages()[0] == ("before", ("command",), "Begin.")
        assert turn(recorded, "command")[semconv.SELECTED_BY] == "model"

    def test_nor_where_the_call_is_in_a_function_of_its_own(self, recorded, models):
        """Nothing in the node refers to the model: the call itself is credited to the node."""
        model = models(self.script)
        tools = {"router": model.with_structured_output(Route, method="json_mode")}
        expert = calculator(model)

        def choose(state: MessagesState) -> str:
            return str(tools["router"].invoke([("system", "You route."), *state["messages"]]).next)

        def command(state: MessagesState) -> Command[Literal["writer"]]:
            goto = choose(state)
            expert.invoke(state)
            return Command(goto=goto)

        desk(command, "writer").compile().invoke(ask())

        callers = [s.attributes["gen_ai.agent.name"] for s in recorded.named("chat")]
        assert callers == ["desk", "math", "math"]
