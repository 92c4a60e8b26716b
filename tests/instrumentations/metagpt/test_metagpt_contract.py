"""MetaGPT keeps the facts of every framework."""

# ruff: noqa: RUF012  # the contracts annotate their attributes
from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import metagpt_programs as programs  # sets MetaGPT's surroundings before it is imported
import stock
from contract.examples import ExampleContract
from contract.frameworks import FrameworkContract, Program, out_of_order
from contract.planted import PlantedContract
from metagpt.context import Context
from metagpt_programs import CODE, Action, Message, Role, UserRequirement
from scripted_llm import Call, Reply

from mast_trace_instrumentations.metagpt import MetaGPTInstrumentor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.framework("metagpt")

HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "Print the sum."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'},
            }
            for number in range(2)
        ],
    },
    {"role": "tool", "tool_call_id": "call_0", "content": "5"},
    {"role": "tool", "tool_call_id": "call_1", "content": "5"},
]


@contextmanager
def serving(script: Any) -> Iterator[Any]:
    """MetaGPT reads the address of its model once: one server follows all scripts."""
    with programs.model as server:
        server.follow(script)
        yield server


async def run(made: Any, *, rounds: int = 4, budget: float = 3.0) -> Any:
    made.invest(budget)
    return await programs.run(made, rounds)


def a_team(*roles: type[Role], **more: Any) -> Callable[[str], Any]:
    """Return a program that runs such a team."""
    return lambda _url: run(programs.team(*(role() for role in roles)), **more)


async def streamed(_url: str) -> Any:
    """Ask models for pieces."""
    asked = Action._aask

    async def ask(self: Action, prompt: str, system_msgs: Any = None) -> str:
        self.llm.config.stream = True
        return await asked(self, prompt, system_msgs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Action, "_aask", ask)
        return await run(programs.team())


async def by_itself(_url: str) -> Any:
    return (await programs.Coder().run(programs.TASK)).content


async def with_calls(_url: str, *, stream: bool) -> Any:
    """The framework sends a history as it is given."""
    return await Context().llm().acompletion_text(HISTORY, stream=stream)


async def asking_for_code(_url: str, asked: Sequence[Any]) -> Any:
    """MetaGPT's one native call; it reads its arguments, and the history goes on without it."""

    class Programmer(programs.Coder):
        """A role that asks for code by a call."""

        async def _act(self) -> Message:
            code = (await self.rc.todo.llm.aask_code(list(asked)))["code"]
            return Message(content=code, role=self.profile, cause_by=type(self.rc.todo))

    return await run(programs.team(Programmer()))


def coding(_request: dict[str, Any]) -> Reply:
    return Reply(calls=(Call("execute", {"language": "python", "code": "print(5)"}),))


class TestContract(FrameworkContract):
    """A coder and a reviewer."""

    instrumentor = MetaGPTInstrumentor
    operations = ("send_message", "invoke_agent", "chat")
    main = Program(a_team(), programs.script)
    ways = {"streamed": streamed}
    others = {
        "too few rounds": Program(a_team(rounds=1), programs.script),
        "no budget": Program(a_team(budget=0.0), programs.script),
        "in order": Program(a_team(programs.TwoSteps), programs.script),
        "by itself": Program(by_itself, programs.script),
        "code": Program(a_team(programs.Runner, rounds=2), programs.script),
        "failing": Program(a_team(), out_of_order),
        "failing by itself": Program(by_itself, out_of_order),
    }
    received = {
        "streamed": Program(streamed, programs.script),
        "calls": Program(partial(with_calls, stream=False), lambda _: "It is 5."),
        "streamed calls": Program(partial(with_calls, stream=True), lambda _: "It is 5."),
        "code by a call": Program(partial(asking_for_code, asked=HISTORY[:1]), coding),
        "code by a call, of messages": Program(
            partial(
                asking_for_code,
                asked=["Print the sum.", Message(content="Of 2 and 3.", role="user")],
            ),
            coding,
        ),
    }
    calls_tools = False
    peers = {
        name: ((f"{name}.instrumentation.openai", "OpenAIInstrumentor"),)
        for name in ("openinference", "opentelemetry")
    }
    sent = (
        ("Human", ("Coder",), programs.TASK),
        ("Coder", ("Reviewer",), CODE),
        ("Reviewer", (), "LGTM"),
    )
    lost = {
        "metagpt.environment.base_env:Environment.publish_message": ["send_message"],
        "metagpt.roles.role:Role.run": ["invoke_agent"],
        "metagpt.roles.role:Role._observe": ["invoke_agent"],
        "metagpt.provider.openai_api:OpenAILLM._achat_completion": ["chat"],
    }
    tree = """
invoke_workflow Team
  invoke_agent Coder
    chat gpt-4o
    send_message Coder
  invoke_agent Reviewer
    chat gpt-4o
    send_message Reviewer
  send_message Human"""

    def serving(self, script: Any) -> Any:
        return serving(script)

    def built(self, _url: str) -> Callable[[], Any]:
        made = programs.team()
        return lambda: run(made)


class TestExample(ExampleContract):
    """The example program."""

    framework = "metagpt"
    example = "metagpt/leap_year_team.py"
    answers = {"fixed": "All tests pass.", "never-fixed": "The tests still fail."}
    replayed = ("never-fixed",)
    earlier = ("fixed",)
    page = (("how-to/metagpt.md", "Clerk", []),)
    covered = False
    keep = "OPENAI_MODEL"

    @pytest.fixture(autouse=True)
    def model_of_this_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """MetaGPT reads the model's name once: children ask the one that is set in this process."""
        monkeypatch.setenv("OPENAI_MODEL", "gpt-4o")

    def home(self, folder: Path) -> dict[str, str]:
        """MetaGPT takes its settings from the home folder first, where other tests have theirs."""
        return dict.fromkeys(("HOME", "METAGPT_PROJECT_ROOT"), str(folder))

    def prepare(self, folder: Path) -> Callable[[str], None]:
        """Put the model into MetaGPT's settings."""

        def write_settings(address: str) -> None:
            llm = {"api_type": "openai", "model": "gpt-5-mini", "base_url": address, "api_key": "x"}
            (folder / "config").mkdir()
            settings = json.dumps({"llm": {**llm, "stream": False}})
            (folder / "config" / "config2.yaml").write_text(settings)

        return write_settings


class Count(Action):
    """Ask the model about the stock."""


class Forecast(Action):
    """Ask the model about the sales."""


class Order(Action):
    """Ask the model for the order."""


FACTS = {
    "Storekeeper": stock.count_stock("kettle"),
    "Analyst": stock.weekly_sales("kettle"),
    "Buyer": stock.TASK,
}
"""The facts in the prompt of each role, which has no tool."""


class Member(Role):
    """Says one thing when the member before has spoken."""

    def __init__(self, profile: str, after: type[Action], action: type[Action]) -> None:
        super().__init__(name=profile, profile=profile, goal="help")
        self._watch([after])
        self.set_actions([action])

    async def _act(self) -> Message:
        heard = "\n".join(message.content for message in self.rc.memory.get())
        prompt = f"{heard}\n{FACTS[self.profile]}"
        text = await self.rc.todo._aask(prompt, [f"You are {self.profile}."])
        return Message(content=text, role=self.profile, cause_by=type(self.rc.todo))


class TestPlanted(PlantedContract):
    """Three roles that speak one after the other."""

    errors = [error for error in stock.ERRORS if "item" not in error.name]
    confirmed = errors[-1:]
    has_tools = False

    def serving(self) -> Any:
        return serving(stock.policy)

    def program(self, _server: Any) -> str:
        members = [
            Member("Storekeeper", UserRequirement, Count),
            Member("Analyst", Count, Forecast),
            Member("Buyer", Forecast, Order),
        ]
        made = programs.team(*members)
        made.run_project(stock.TASK)
        asyncio.run(made.run(n_round=6))
        return str(members[-1].rc.memory.get()[-1].content)
