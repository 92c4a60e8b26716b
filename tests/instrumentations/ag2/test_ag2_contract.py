"""AG2 1.x keeps the facts of every framework."""

# ruff: noqa: RUF012  # the contracts annotate their attributes
from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
import stock
from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.knowledge import MemoryKnowledgeStore
from ag2.network import (
    EV_CHANNEL_CLOSED,
    WORKFLOW_TYPE,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    TransitionGraph,
)
from contract.examples import ExampleContract
from contract.frameworks import FrameworkContract, Program
from contract.planted import PlantedContract
from scripted_llm import last_text

from mast_trace_instrumentations.ag2 import AG2Instrumentor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("ag2")


def echo(request: dict[str, Any]) -> str:
    """Answer with the text."""
    return f"reply to {last_text(request)}"


async def observed_run(url: str) -> Any:
    """Parallel tools end in any order: the events of a run are compared as a bag."""
    body, events = await programs.observed_run(url)
    return body, sorted(events)


async def streamed(url: str) -> Any:
    """Let the crew work with models that stream."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "model", partial(programs.model, streaming=True))
        return await programs.workflow(url)


ASKING = {
    "tools": Program(programs.tools, programs.tools_script),
    "two questions": Program(programs.two_questions, echo, runs=2),
    "human": Program(programs.human, programs.human_script),
    "as tool": Program(programs.as_tool, programs.as_tool_script),
    "subtasks": Program(programs.subtasks, programs.subtasks_script),
    "conversation": Program(programs.conversation, programs.conversation_script),
    "discussion": Program(programs.discussion, programs.discussion_script),
    "round robin": Program(programs.round_robin, echo),
    "delegate": Program(programs.delegate, programs.delegate_script),
}
MEMBERS = ("customer", "triage", "coder", "reviewer")


class TestContract(FrameworkContract):
    """A workflow with hand-offs by a tool and by a rule, which a tool ends."""

    instrumentor = AG2Instrumentor
    main = Program(programs.workflow, programs.workflow_script)
    ways = {"streamed": streamed}
    failing = Program(programs.model_error, programs.failing_script)
    others = {
        **ASKING,
        "bad json": Program(programs.bad_json, programs.bad_json_script),
        "model error": failing,
        "observed run": Program(observed_run, programs.tools_script),
        "consulting": Program(programs.consulting, echo),
        "network failure": Program(programs.network_failure, programs.failing_script),
    }
    received = {
        **ASKING,
        "streamed tools": Program(partial(programs.tools, streaming=True), programs.tools_script),
    }
    joined_by = "\n"
    in_order = False
    lost = {
        "ag2.agent:Agent._turn_scope": ["chat", "invoke_agent"],
        "ag2.tools.executor:_execute_call": ["execute_tool"],
        "ag2.network.hub.core:Hub._dispatch": ["send_message"],
    }
    sent = tuple(
        (name, tuple(each for each in MEMBERS if each != name), text)
        for name, text in zip(
            MEMBERS,
            ("Print the sum of 2 and 3.", "Over to the coder.", "print(5)", "Looks good."),
            strict=True,
        )
    )
    tree = """
invoke_workflow write a program
  invoke_agent coder
    chat scripted
    chat scripted
    execute_tool to_review
  invoke_agent reviewer
    chat scripted
    chat scripted
    execute_tool finish
  invoke_agent triage
    chat scripted
    chat scripted
    execute_tool route
  send_message coder
  send_message customer
  send_message reviewer
  send_message triage"""

    def asked(self, requests: Sequence[dict[str, Any]]) -> Any:
        """Return requests without what differs from run to run: random ids, and tracebacks' lines."""
        return sorted(
            repr(
                [
                    (m["role"], (m.get("content") or "")[:30], len(m.get("tool_calls") or ()))
                    for m in request["messages"]
                ]
            )
            for request in requests
        )

    def built(self, url: str) -> Callable[[], Any]:
        agents = programs.crew(url)
        return lambda: programs.works(agents)

    def cancellable(self) -> Callable[[str], Any]:
        return programs.two_questions

    async def raising(self, error: Exception) -> Any:
        """A middleware of the program's own."""

        def broken(_event: Any, _context: Any) -> Any:
            raise error

        config = programs.model("http://127.0.0.1:9/v1")
        await Agent("solver", config=config, middleware=[broken]).ask("What is 2 + 3?")

    def in_threads(self, recorded: RecordedSpans, url: str) -> None:
        """Run three event loops at once.

        AG2 loses a wake-up between loops about once in two hundred times, also when nobody instruments it.
        """

        async def run() -> None:
            await asyncio.wait_for(programs.workflow(url), timeout=30)

        for _ in range(2):
            recorded.exporter.clear()
            try:
                with ThreadPoolExecutor(3) as pool:
                    list(pool.map(lambda _: asyncio.run(run()), range(3)))
            except asyncio.TimeoutError:
                continue
            return


class TestExample(ExampleContract):
    """The example program."""

    framework = "ag2"
    example = "ag2_group_chat.py"
    replayed = ("verified", "misread-price", "early-end")


class TestPlanted(PlantedContract):
    """A group chat, in which every agent speaks once."""

    recording = ("ag2",)

    def program(self, server: Any) -> str:
        return asyncio.run(self.chat(server.url))

    @staticmethod
    async def chat(url: str) -> str:
        """Let the three agents speak once each; return the last one's words."""
        model = OpenAIConfig(model="gpt-small", base_url=url, api_key="scripted")
        tools = {"Storekeeper": [stock.count_stock], "Analyst": [stock.weekly_sales], "Buyer": []}
        hub = await Hub.open(MemoryKnowledgeStore())
        user = await HubClient(LocalLink(hub), hub=hub).register_human(Passport(name="user"))
        team = [
            Agent(name, f"You are {name}.", config=model, tools=tools[name])
            for name in stock.AGENTS
        ]
        members = [await hub.register(agent, attach_plugin=False) for agent in team]
        order = [user.agent_id, *(member.agent_id for member in members)]
        graph = TransitionGraph.round_robin(order, max_turns=4).to_dict()
        channel = await user.open(
            type=WORKFLOW_TYPE, target=order[1:], intent="order kettles", knobs={"graph": graph}
        )
        await channel.send(stock.TASK)
        closed = await user.next_envelope(
            predicate=lambda each: each.event_type == EV_CHANNEL_CLOSED
        )
        said = [each.event_data for each in await hub.read_wal(closed.channel_id)]
        await hub.close()
        return next(text for text in reversed([str(each) for each in said]) if "Order" in text)
