"""Agents on LangGraph commit faults, and the rules prove them from the recorded spans."""

from __future__ import annotations

import pytest
from judge.planted.planted_faults import FAILED_TEST, STOCK, blamed, exact, tools_of
from scripted_llm import Call, Reply, ScriptedLLM, by_speaker, in_turn

pytest.importorskip("langgraph.graph", reason="needs LangGraph")
agents = pytest.importorskip("langchain.agents", reason="needs LangChain 1")
if not hasattr(agents, "create_agent"):
    pytest.skip("needs LangChain 1", allow_module_level=True)
pytest.importorskip("langchain_openai", reason="needs langchain-openai")
pytest.importorskip("langgraph_supervisor", reason="needs langgraph-supervisor")

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph_supervisor import create_supervisor

create_agent = agents.create_agent
pytestmark = [
    pytest.mark.framework("langgraph"),
    pytest.mark.mast_trace(frameworks=["langgraph"]),
]
TASK = {"messages": [("user", "How many pieces of item 7 are in stock?")]}
LOOK_UP = Reply(calls=(Call("stock_level", {"item": 7}),))
RUN_TESTS = Reply(calls=(Call("run_tests", {"path": "tests"}),))


def stock_level(item: int) -> str:
    """Return the stock of an item."""
    return STOCK


@tool
def run_tests(path: str) -> str:
    """Run the tests; the model is told of a failure."""
    raise ToolException(FAILED_TEST)


run_tests.handle_tool_error = True


def model(server: ScriptedLLM) -> ChatOpenAI:
    return ChatOpenAI(model="scripted", base_url=server.url, api_key="scripted", max_retries=0)


def ask_clerk(*replies: Reply | str, recursion_limit: int = 25) -> str:
    """One agent with the stock's tool answers the task."""
    with ScriptedLLM(in_turn(*replies)) as server:
        agent = create_agent(model(server), [stock_level], name="clerk")
        answer = agent.invoke(TASK, {"recursion_limit": recursion_limit})
    return str(answer["messages"][-1].content)


def test_a_sound_run_shows_nothing(captured_spans):
    """One look-up, and the answer says what it returned."""
    ask_clerk(LOOK_UP, "There are 4711 pieces.")
    assert exact(captured_spans.trajectory()) == {}


def test_a_repeated_call_is_found(captured_spans):
    """The clerk looks the same thing up three times; the first repetition decides."""
    ask_clerk(LOOK_UP, LOOK_UP, LOOK_UP, "There are 4711 pieces.")
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert set(found) == {"1.3"}
    assert tools_of(trajectory, found["1.3"]) == ["stock_level"] * 3
    assert (blamed(trajectory).agent, blamed(trajectory).tool) == ("clerk", "stock_level")


def test_a_misstated_result_is_found(captured_spans):
    """The tool says 4711, the clerk says that it said 4171."""
    ask_clerk(LOOK_UP, "The tool returned 4171 pieces.")
    trajectory = captured_spans.trajectory()
    assert set(exact(trajectory)) == {"2.6"}
    assert "4171" in blamed(trajectory).text


def test_a_loop_into_the_recursion_limit_is_found(captured_spans):
    """The clerk never stops looking up; LangGraph stops it."""
    with pytest.raises(GraphRecursionError):
        ask_clerk(LOOK_UP, recursion_limit=9)
    assert {"1.3", "1.5", "3.1"} <= set(exact(captured_spans.trajectory()))


def test_a_review_that_passes_failed_tests_is_found(captured_spans):
    """The reviewer's own run of the tests fails, and it approves."""
    script = by_speaker(
        {
            "boss": (Reply(calls=(Call("transfer_to_reviewer"),)), "The work is approved."),
            "reviewer": (RUN_TESTS, "All tests passed. Approved!"),
        }
    )
    with ScriptedLLM(script) as server:
        reviewer = create_agent(
            model(server),
            [run_tests],
            name="reviewer",
            system_prompt="You are the reviewer.",
        )
        team = create_supervisor([reviewer], model=model(server), prompt="You are the boss.")
        team.compile().invoke(TASK)
    found = exact(captured_spans.trajectory())
    assert "3.3" in found
    assert "All tests passed" in found["3.3"].quotes[-1]


def test_a_node_that_forgets_the_conversation_is_found(captured_spans):
    """In its third turn the writer's model is shown nothing but the task."""
    seen = iter((slice(None), slice(None), slice(1)))

    def writer(state: MessagesState) -> dict[str, object]:
        return {"messages": [chat.invoke(state["messages"][next(seen)])]}

    def critic(state: MessagesState) -> dict[str, object]:
        said = f"Remark {len(state['messages'])}: go on."
        return {"messages": [HumanMessage(said, name="critic")]}

    def more(state: MessagesState) -> str:
        spoken = [m for m in state["messages"] if isinstance(m, AIMessage)]
        return "critic" if len(spoken) < 3 else END

    builder = StateGraph(MessagesState)
    builder.add_node("writer", writer)
    builder.add_node("critic", critic)
    builder.add_edge(START, "writer")
    builder.add_conditional_edges("writer", more)
    builder.add_edge("critic", "writer")
    script = in_turn(
        "First part: the stock.", "Second part: the price.", "First of all, the stock."
    )
    with ScriptedLLM(script) as server:
        chat = model(server)
        builder.compile().invoke(TASK)
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert set(found) == {"2.1"}
    assert trajectory.steps[found["2.1"].steps[0]].text == "First of all, the stock."


def test_a_result_that_was_lost_and_looked_up_again_is_found(captured_spans):
    """In its third turn the clerk's model is shown neither its call nor what came of it."""
    shown = iter((slice(None), slice(None), slice(-1, None), slice(-3, None)))

    def clerk(state: MessagesState) -> dict[str, object]:
        return {"messages": [chat.invoke(state["messages"][next(shown)])]}

    def auditor(state: MessagesState) -> dict[str, object]:
        return {"messages": [HumanMessage("Is that what the stock says?", name="auditor")]}

    def after_clerk(state: MessagesState) -> str:
        if state["messages"][-1].tool_calls:
            return "tools"
        answers = [m for m in state["messages"] if isinstance(m, AIMessage) and m.content]
        return "auditor" if len(answers) == 1 else END

    builder = StateGraph(MessagesState)
    builder.add_node("clerk", clerk)
    builder.add_node("tools", ToolNode([stock_level]))
    builder.add_node("auditor", auditor)
    builder.add_edge(START, "clerk")
    builder.add_conditional_edges("clerk", after_clerk)
    builder.add_edge("tools", "clerk")
    builder.add_edge("auditor", "clerk")
    script = in_turn(LOOK_UP, "There are 4711 pieces.", LOOK_UP, "Yes, 4711 pieces.")
    with ScriptedLLM(script) as server:
        chat = model(server).bind_tools([stock_level])
        builder.compile().invoke(TASK)
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert "1.4" in found
    assert tools_of(trajectory, found["1.4"]) == ["stock_level"] * 2


def team_of(worker: str, answer: str, end: str) -> None:
    """A boss hands over to a worker, who looks the stock up; the boss is shown the last word."""
    script = by_speaker(
        {
            "boss": (Reply(calls=(Call(f"transfer_to_{worker}"),)), end),
            worker: (LOOK_UP, answer),
        }
    )
    with ScriptedLLM(script) as server:
        clerk = create_agent(
            model(server), [stock_level], name=worker, system_prompt=f"You are the {worker}."
        )
        team = create_supervisor(
            [clerk], model=model(server), prompt="You are the boss.", output_mode="last_message"
        )
        team.compile().invoke(TASK)


def test_a_finding_that_is_never_passed_on_is_found(captured_spans):
    """The clerk looks the stock up and tells the boss nothing of it."""
    team_of("clerk", "I have done what was asked.", "We do not know how many pieces there are.")
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert "2.4" in found
    assert STOCK in found["2.4"].quotes


def test_a_finding_that_is_passed_on_is_no_withholding(captured_spans):
    """The clerk says what it found."""
    team_of("clerk", "There are 4711 pieces.", "There are 4711 pieces of item 7.")
    assert exact(captured_spans.trajectory()) == {}


def test_code_that_nobody_checks_is_found(captured_spans):
    """The run ends on what the coder has written."""
    code = "Here it is:\n```python\ndef add(a, b):\n    total = a + b\n    return total\n```"
    ask_clerk(code)
    found = exact(captured_spans.trajectory())
    assert set(found) == {"3.2"}


def test_a_message_that_never_arrives_is_found(captured_spans):
    """The critic's second remark is left out of all that the writer is shown."""

    def writer(state: MessagesState) -> dict[str, object]:
        seen = [m for m in state["messages"] if "Remark 2" not in str(m.content)]
        return {"messages": [chat.invoke(seen)]}

    def critic(state: MessagesState) -> dict[str, object]:
        number = sum(m.name == "critic" for m in state["messages"]) + 1
        said = f"Remark {number}: the part needs another figure."
        return {"messages": [HumanMessage(said, name="critic")]}

    def more(state: MessagesState) -> str:
        spoken = [m for m in state["messages"] if isinstance(m, AIMessage)]
        return "critic" if len(spoken) < 4 else END

    builder = StateGraph(MessagesState)
    builder.add_node("writer", writer)
    builder.add_node("critic", critic)
    builder.add_edge(START, "writer")
    builder.add_conditional_edges("writer", more)
    builder.add_edge("critic", "writer")
    parts = [
        f"Part {number}: {word}." for number, word in enumerate(("one", "two", "three", "four"))
    ]
    with ScriptedLLM(in_turn(*parts)) as server:
        chat = model(server)
        builder.compile().invoke(TASK)
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert set(found) == {"2.5"}
    assert "Remark 2" in trajectory.steps[found["2.5"].steps[0]].text
