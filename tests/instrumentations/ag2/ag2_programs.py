"""Programs on the real AG2, with the scripted server as their model.

Each takes the server's URL and returns what the program computed, so that runs with and without
instrumentation can be compared.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ag2 import Agent, Context, TaskConfig, tool
from ag2.config import OpenAIConfig
from ag2.knowledge import MemoryKnowledgeStore
from ag2.network import Finish, Handoff, Hub
from ag2.network.transitions import (
    AgentTarget,
    FromSpeaker,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
)
from scripted_llm import Call, Reply, ScriptedLLM, last_text, messages_of, system_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ag2.network import AgentClient


def model(url: str, *, streaming: bool = False) -> OpenAIConfig:
    """The scripted model."""
    return OpenAIConfig(
        model="scripted", base_url=url, api_key="scripted", streaming=streaming, max_retries=0
    )


async def serve(program: Callable[[str], Any], script: Callable[[dict[str, Any]], Any]) -> Any:
    """Run a program to its end against its model."""
    with ScriptedLLM(script) as server:
        return await program(server.url)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def look_up(key: str) -> str:
    """Look something up."""
    await asyncio.sleep(0)
    return f"value of {key}"


@tool
def boom() -> str:
    """Fail."""
    raise ValueError("out of order")


# -- one agent --------------------------------------------------------------------------------------


def tools_script(request: dict[str, Any]) -> Reply | str:
    """Ask for four calls at once, one of them unknown, then answer."""
    if messages_of(request)[-1]["role"] == "user":
        calls = (
            Call("add", {"a": 2, "b": 3}),
            Call("boom"),
            Call("no_such_tool", {"x": 1}),
            Call("look_up", {"key": "k"}),
        )
        return Reply(calls=calls)
    return "The sum is 5."


async def tools(url: str, *, streaming: bool = False) -> str | None:
    """One agent with parallel, raising, unknown, sync and async tools."""
    agent = Agent(
        "solver",
        prompt="Solve it.",
        config=model(url, streaming=streaming),
        tools=[add, boom, look_up],
    )
    return (await agent.ask("What is 2 + 3?")).body


def bad_json_script(_request: dict[str, Any]) -> Reply | str:
    """Ask for a call whose arguments are no JSON."""
    return Reply(calls=(Call("add", '{"a": 2, '),))


async def bad_json(url: str) -> str:
    """AG2 cannot send malformed arguments back to the model: the turn fails."""
    agent = Agent("solver", config=model(url), tools=[add])
    try:
        await agent.ask("What is 2 + 3?")
    except json.JSONDecodeError as error:
        return f"failed: {error.msg}"
    return "no failure"


async def model_error(url: str) -> str:
    """The model answers with an error."""
    agent = Agent("solver", config=model(url))
    try:
        await agent.ask("Hello?")
    except Exception as error:
        return type(error).__name__
    return "no failure"


async def two_questions(url: str) -> list[str | None]:
    """A question and a follow-up on its reply."""
    agent = Agent("solver", prompt="Solve it.", config=model(url))
    first = await agent.ask("First question")
    second = await first.ask("Second question")
    return [first.body, second.body]


async def observed_run(url: str) -> tuple[str | None, list[str]]:
    """A streamed turn that the program watches event by event."""
    agent = Agent("solver", config=model(url, streaming=True), tools=[add, boom, look_up])
    seen: list[str] = []
    async with agent.run("What is 2 + 3?") as run:
        run.stream.subscribe(lambda event: seen.append(type(event).__name__))
        reply = await run.result()
    return reply.body, seen


def human_script(request: dict[str, Any]) -> Reply | str:
    """Call the tool that asks a human, then answer with what it returned."""
    if messages_of(request)[-1]["role"] == "user":
        return Reply(calls=(Call("confirm", {"what": "delete"}),))
    return f"Done: {last_text(request)}"


async def human(url: str) -> str | None:
    """A tool asks a human before it goes on."""

    @tool
    async def confirm(what: str, ctx: Context) -> str:
        """Confirm something."""
        return await ctx.input(f"May I {what}?")

    agent = Agent("careful", config=model(url), tools=[confirm], hitl_hook=lambda event: "yes")
    return (await agent.ask("Delete the file")).body


# -- agents that call agents ------------------------------------------------------------------------


def as_tool_script(request: dict[str, Any]) -> Reply | str:
    """The lead delegates to the researcher, who adds."""
    if "lead" in system_text(request):
        if messages_of(request)[-1]["role"] == "user":
            return Reply(calls=(Call("task_researcher", {"objective": "add 2 and 3"}),))
        return "The researcher says 5."
    if messages_of(request)[-1]["role"] == "user":
        return Reply(calls=(Call("add", {"a": 2, "b": 3}),))
    return "It is 5."


async def as_tool(url: str) -> str | None:
    """An agent is another one's tool."""
    researcher = Agent("researcher", prompt="You are the helper.", config=model(url), tools=[add])
    lead = Agent(
        "lead",
        prompt="You are the lead.",
        config=model(url),
        tools=[researcher.as_tool(description="does research")],
    )
    return (await lead.ask("What is 2 + 3?")).body


def subtasks_script(request: dict[str, Any]) -> Reply | str:
    """The planner starts two sub-tasks at once; each answers its objective."""
    if "planner" in system_text(request):
        if messages_of(request)[-1]["role"] == "user":
            return Reply(calls=(Call("run_subtasks", {"tasks": ["one", "two"]}),))
        return "Both are done."
    return f"done {last_text(request)}"


async def subtasks(url: str) -> str | None:
    """An agent splits its work."""
    planner = Agent(
        "planner",
        prompt="You are the planner.",
        config=model(url),
        tasks=TaskConfig(prompt="You are a worker."),
    )
    return (await planner.ask("Do it")).body


def person(name: str, url: str, tools: tuple[Any, ...] = ()) -> Agent:
    """An agent that its script knows by name."""
    return Agent(name, prompt=f"You are {name}.", config=model(url), tools=list(tools))


# -- channels ---------------------------------------------------------------------------------------


@asynccontextmanager
async def network(*agents: Agent) -> AsyncIterator[tuple[Hub, list[AgentClient]]]:
    """A hub with these agents."""
    hub = await Hub.open(MemoryKnowledgeStore(), expectation_sweep_interval=0)
    try:
        yield hub, [await hub.register(agent) for agent in agents]
    finally:
        await hub.close()


@asynccontextmanager
async def two(url: str, tools: Any = ()) -> AsyncIterator[tuple[Hub, list[AgentClient]]]:
    """A hub with Alice, and Bob who has tools."""
    async with network(person("alice", url), person("bob", url, tools)) as found:
        yield found


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something that happens in the hub's tasks; the test's own timeout is the limit."""
    while not condition():  # noqa: ASYNC110  # AG2 offers nothing to wait on
        await asyncio.sleep(0.005)


async def transcript(hub: Hub, channel_id: str) -> list[str]:
    """Return the messages of a channel, as the hub keeps them."""
    return [
        f"{hub.name_for(e.sender_id)}: {e.event_data.get('text') or e.event_data.get('body')}"
        for e in await hub.read_wal(channel_id)
        if e.event_type in {"ag2.msg.text", "ag2.packet"}
    ]


def conversation_script(request: dict[str, Any]) -> Reply | str:
    """Bob answers, Alice closes, Bob has nothing to add."""
    if "You are bob" in system_text(request):
        return "Hello Alice." if last_text(request) == "Hello Bob." else ""
    return "Good bye."


async def conversation(url: str) -> list[str]:
    """Two agents talk until one is silent; the program closes the channel."""
    alice, bob = person("alice", url), person("bob", url)
    async with network(alice, bob) as (hub, (a, _b)):
        channel = await a.open(type="conversation", target="bob")
        await channel.send("Hello Bob.")
        await silence(hub, channel.channel_id, 3)
        await channel.close()
        return await transcript(hub, channel.channel_id)


async def silence(hub: Hub, channel_id: str, messages: int) -> None:
    """Wait for so many messages, and for the receivers of the last one to be done with it."""

    def quiet() -> bool:
        state = hub.adapter_state(channel_id)
        if state.turn_count < messages:
            return False
        members = [p.agent_id for p in hub._channels[channel_id].participants]
        return all(
            hub._inbox_cursors.get(member, {}).get(channel_id, "") >= state.last_envelope_id
            for member in members
            if member != state.last_speaker_id
        )

    await until(quiet)


async def closed(hub: Hub, channel_id: str) -> None:
    """Wait for a channel that closes itself."""
    await until(hub._channels[channel_id].is_terminal)


async def consulting(url: str) -> list[str]:
    """One question, one answer; the channel closes itself."""
    alice, bob = person("alice", url), person("bob", url)
    async with network(alice, bob) as (hub, (a, _b)):
        channel = await a.open(type="consulting", target="bob")
        await channel.send("What is 2 + 3?")
        await closed(hub, channel.channel_id)
        return await transcript(hub, channel.channel_id)


def discussion_script(request: dict[str, Any]) -> Reply | str:
    """Each says one thing; whoever has the third word is silent."""
    system = system_text(request)
    if "You are bob" in system:
        return "I think so too."
    if "You are carol" in system:
        return "I disagree."
    return ""


async def discussion(url: str) -> list[str]:
    """Three agents in turn."""
    agents = [person(name, url) for name in ("alice", "bob", "carol")]
    async with network(*agents) as (hub, (a, _b, _c)):
        channel = await a.open(type="discussion", target=["bob", "carol"])
        await channel.send("Is it raining?")
        await silence(hub, channel.channel_id, 3)
        await channel.close(reason="enough")
        return await transcript(hub, channel.channel_id)


def workflow_script(request: dict[str, Any]) -> Reply | str:
    """Triage hands over to the coder, the coder to the reviewer, who finishes."""
    system, last = system_text(request), messages_of(request)[-1]
    fresh = last["role"] == "user"
    if "You are triage" in system:
        return Reply(calls=(Call("route", {"to": "coder"}),)) if fresh else "Over to the coder."
    if "You are coder" in system:
        return Reply(calls=(Call("to_review", {"reason": "ready"}),)) if fresh else "print(5)"
    return Reply(calls=(Call("finish", {"summary": "all good"}),)) if fresh else "Looks good."


async def workflow(url: str) -> list[str]:
    """Hand-offs chosen by a tool, by a rule of the graph, and an end chosen by a tool."""
    return await works(crew(url))


def crew(url: str) -> list[Agent]:
    """The agents of the workflow."""

    @tool
    def route(to: str) -> Handoff:
        """Hand over."""
        return Handoff(target=to, reason="needs code")

    @tool
    def to_review(reason: str) -> str:
        """Ask for a review."""
        return "ok"

    @tool
    def finish(summary: str) -> Finish:
        """End the work."""
        return Finish(summary=summary)

    return [
        person("customer", url),
        person("triage", url, (route,)),
        person("coder", url, (to_review,)),
        person("reviewer", url, (finish,)),
    ]


async def works(agents: list[Agent]) -> list[str]:
    """Let the agents of the workflow work."""
    async with network(*agents) as (hub, (u, t, _c, r)):
        graph = TransitionGraph(
            initial_speaker=u.agent_id,
            transitions=[
                Transition(when=FromSpeaker(u.agent_id), then=AgentTarget(t.agent_id)),
                Transition(when=ToolCalled("to_review"), then=AgentTarget(r.agent_id)),
            ],
            default_target=TerminateTarget(),
            max_turns=10,
        )
        channel = await u.open(
            type="workflow",
            target=["triage", "coder", "reviewer"],
            intent="write a\n  program",
            knobs={"graph": graph.to_dict()},
        )
        await channel.send("Print the sum of 2 and 3.")
        await closed(hub, channel.channel_id)
        return await transcript(hub, channel.channel_id)


async def round_robin(url: str) -> list[str]:
    """A workflow that its limit of turns ends."""
    agents = [person(name, url) for name in ("alice", "bob")]
    async with network(*agents) as (hub, (a, b)):
        graph = TransitionGraph.round_robin([a.agent_id, b.agent_id], max_turns=3)
        channel = await a.open(type="workflow", target="bob", knobs={"graph": graph.to_dict()})
        await channel.send("Ping")
        await closed(hub, channel.channel_id)
        return await transcript(hub, channel.channel_id)


def delegate_script(request: dict[str, Any]) -> Reply | str:
    """Alice consults Bob within her turn."""
    if "You are bob" in system_text(request):
        return "Bob says 5."
    if messages_of(request)[-1]["role"] == "user":
        return Reply(calls=(Call("delegate", {"target": "bob", "prompt": "What is 2 + 3?"}),))
    return "It is 5, says Bob."


async def delegate(url: str) -> str | None:
    """An agent asked from outside consults another one over the hub."""
    alice, bob = person("alice", url), person("bob", url)
    async with network(alice, bob) as (_hub, _clients):
        return (await alice.ask("What is 2 + 3?")).body


def failing_script(request: dict[str, Any]) -> Reply | str:
    """Bob's model is out of order."""
    return Reply("down", status=500)


async def network_failure(url: str) -> list[str]:
    """A model fails inside a channel: AG2 logs it and the channel goes on."""
    failures: list[str] = []

    class Listener:
        async def on_turn_failed(self, *event: Any) -> None:
            failures.append(type(event[3]).__name__)

    alice, bob = person("alice", url), person("bob", url)
    async with network(alice, bob) as (hub, (a, _b)):
        hub.register_listener(Listener())
        channel = await a.open(type="conversation", target="bob")
        await channel.send("Hello Bob.")
        await until(lambda: failures)
        await channel.close()
        return [*failures, *await transcript(hub, channel.channel_id)]
