"""Agents on LangGraph commit faults, and the rules prove them from the recorded spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from judge.planted.planted_faults import CODE, FAILED_TEST, STOCK, blamed, check, twins
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

if TYPE_CHECKING:
    from collections.abc import Callable

create_agent = agents.create_agent
pytestmark = [pytest.mark.framework("langgraph"), pytest.mark.mast_trace(frameworks=["langgraph"])]
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


@twins
def test_a_repeated_call(captured_spans, faulty):
    again = (LOOK_UP, LOOK_UP) if faulty else ()
    ask_clerk(LOOK_UP, *again, "There are 4711 pieces.")
    trajectory = captured_spans.trajectory()
    check(trajectory, "1.3", faulty, quoted=STOCK, tools=["stock_level"] * 3)
    if faulty:
        assert (blamed(trajectory).agent, blamed(trajectory).tool) == ("clerk", "stock_level")


@twins
def test_a_misstated_result(captured_spans, faulty):
    ask_clerk(LOOK_UP, f"The tool returned {4171 if faulty else 4711} pieces.")
    trajectory = captured_spans.trajectory()
    check(trajectory, "2.6", faulty, quoted="4171")
    assert not faulty or "4171" in blamed(trajectory).text


@twins
def test_a_loop_into_the_recursion_limit(captured_spans, faulty):
    """The clerk never stops looking up, and LangGraph stops it."""
    if faulty:
        with pytest.raises(GraphRecursionError):
            ask_clerk(LOOK_UP, recursion_limit=9)
    else:
        ask_clerk(LOOK_UP, "There are 4711 pieces.", recursion_limit=9)
    check(captured_spans.trajectory(), "1.5", faulty, follows=["1.3", "3.1"])


@twins
def test_an_error_that_ends_the_run(captured_spans, faulty):
    if faulty:
        with pytest.raises(Exception, match="no such model"):
            ask_clerk(LOOK_UP, Reply("no such model", status=400))
    else:
        ask_clerk(LOOK_UP, "There are 4711 pieces.")
    check(captured_spans.trajectory(), "3.1", faulty)


@twins
def test_a_review_that_passes_failed_tests(captured_spans, faulty):
    reply = "All tests passed. Approved!" if faulty else "The tests fail: rejected."
    script = by_speaker(
        {
            "boss": (Reply(calls=(Call("transfer_to_reviewer"),)), "That is the review."),
            "reviewer": (RUN_TESTS, reply),
        }
    )
    with ScriptedLLM(script) as server:
        reviewer = create_agent(
            model(server), [run_tests], name="reviewer", system_prompt="You are the reviewer."
        )
        team = create_supervisor([reviewer], model=model(server), prompt="You are the boss.")
        team.compile().invoke(TASK)
    check(captured_spans.trajectory(), "3.3", faulty, quoted="All tests passed")


def write_and_criticise(shown: Callable[[list], list], remark: str, *parts: str) -> None:
    """A writer writes the parts, and a critic remarks on each but the last.

    Args:
        shown: tells which of all messages the writer's model is shown.
        remark: of the critic's, after its number.
        parts: of the writer's, in turn.
    """

    def writer(state: MessagesState) -> dict[str, object]:
        return {"messages": [chat.invoke(shown(state["messages"]))]}

    def critic(state: MessagesState) -> dict[str, object]:
        number = sum(m.name == "critic" for m in state["messages"]) + 1
        return {"messages": [HumanMessage(f"Remark {number}: {remark}", name="critic")]}

    def more(state: MessagesState) -> str:
        spoken = [m for m in state["messages"] if isinstance(m, AIMessage)]
        return "critic" if len(spoken) < len(parts) else END

    builder = StateGraph(MessagesState)
    builder.add_node("writer", writer)
    builder.add_node("critic", critic)
    builder.add_edge(START, "writer")
    builder.add_conditional_edges("writer", more)
    builder.add_edge("critic", "writer")
    with ScriptedLLM(in_turn(*parts)) as server:
        chat = model(server)
        builder.compile().invoke(TASK)


@twins
def test_a_node_that_forgets_the_conversation(captured_spans, faulty):
    seen = iter((slice(None), slice(None), slice(1) if faulty else slice(None)))
    parts = ("First part: the stock.", "Second part: the price.", "First of all, the stock.")
    write_and_criticise(lambda messages: messages[next(seen)], "go on.", *parts)
    check(captured_spans.trajectory(), "2.1", faulty, quoted="First of all, the stock.")


@twins
def test_a_result_that_was_lost_and_looked_up_again(captured_spans, faulty):
    """In its third turn the clerk's model is shown neither its call nor what came of it."""
    everything = slice(None)
    forgotten = (slice(-1, None), slice(-3, None)) if faulty else (everything, everything)
    shown = iter((everything, everything, *forgotten))

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
    lost = {"tools": ["stock_level"] * 2, "follows": ["1.3"]}
    check(captured_spans.trajectory(), "1.4", faulty, quoted=STOCK, **lost)


def supervised(server: ScriptedLLM, worker: str, tools: list) -> None:
    """A boss hands over to a worker; it is shown the worker's last word."""
    prompt = f"You are the {worker}."
    made = create_agent(model(server), tools, name=worker, system_prompt=prompt)
    supervisor = {"prompt": "You are the boss.", "output_mode": "last_message"}
    create_supervisor([made], model=model(server), **supervisor).compile().invoke(TASK)


def team_of(worker: str, answer: str, end: str) -> None:
    """A boss hands over to a worker, who looks the stock up."""
    script = by_speaker(
        {"boss": (Reply(calls=(Call(f"transfer_to_{worker}"),)), end), worker: (LOOK_UP, answer)}
    )
    with ScriptedLLM(script) as server:
        supervised(server, worker, [stock_level])


@twins
def test_a_finding_that_is_never_passed_on(captured_spans, faulty):
    reply = "I have done what was asked." if faulty else "There are 4711 pieces."
    team_of("clerk", reply, "That is all we know.")
    check(captured_spans.trajectory(), "2.4", faulty, quoted=STOCK)


@twins
def test_a_call_that_was_never_made(captured_spans, faulty):
    """The boss says that it has looked the stock up; it is the clerk who does."""
    reply = "I called stock_level myself." if faulty else "Somebody has to look it up."
    script = by_speaker(
        {
            "boss": (Reply(reply, calls=(Call("transfer_to_clerk"),)), "That is all we know."),
            "clerk": (LOOK_UP, "There are 4711 pieces."),
        }
    )
    with ScriptedLLM(script) as server:
        supervised(server, "clerk", [stock_level])
    check(captured_spans.trajectory(), "2.6", faulty, quoted="I called stock_level")


@twins
def test_code_that_nobody_checks(captured_spans, faulty):
    ask_clerk(CODE) if faulty else ask_clerk(Reply(CODE, calls=LOOK_UP.calls), "There it is.")
    check(captured_spans.trajectory(), "3.2", faulty, quoted="Here it is")


@twins
def test_a_message_that_never_arrives(captured_spans, faulty):
    """The critic's second remark is left out of all that the writer is shown."""
    hidden = "Remark 2" if faulty else "no such remark"
    write_and_criticise(
        lambda messages: [m for m in messages if hidden not in str(m.content)],
        "the part needs another figure.",
        *("Part 0: one.", "Part 1: two.", "Part 2: three.", "Part 3: four."),
    )
    check(captured_spans.trajectory(), "2.5", faulty, quoted="Remark 2")
