"""Agents that say the same: each message has an id of its own, in every input that shows it."""

from __future__ import annotations

import asyncio
import operator
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from mast_trace import semconv

if TYPE_CHECKING:
    from collections.abc import Callable

    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("langgraph")

AGENTS = [
    "board",
    "finance",
    "legal",
]  # the order in which LangGraph applies what they write at once
APPROVED = "approved"


class PlainState(TypedDict):
    """Messages that nobody gives an id."""

    messages: Annotated[list[Any], operator.add]


def fresh(_state: Any, _name: str) -> Any:
    return AIMessage(APPROVED)


def as_human(_state: Any, name: str) -> Any:
    return HumanMessage(APPROVED, name=name)


def as_dict(_state: Any, _name: str) -> Any:
    return {"role": "assistant", "content": APPROVED}


WAYS: dict[str, Callable[[Any, str], Any]] = {
    "fresh": fresh,
    "as human": as_human,
    "as dict": as_dict,
}


def team(state: Any, says: Callable[[Any, str], Any], *, parallel: bool) -> Any:
    graph = StateGraph(state)
    for name in AGENTS:
        graph.add_node(name, lambda s, n=name: {"messages": [says(s, n)]})
    graph.add_node("clerk", lambda _: {"messages": [AIMessage("All of them approved.")]})
    if parallel:
        for name in AGENTS:
            graph.add_edge(START, name)
        graph.add_edge(AGENTS, "clerk")
    else:
        for before, after in zip([START, *AGENTS], [*AGENTS, "clerk"], strict=True):
            graph.add_edge(before, after)
    graph.add_edge("clerk", END)
    return graph.compile(name="approvals")


def check(recorded: RecordedSpans, *, parallel: bool, whose: bool = True) -> None:
    """The four texts have four ids, and who answers answers what it was shown.

    Without ``whose``, the order of equal texts that came at once is not known.
    """
    run = recorded.trajectory()
    answers = [step for step in run.steps if step.text == APPROVED]
    assert sorted(step.agent for step in answers) == sorted(AGENTS)
    of_agent = {step.agent: step for step in answers}
    (root,) = recorded.named(semconv.INVOKE_WORKFLOW)
    (task,) = root.attributes[semconv.INPUT_MESSAGE_IDS]
    assert len({task, *(step.message_id for step in answers)}) == 4
    shown = {turn.agent: turn.input_ids for turn in run.invocations}
    in_order = [task, *(of_agent[agent].message_id for agent in AGENTS)]
    if whose:
        assert shown["clerk"] == tuple(in_order)
    else:
        assert shown["clerk"][0] == task
        assert sorted(shown["clerk"]) == sorted(in_order)
    for place, agent in enumerate(AGENTS):
        seen = in_order[:1] if parallel else in_order[: place + 1]
        assert shown[agent] == tuple(seen)
        assert of_agent[agent].in_reply_to == seen[-1]
        assert of_agent[agent].content_hash == answers[0].content_hash
    turns = {turn.agent: turn.output_id for turn in run.invocations if turn.kind == "agent"}
    assert {agent: turns[agent] for agent in AGENTS} == {
        agent: step.message_id for agent, step in of_agent.items()
    }
    for turn in run.invocations:
        assert [message.content for message in run.seen_by(turn)] == [APPROVED] * len(
            turn.input_ids
        )


@pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "at once"])
@pytest.mark.parametrize(
    "given", [("user", APPROVED), HumanMessage(APPROVED)], ids=["pair", "object"]
)
@pytest.mark.parametrize("way", WAYS)
def test_that_approve_what_the_user_approved(
    recorded: RecordedSpans, way: str, given: Any, *, parallel: bool
) -> None:
    if isinstance(given, HumanMessage):
        given = given.model_copy()
    team(MessagesState, WAYS[way], parallel=parallel).invoke({"messages": [given]})
    # The reducer makes another object of a dictionary, in the order of nodes and not of their ends.
    check(recorded, parallel=parallel, whose=not (parallel and way == "as dict"))


@pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "at once"])
def test_whose_messages_get_no_ids(recorded: RecordedSpans, *, parallel: bool) -> None:
    """A state that only appends leaves them without."""
    graph = team(PlainState, fresh, parallel=parallel)
    graph.invoke({"messages": [HumanMessage(APPROVED)]})
    check(recorded, parallel=parallel)


def test_whose_models_approve(recorded: RecordedSpans, models: Any) -> None:
    """A model's answer and the message that its agent makes of it are one."""
    model = models(lambda _request: APPROVED)

    def rewrap(state: Any, name: str) -> Any:
        return HumanMessage(model.invoke(state["messages"]).content, name=name)

    team(MessagesState, rewrap, parallel=False).invoke({"messages": [("user", APPROVED)]})
    check(recorded, parallel=False)
    run = recorded.trajectory()
    answers = [call.output_id for call in run.invocations if call.kind == "model"]
    assert answers == [step.message_id for step in run.steps if step.text == APPROVED]
    assert len(run.steps) == 4


async def test_whose_models_approve_at_once(recorded: RecordedSpans, models: Any) -> None:
    """The answer of each becomes its own message, whoever is done first."""
    model = models(lambda _request: APPROVED)
    graph = StateGraph(MessagesState)

    def node(name: str, place: int) -> Any:
        async def speak(state: Any) -> Any:
            answer = await model.ainvoke(state["messages"])
            await asyncio.sleep(0.02 * (len(AGENTS) - place))
            return {"messages": [answer]}

        graph.add_node(name, speak)
        graph.add_edge(START, name)

    for place, name in enumerate(AGENTS):
        node(name, place)
    graph.add_node("clerk", lambda _: {"messages": [AIMessage("All of them approved.")]})
    graph.add_edge(AGENTS, "clerk")
    await graph.compile(name="approvals").ainvoke({"messages": [("user", APPROVED)]})
    check(recorded, parallel=True)
    run = recorded.trajectory()
    answers = {call.agent: call.output_id for call in run.invocations if call.kind == "model"}
    assert answers == {s.agent: s.message_id for s in run.steps if s.text == APPROVED}
