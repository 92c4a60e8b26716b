"""CrewAI keeps the facts of every framework."""

# ruff: noqa: RUF012  # the contracts annotate their attributes
from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai
import crewai_programs as programs  # sets CrewAI's surroundings before it is imported
import stock
from contract.examples import ExampleContract
from contract.frameworks import FrameworkContract, Program
from contract.planted import PlantedContract
from crewai import Agent, Crew, Task
from crewai.flow.flow import Flow, start
from crewai.tools import tool
from scripted_llm import Call, Reply, messages_of, system_text

from mast_trace_instrumentations.crewai import CrewAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.framework("crewai")

IS_OLD = crewai.__version__.startswith("0.")
HAS_AKICKOFF = hasattr(Crew, "akickoff")
STREAMS = "stream" in Crew.model_fields
THEIRS = ("openinference.instrumentation", "opentelemetry.instrumentation")
ROUNDS = 3
MODEL = "openai/gpt-4o" if IS_OLD else "gpt-4o"
# CrewAI 0.x asks for tools in text, one at a time.
TOOLS = "" if IS_OLD else "broken !\n    execute_tool "

EXPECTED = (
    "\n\nThis is the expected criteria for your final answer: a {}\n"
    "you MUST return the actual complete content as the final answer, not a summary."
)
GIVEN = "\n\nThis is the context you're working with:\nParis has 2.1 million people."


class Addressed:
    """The address of a server, as the programs take it."""

    def __init__(self, url: str) -> None:
        self.url = url


def at(make: Callable[..., Crew], **options: Any) -> Callable[[str], Any]:
    """Return a program that kicks a crew off."""
    return lambda url: make(Addressed(url), **options).kickoff().raw


def team(url: str, **options: Any) -> Crew:
    """Return the team, its models with such options."""
    server = Addressed(url)
    return programs.team(server, model=programs.llm(server, **options))


def streamed(url: str) -> Any:
    return team(url, stream=True).kickoff().raw


async def awaited(url: str, method: str = "kickoff_async", **options: Any) -> Any:
    return (await getattr(team(url, **options), method)()).raw


def in_pieces(url: str) -> Any:
    """Read a crew that streams to its end."""
    output = programs.team(Addressed(url), stream=True).kickoff()
    list(output)
    return output.result.raw


async def in_awaited_pieces(url: str, method: str) -> Any:
    output = await getattr(programs.team(Addressed(url), stream=True), method)()
    async for _ in output:
        pass
    return output.result.raw


def with_tasks_in_threads(url: str) -> Any:
    crew = team(url)
    crew.tasks[0].async_execution = True
    return crew.kickoff().raw


def with_a_time_limit(url: str) -> Any:
    """CrewAI watches the clock from another thread."""
    crew = team(url)
    for agent in crew.agents:
        agent.max_execution_time = 60
    return crew.kickoff().raw


def guarded(url: str) -> Any:
    def number_given(output):  # CrewAI reads annotations, and these are texts
        return ("million" in output.raw, output.raw if "million" in output.raw else "a number!")

    return programs.solo(Addressed(url), guardrail=number_given).kickoff().raw


def counting(request: dict[str, Any]) -> Reply | str:
    """The researcher looks two cities up in each round, then reports; the writer writes."""
    if "You are Writer" in system_text(request):
        return programs.final(request, "Many people.")
    told = str(messages_of(request)).count("2.1 million")
    if told >= ROUNDS:
        return programs.final(request, "All have 2.1 million.")
    calls = (Call("lookup", {"city": f"{kind} {told}"}) for kind in ("city", "town"))
    return programs.use(request, *calls)


def by_itself(url: str) -> Any:
    """An agent without a crew."""
    model = programs.llm(Addressed(url))
    agent = Agent(role="Solo", goal="x", backstory="x", llm=model, tools=[programs.lookup])
    return agent.kickoff("Find out").raw


async def side_by_side(url: str) -> Any:
    """Messages of one call are never taken for those of another."""
    return await asyncio.gather(*(awaited(url) for _ in range(3)))


HISTORY = [
    {"role": "user", "content": "How many live in Rome?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "lookup", "arguments": '{"city": "Rome"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "2.8 million"},
]
"""A history with a tool call, given to a model outside of any agent."""


class TestContract(FrameworkContract):
    """Two agents in sequence, of which the first calls a tool that works and one that fails."""

    instrumentor = CrewAIInstrumentor
    main = Program(at(programs.team), programs.team_script)
    awaited = staticmethod(awaited)
    ways = {
        "awaited": awaited,
        "streamed": streamed,
        "tasks in threads": with_tasks_in_threads,
        "time limit": with_a_time_limit,
        **({"akickoff": partial(awaited, method="akickoff")} if HAS_AKICKOFF else {}),
        **(
            {
                "in pieces": in_pieces,
                "in awaited pieces": partial(in_awaited_pieces, method="kickoff_async"),
                "in pieces of akickoff": partial(in_awaited_pieces, method="akickoff"),
            }
            if STREAMS
            else {}
        ),
    }
    counted = ("main", "streamed", "awaited")
    others = {
        "hierarchy": Program(at(programs.managed), programs.managed_script),
        "unknown coworker": Program(at(programs.delegating), programs.delegating_script("Nobody")),
        "guarded": Program(guarded, lambda request: programs.final(request, "2.1 million")),
        "refused tool": Program(
            at(programs.solo, tools=(programs.lookup,)),
            programs.calling_script(Call("no_such_tool", {})),
        ),
        "failing": Program(
            at(programs.solo, max_retry_limit=0), lambda _: Reply("no such model", status=400)
        ),
    }
    failing = others["failing"]
    received = {
        "rounds": Program(main.run, counting),
        "streamed rounds": Program(streamed, counting),
        "awaited rounds": Program(awaited, counting),
        "awaited streamed rounds": Program(partial(awaited, stream=True), counting),
        **(
            {
                "akickoff": Program(partial(awaited, method="akickoff"), counting),
                "streamed akickoff": Program(
                    partial(awaited, method="akickoff", stream=True), counting
                ),
            }
            if HAS_AKICKOFF
            else {}
        ),
        "by itself": Program(by_itself, counting),
        "delegation": Program(at(programs.delegating), programs.delegating_script("Researcher")),
        "side by side": Program(side_by_side, counting),
        "history": Program(
            lambda url: programs.llm(Addressed(url)).call(HISTORY), lambda _: "2.8 million."
        ),
    }
    in_order = False
    leaves_files = True
    calls_tools = not IS_OLD
    absent = () if installed("litellm") else ("litellm",)
    peers = {
        module.partition(".")[0]: (
            (f"{module}.crewai", "CrewAIInstrumentor"),
            (f"{module}.openai", "OpenAIInstrumentor"),
        )
        for module in THEIRS
    }
    lost = {
        "crewai.events.event_bus:CrewAIEventsBus.emit": ["chat", "invoke_agent", "send_message"]
    }
    sent = (
        ("user", ("Researcher",), f"Find the population of Paris{EXPECTED.format('number')}"),
        ("Researcher", ("Writer",), "Paris has 2.1 million people."),
        ("user", ("Writer",), f"Write one line{EXPECTED.format('line')}{GIVEN}"),
        ("Writer", ("user",), "Paris: 2.1 million inhabitants."),
    )
    tree = f"""
invoke_workflow city
  invoke_agent Researcher
    chat {MODEL}
    chat {MODEL}
    execute_tool {TOOLS}lookup
    send_message Researcher
  invoke_agent Writer
    chat {MODEL}
    send_message Writer
  send_message user
  send_message user"""

    def built(self, url: str) -> Callable[[], Any]:
        crew = team(url)
        return lambda: crew.kickoff().raw

    def cancellable(self) -> Callable[[str], Any]:
        if not HAS_AKICKOFF:
            pytest.skip("this version runs crews in threads, which go on")
        return partial(awaited, method="akickoff")

    def raising(self, error: Exception) -> Any:
        """A step of a flow."""

        class Failing(Flow):
            @start()
            def fail(self) -> None:
                raise error

        Failing().kickoff()


class TestExample(ExampleContract):
    """The example program."""

    framework = "crewai"
    example = "crewai_stock.py"
    # The script calls tools natively.
    answers = (
        {}
        if IS_OLD
        else {
            "ordered": "340 will be sold and 130 are there: order 210 kettles.",
            "ignored-stock": "340 will be sold in four weeks: order 340 kettles.",
        }
    )
    replayed = tuple(answers)
    # Recorded with this version's prompts.
    earlier = ("ignored-stock",) if crewai.__version__.startswith("1.15.") else ()
    person = ((Path(__file__).parent / "crewai_person.py", "Be shorter.\n\n"),)
    # CrewAI 0.x asks for tools in text, which the page's model does not.
    page = (("how-to/crewai.md", "Clerk", [] if IS_OLD else ["price_of"]),)
    covered = not IS_OLD


@pytest.mark.skipif(IS_OLD, reason="the script calls tools natively")
class TestPlanted(PlantedContract):
    """A crew with three tasks in sequence; the buyer is shown what the others report."""

    def program(self, server: Any) -> str:
        model = programs.llm(server)
        tools = {
            "Storekeeper": [tool("count_stock")(stock.count_stock)],
            "Analyst": [tool("weekly_sales")(stock.weekly_sales)],
            "Buyer": [],
        }
        team = [
            Agent(role=name, goal="help", backstory="You know.", tools=tools[name], llm=model)
            for name in stock.AGENTS
        ]
        count, sell = (
            Task(description=what, expected_output="a number", agent=agent)
            for what, agent in zip(
                ("Count the kettles.", "Forecast the sales."), team, strict=False
            )
        )
        order = Task(
            description=stock.TASK, expected_output="a line", agent=team[2], context=[count, sell]
        )
        crew = Crew(name="stock", agents=team, tasks=[count, sell, order])
        return str(crew.kickoff().raw)
