"""Teams of agents: who acts, who says what to whom, who hands over to whom."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import MessagesState
from langgraph_programs import (
    QUESTION,
    arithmetic,
    ask,
    calculator,
    create_agent,
    linear,
    supervised,
    swarm,
    swarm_script,
)
from scripted_llm import Call, Reply, last_text, system_text

pytestmark = pytest.mark.framework("langgraph")


def agents(recorded: Any) -> list[str]:
    return [s.attributes["gen_ai.agent.name"] for s in recorded.named("invoke_agent")]


class TestSupervisor:
    """`langgraph-supervisor`."""

    @pytest.fixture
    def team(self, recorded, models):
        """The spans of a supervisor's run."""
        supervised(models(arithmetic)).invoke(ask())
        return recorded

    def test_the_formality_of_handing_back_is_marked_as_the_frameworks(self, team):
        """Only the text that LangGraph wrote in the agent's name is synthetic."""
        steps = [step for step in team.trajectory().steps if step.synthetic]
        assert [step.text for step in steps] == ["Transferring back to supervisor"]

    def test_the_handoff_has_source_and_target(self, team):
        """The tool that hands over says who did and to whom, and that a model chose."""
        handoff = team.named("execute_tool")[0].attributes
        assert handoff["mast.handoff.source.name"] == "supervisor"
        assert handoff["mast.handoff.target.name"] == "math"
        turns = [s.attributes for s in team.named("invoke_agent")]
        assert [t.get("mast.next_speaker.name") for t in turns] == ["math", "supervisor", None]
        assert [t.get("mast.next_speaker.selected_by") for t in turns] == ["model", "code", None]

    def test_replies_refer_to_what_they_answer(self, team):
        """The mathematician answers the supervisor, the supervisor the mathematician."""
        steps = {step.text: step for step in team.trajectory().steps}
        asked = steps["Mathematician, please."]
        found = steps["2 + 3 is 5"]
        assert found.in_reply_to == asked.message_id
        assert steps["The team says 5."].in_reply_to == found.message_id

    def test_the_task_and_the_outcome_are_on_the_root(self, team):
        """A trajectory knows what was asked, how it ended and what the answer is."""
        run = team.trajectory()
        assert run.task == QUESTION
        assert run.final_answer == "The team says 5."
        assert run.framework == "langgraph"
        assert run.agents == ("supervisor", "math")
        assert run.output_tokens > 0

    def test_of_parallel_handoffs_only_those_that_happen_have_recipients(self, recorded, models):
        """LangGraph may drop one of two hand-offs: the trace shows who really got the word."""
        from langgraph_supervisor import create_supervisor

        def script(request):
            if "boss" not in system_text(request):
                return "I am done, says " + system_text(request)
            if request["messages"][-1]["role"] != "user":
                return "Done."
            return Reply("Both!", calls=(Call("transfer_to_left"), Call("transfer_to_right")))

        model = models(script)
        left = create_agent(model, [], name="left", system_prompt="left")
        right = create_agent(model, [], name="right", system_prompt="right")
        team = create_supervisor(
            [left, right], model=model, prompt="You are the boss.", parallel_tool_calls=True
        ).compile()
        team.invoke(ask())

        recorded.check_shape()
        handoffs = recorded.named("execute_tool")
        targets = {s.attributes["mast.handoff.target.name"] for s in handoffs}
        assert targets == {"left", "right"}
        sender, recipients, text = recorded.sent_messages()[0]
        assert (sender, text) == ("supervisor", "Both!")
        assert set(recipients) == {"left", "right"} & set(agents(recorded))
        assert [text for _, _, text in recorded.sent_messages()].count("Both!") == 1


class TestSwarm:
    """`langgraph-swarm`."""

    def test_a_handoff_without_words_is_a_tool_call_only(self, recorded, models):
        """Alice says nothing, Bob answers: one message, two tool calls, three turns of the model."""
        swarm(models(swarm_script)).invoke(ask())

        recorded.check_shape()
        assert agents(recorded) == ["Alice", "Bob"]
        assert recorded.sent_messages() == [("Bob", (), "Bob says 5")]
        tools = [s.attributes["gen_ai.tool.name"] for s in recorded.named("execute_tool")]
        assert tools == ["transfer_to_bob", "add"]
        assert [s.kind.value for s in recorded.trajectory().steps] == ["tool", "tool", "message"]

    def test_the_handoff_has_source_and_target(self, recorded, models):
        """The swarm's tool names both agents."""
        swarm(models(swarm_script)).invoke(ask())

        handoff = recorded.named("execute_tool")[0].attributes
        assert handoff["mast.handoff.source.name"] == "Alice"
        assert handoff["mast.handoff.target.name"] == "Bob"


class TestAgents:
    """`create_agent`, alone and inside of others."""

    def test_a_single_agent_is_a_run_with_one_turn(self, recorded, models):
        """`create_agent` alone: its loop of model and tools is one turn of one agent."""
        calculator(models(arithmetic)).invoke(ask())

        assert recorded.tree().splitlines() == [
            "invoke_workflow math",
            "  invoke_agent math",
            "    chat scripted",
            "    execute_tool add",
            "    chat scripted",
            "    send_message math",
        ]

    def test_an_agent_without_a_name_is_called_agent(self, recorded, models):
        """A nameless loop gets the word that LangChain uses for it."""
        calculator(models(arithmetic), name=None).invoke(ask())

        assert agents(recorded) == ["agent"]

    def test_an_agent_in_a_tool_answers_the_agent_that_called_it(self, recorded, models):
        """An agent as a tool: its turn is inside the tool's span, its words go to the caller."""

        def script(request):
            if "boss" in system_text(request):
                if last_text(request) == "2 + 3 is 5":
                    return "So it is 5."
                return Reply(calls=(Call("consult", {"question": "2 + 3?"}),))
            return arithmetic(request)

        model = models(script)
        expert = calculator(model)

        @tool
        def consult(question: str) -> str:
            """Ask the mathematician."""
            return expert.invoke(ask(question))["messages"][-1].content

        create_agent(model, [consult], name="boss", system_prompt="You are the boss.").invoke(ask())

        recorded.check_shape()
        assert recorded.tree().splitlines() == [
            "invoke_workflow boss",
            "  invoke_agent boss",
            "    chat scripted",
            "    execute_tool consult",
            "      invoke_agent math",
            "        chat scripted",
            "        execute_tool add",
            "        chat scripted",
            "        send_message math",
            "    chat scripted",
            "    send_message boss",
        ]
        assert recorded.sent_messages() == [
            ("math", ("boss",), "2 + 3 is 5"),
            ("boss", (), "So it is 5."),
        ]

    def test_an_agent_called_by_a_node_speaks_once_though_the_node_repeats_it(
        self, recorded, models
    ):
        """A node that hands its agent's answer on under the agent's name adds no message."""
        expert = calculator(models(arithmetic))

        def math(state: MessagesState) -> dict[str, Any]:
            answer = expert.invoke(state)["messages"][-1].content
            return {"messages": [HumanMessage(answer, name="math")]}

        def checker(_state: MessagesState) -> dict[str, Any]:
            return {"messages": [("ai", "Correct.")]}

        linear(MessagesState, math=math, checker=checker).invoke(ask())

        recorded.check_shape()
        assert agents(recorded) == ["math", "checker"]
        assert recorded.sent_messages() == [
            ("math", ("checker",), "2 + 3 is 5"),
            ("checker", (), "Correct."),
        ]

    def test_a_node_is_called_as_the_agent_that_it_runs(self, recorded, models):
        """Recipients are named as senders are: after the agent, where a node is named otherwise."""
        expert = calculator(models(arithmetic))

        def asker(_state: MessagesState) -> dict[str, Any]:
            return {"messages": [HumanMessage("Please add.")]}

        linear(MessagesState, asker=asker, math_node=expert).invoke(ask())

        assert agents(recorded) == ["asker", "math"]
        assert recorded.sent_messages() == [
            ("asker", ("math",), "Please add."),
            ("math", (), "2 + 3 is 5"),
        ]

    def test_a_message_that_names_its_author_is_that_authors(self, recorded):
        """A node may speak for others; only a message without a name is the node's own."""

        def desk(_state: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage("Too short.", name="critic"), AIMessage("Next.")]}

        linear(MessagesState, desk=desk).invoke(ask())

        recorded.check_shape()
        assert agents(recorded) == ["desk"]
        assert recorded.sent_messages() == [("critic", (), "Too short."), ("desk", (), "Next.")]

    def test_an_agent_inside_of_another_frameworks_run_joins_it(self, recorded, models):
        """A graph in a run that is going on is a part of that run's trace."""
        run = recorded.instrumentor.telemetry.run("outer")
        with run.attached():
            calculator(models(arithmetic)).invoke(ask())
        run.finish("completed")

        recorded.check_shape()
        assert recorded.parent(recorded.named("invoke_agent")[0]).name == "invoke_workflow outer"
