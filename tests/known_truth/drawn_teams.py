"""Eight teams whose model draws its inputs, wordings, order of calls and rare branches, and errs where it is told.

Two stories, told by LangGraph, AG2, AG2 classic, CrewAI, MetaGPT and by hand::

    python tests/known_truth/drawn_teams.py stock by_hand 3     # records run 3, and prints its steps
    python tests/known_truth/drawn_teams.py stock by_hand 3 1   # with the second of the story's ten errors
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS.parent / "examples")]

from known_truth.drawn_stories import Drawn, Refund, Stock, Story
from scripted_llm import Reply, ScriptedLLM, system_text

import mast_trace
from mast_trace.captured_spans import capture_spans

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace.trajectory import Trajectory

TEAMS: Final = (
    (Stock, "langgraph"),
    (Stock, "ag2"),
    (Stock, "crewai"),
    (Stock, "metagpt"),
    (Stock, "by_hand"),
    (Refund, "langgraph"),
    (Refund, "autogen"),
    (Refund, "by_hand"),
)


class Model:
    """Answers each agent by what its part of the story does next."""

    def __init__(self, story: Story) -> None:
        self._parts = {role: getattr(story, role)() for role in story.roles}

    def __call__(self, request: dict[str, Any]) -> Reply:
        """Answer a request."""
        prompt = system_text(request)
        role = min((each for each in self._parts if each in prompt), key=prompt.find)
        return next(self._parts[role])


def prompt_of(role: str) -> str:
    """Return the system prompt of an agent."""
    return f"You are the {role} of the team. Do your part, and report it in a sentence."


TOOLS: Final = """
def count_stock(item: str) -> str
def count_reserved(item: str) -> str
def weekly_sales(item: str) -> str
def check_supplier(supplier: str) -> str
def place_order(item: str, supplier: str, pieces: int) -> str
def find_order(order: str) -> str
def find_customer(customer: str) -> str
def refund_policy(reason: str) -> str
def fraud_check(customer: str) -> str
def pay_refund(order: str, amount: float) -> str
def read_handbook(topic: str) -> str
def read_calendar(month: int) -> str
"""
"""The tools of all agents. The frameworks read their arguments and types."""


def functions(story: Story, role: str) -> list[Callable[..., str]]:
    """Return the tools of an agent."""
    names = {*story.roles[role], "read_handbook", "read_calendar"}
    found: dict[str, Any] = {"call": story.call}
    for line in TOOLS.split("\n"):
        name = line.removeprefix("def ").partition("(")[0]
        if name in names:
            about = name.replace("_", " ").capitalize()
            exec(f'{line}:\n    "{about}."\n    return call("{name}", locals())', found)
    return [found[each] for each in sorted(names)]


def by_hand(story: Story) -> None:
    """Run the team on the OpenAI client alone."""
    import openai

    client, said = openai.OpenAI(max_retries=0), [story.task]
    with mast_trace.run(story.name, input=story.task):
        for role in story.roles:
            tools = {each.__name__: mast_trace.tool(each) for each in functions(story, role)}
            messages: list[Any] = [{"role": "system", "content": prompt_of(role)}]
            messages += [{"role": "user", "content": text} for text in said]
            with mast_trace.agent(role) as agent:
                while True:
                    made = client.chat.completions.create(model="gpt-5-mini", messages=messages)
                    answer = made.choices[0].message
                    if not answer.tool_calls:
                        break
                    messages.append(answer.model_dump(exclude_none=True))
                    for call in answer.tool_calls:
                        given = json.loads(call.function.arguments)
                        result = tools[call.function.name](**given)
                        told = {"role": "tool", "tool_call_id": call.id, "content": result}
                        messages.append(told)
                said.append(answer.content or "")
                agent.reply(said[-1])


def langgraph(story: Story) -> None:
    """Run the team as a graph of agents."""
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph

    model, graph, last = ChatOpenAI(model="gpt-5-mini"), StateGraph(MessagesState), START
    for role in story.roles:
        tools = [tool(each) for each in functions(story, role)]
        agent = create_agent(model, tools=tools, name=role, system_prompt=prompt_of(role))
        graph.add_node(role, agent)
        graph.add_edge(last, role)
        last = role
    graph.compile(name=story.name).invoke({"messages": [("user", story.task)]})


def ag2(story: Story) -> None:
    """Run the team as a channel in which all speak in turn."""
    asyncio.run(_ag2(story))


async def _ag2(story: Story) -> None:
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

    model = OpenAIConfig(model="gpt-5-mini")
    hub = await Hub.open(MemoryKnowledgeStore())
    user = await HubClient(LocalLink(hub), hub=hub).register_human(Passport(name="user"))
    agents = [
        Agent(role, prompt_of(role), config=model, tools=functions(story, role))
        for role in story.roles
    ]
    members = [await hub.register(agent, attach_plugin=False) for agent in agents]
    order = [user.agent_id, *(member.agent_id for member in members)]
    graph = TransitionGraph.round_robin(order, max_turns=len(order))
    channel = await user.open(
        type=WORKFLOW_TYPE,
        target=order[1:],
        intent=story.name,
        knobs={"graph": graph.to_dict()},
    )
    await channel.send(story.task)
    await user.next_envelope(predicate=lambda each: each.event_type == EV_CHANNEL_CLOSED)
    await hub.close()


def autogen(story: Story) -> None:
    """Run the team as a group chat of AG2's classic API."""
    from autogen import ConversableAgent
    from autogen.agentchat import initiate_group_chat
    from autogen.agentchat.group import AgentTarget, TerminateTarget
    from autogen.agentchat.group.patterns import DefaultPattern

    server = {"base_url": os.environ["OPENAI_BASE_URL"], "api_key": "scripted"}
    model = {"config_list": [{"model": "gpt-5-mini", **server}], "cache_seed": None}
    agents = [
        ConversableAgent(
            role,
            system_message=prompt_of(role),
            llm_config=model,
            functions=functions(story, role),
            human_input_mode="NEVER",
        )
        for role in story.roles
    ]
    for one, other in itertools.pairwise(agents):
        one.handoffs.set_after_work(AgentTarget(other))
    pattern = DefaultPattern(
        initial_agent=agents[0], agents=agents, group_after_work=TerminateTarget()
    )
    initiate_group_chat(pattern, story.task, max_rounds=40)


def crewai(story: Story) -> None:
    """Run the team as a crew."""
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    model = LLM(model="openai/gpt-5-mini", base_url=os.environ["OPENAI_BASE_URL"])
    tasks: list[Any] = []
    for role in story.roles:
        tools = [tool(each.__name__)(each) for each in functions(story, role)]
        agent = Agent(role=role, goal="do your part", backstory="long", tools=tools, llm=model)
        tasks.append(
            Task(
                description=story.task, expected_output="a sentence", agent=agent, context=[*tasks]
            )
        )
    Crew(name=story.name, agents=[each.agent for each in tasks], tasks=tasks).kickoff()


def metagpt(story: Story) -> None:
    """Run the team as roles that watch each other; MetaGPT reads its settings while it is imported."""
    server = {"base_url": os.environ["OPENAI_BASE_URL"], "api_key": "scripted"}
    settings = {"llm": {"api_type": "openai", "model": "gpt-5-mini", **server, "stream": False}}
    file = Path(os.environ["METAGPT_PROJECT_ROOT"]) / "config" / "config2.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings))  # JSON is YAML
    from metagpt.actions import Action
    from metagpt.actions.add_requirement import UserRequirement
    from metagpt.context import Context
    from metagpt.environment import Environment
    from metagpt.roles.role import Role
    from metagpt.schema import Message
    from metagpt.team import Team

    context = Context()
    context.config.llm.base_url = server["base_url"]
    watched: type[Action] = UserRequirement
    roles = []
    for each in story.roles:
        tools = {one.__name__: mast_trace.tool(one) for one in functions(story, each)}

        class Work(Action):
            """Ask the model, which asks for tools in JSON."""

            async def run(self, shown: str, tools: Any = tools, role: str = each) -> str:
                while True:
                    told = await self._aask(shown, [prompt_of(role)])
                    if not told.startswith("{"):
                        return told
                    asked = json.loads(told)
                    result = tools[asked["tool"]](**asked["arguments"])
                    shown = f"{shown}\n\n{told}\n\n{result}"

        class Worker(Role):
            """Does its part."""

            goal: str = "do its part"

            async def _act(self) -> Message:
                shown = "\n\n".join(one.content for one in self.rc.memory.get())
                said = await self.rc.todo.run(shown)
                return Message(said, role=self.profile, cause_by=type(self.rc.todo))

        made = type(f"Work{each.title()}", (Work,), {"__module__": __name__})
        role = Worker(name=each, profile=each, context=context)
        role.set_actions([made])
        role._watch([watched])
        watched = made
        roles.append(role)
    team = Team(context=context, env=Environment(context=context))
    team.hire(roles)
    team.invest(3.0)
    team.run_project(story.task)
    asyncio.run(team.run(n_round=len(roles) + 1))


def as_text(model: Model) -> Callable[[dict[str, Any]], Reply]:
    """Return a model that asks for tools in JSON, for programs that call them by themselves."""

    def answer(request: dict[str, Any]) -> Reply:
        reply = model(request)
        asked = [{"tool": each.name, "arguments": each.arguments} for each in reply.calls]
        return Reply(json.dumps(asked[0])) if asked else reply

    return answer


def record(
    kind: type[Story], framework: str, number: int, error: int = -1
) -> tuple[Trajectory, frozenset[int]]:
    """Record a run; return it, and the index of its decisive step, none for a healthy run.

    An answer that asks for a tool in a text of its own makes two steps: both are the decisive one.

    Args:
        kind: of story.
        framework: in which it is told.
        number: of the run, which decides what is drawn.
        error: the number of an error; -1 for none.

    Raises:
        AssertionError: the run is not recorded as one, or its error is not found in it.
    """
    drawn = Drawn(Random(f"drawn {kind.name} {framework} {number} {error}"), error, 1 + number % 2)
    story = kind(drawn)
    model = as_text(Model(story)) if framework == "metagpt" else Model(story)
    with ScriptedLLM(model) as server:
        os.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="scripted")
        with capture_spans(capture_content="full", service_name=kind.name) as spans:
            globals()[framework](story)
        (run,) = spans.trajectories()
    return run, decisive(run, drawn)


def decisive(run: Trajectory, drawn: Drawn) -> frozenset[int]:
    """Return the index of the step at which the error was made, with that of the message that asks for it.

    Raises:
        AssertionError: no step has it.
    """
    told, times = drawn.wrong
    if not told:
        return frozenset()
    found = [
        each.index
        for each in run.steps
        if told == each.tool or (told in each.text and not each.tool and told not in TOOLS)
    ]
    assert len(found) > times, (told, run.steps)
    at = found[times]
    asks = at and run.steps[at].tool and run.steps[at].tool in run.steps[at - 1].text
    return frozenset({at, at - 1} if asks else {at})


def main() -> None:
    """Record a run and print its steps."""
    name, framework, number, *error = sys.argv[1:]
    (kind,) = {each for each, _ in TEAMS if each.name == name}
    run, at = record(kind, framework, int(number), int(error[0]) if error else -1)
    for step in run.steps:
        sign = "*" if step.index in at else " "
        sys.stdout.write(f"{sign} {step.index} {step.agent} {step.tool} {step.text[:90]}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("METAGPT_PROJECT_ROOT", folder)
        main()
