"""AG2 classic keeps the facts of every framework."""

# ruff: noqa: RUF012  # the contracts annotate their attributes
from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

import autogen.agentchat.conversable_agent
import autogen.agentchat.group.multi_agent_chat
import autogen_programs as programs
import stock
from autogen import ConversableAgent
from autogen.agentchat import initiate_group_chat
from autogen.agentchat.group import AgentTarget, TerminateTarget
from autogen.agentchat.group.patterns import DefaultPattern
from contract.examples import ExampleContract
from contract.frameworks import FrameworkContract, Program
from contract.planted import PlantedContract
from scripted_llm import last_text

from mast_trace_instrumentations.autogen import AutogenInstrumentor, patches

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.framework("autogen")

REPLACED = (autogen.agentchat.conversable_agent, autogen.agentchat.group.multi_agent_chat)
AGENT = "autogen.agentchat.conversable_agent:ConversableAgent"
MEMBERS = ("_Group_Tool_Executor", "triage", "coder", "tester", "boss", "_User")
THEIRS = "openinference.instrumentation"


def echo(request: dict[str, Any]) -> str:
    """Answer with the text."""
    return f"reply to {last_text(request)}"


def streamed(url: str) -> Any:
    """Run the group with models that stream."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "model", partial(programs.model, stream=True))
        return programs.pattern(url)


ONE_BY_ONE = {
    "two agents": Program(programs.two_agents, programs.talk_script),
    "tools": Program(programs.tools, programs.tools_script),
    "tools, awaited": Program(programs.a_tools, programs.tools_script),
    "group": Program(programs.group, programs.group_script),
    "nested": Program(programs.nested, echo),
    "sequence": Program(programs.sequence, echo),
    "human": Program(programs.human, echo),
}


class TestContract(FrameworkContract):
    """A group with hand-offs by a model, by a tool and by a rule."""

    instrumentor = AutogenInstrumentor
    main = Program(programs.pattern, programs.pattern_script)
    awaited = staticmethod(programs.a_pattern)
    ways = {"awaited": programs.a_pattern, "streamed": streamed}
    others = {
        **ONE_BY_ONE,
        "two agents, awaited": Program(programs.a_two_agents, programs.talk_script),
        "limited": Program(programs.limited, programs.talk_script),
        "model error": Program(programs.model_error, programs.failing_script),
        "group, awaited": Program(programs.a_group, programs.group_script),
        "round robin": Program(programs.round_robin, programs.group_script),
        "by condition": Program(programs.by_condition, echo),
        "background": Program(programs.background, echo),
        "background sequence": Program(programs.background_sequence, echo),
    }
    received = {**ONE_BY_ONE, "streamed": Program(streamed, main.script)}
    joined_by = "\n"
    peers = {
        "openinference": (
            (f"{THEIRS}.ag2", "AG2Instrumentor"),
            (f"{THEIRS}.openai", "OpenAIInstrumentor"),
        )
    }
    orders = ("ours first",)
    lost = {
        f"{AGENT}._process_received_message": ["send_message"],
        f"{AGENT}.generate_reply": ["invoke_agent"],
        f"{AGENT}.execute_function": ["execute_tool"],
        "autogen.oai.client:OpenAIWrapper.create": ["chat"],
    }
    end = "no_speaker"
    sent = tuple(
        (name, tuple(each for each in MEMBERS if each != name), text)
        for name, text in (
            ("_User", "Print the sum of 2 and 3."),
            ("triage", ""),
            ("_Group_Tool_Executor", "Transfer to coder"),
            ("coder", ""),
            ("_Group_Tool_Executor", "submitted print(5)"),
            ("tester", "It prints 5."),
            ("boss", "All good."),
        )
    )
    tree = """
invoke_workflow _User to chat_manager
  invoke_agent chat_manager
    invoke_agent _Group_Tool_Executor
      execute_tool submit
    invoke_agent _Group_Tool_Executor
      execute_tool transfer_to_coder_1
    invoke_agent boss
      chat scripted
    invoke_agent coder
      chat scripted
    invoke_agent tester
      chat scripted
    invoke_agent triage
      chat scripted
    send_message _Group_Tool_Executor
    send_message _Group_Tool_Executor
    send_message boss
    send_message coder
    send_message tester
    send_message triage
  send_message _User"""

    def built(self, url: str) -> Callable[[], Any]:
        members = programs.crew(url)
        return lambda: programs.talk(members)

    def beside(self) -> dict[str, Any]:
        """Return the modules that run agents in threads and tasks."""
        return {
            f"{module.__name__}:{name}": vars(module)[name]
            for module in REPLACED
            for name in ("threading", "asyncio")
        }

    def raising(self, error: Exception) -> Any:
        """An agent whose reply is a function of the program's own."""

        def reply(*_args: Any, **_more: Any) -> Any:
            raise error

        alice, bob = programs.person("alice", None), programs.person("bob", None)
        bob.register_reply([ConversableAgent, None], reply)
        return alice.initiate_chat(bob, message="Hello Bob.", max_turns=1)


class TestExample(ExampleContract):
    """The example program."""

    framework = "autogen"
    example = "autogen_group_chat.py"
    answers = {
        "refunded": "We are sorry about the leak and return your 59 EUR.",
        "wrong-policy": "We are sorry, but the time for a refund is over.",
    }
    replayed = ("refunded", "wrong-policy")
    earlier = ("wrong-policy",)
    person = ((Path(__file__).parent / "autogen_person.py", "A red one.\n\nexit\n"),)
    page = (("how-to/ag2-classic.md", "clerk", ["price_of"]),)


class TestPlanted(PlantedContract):
    """A group chat of three."""

    def program(self, server: Any) -> str:
        """Let the three agents hand over to each other; return the last one's words."""
        about = {
            "model": "gpt-small",
            "base_url": server.url,
            "api_key": "scripted",
            "price": [0, 0],
        }
        model = {"config_list": [about], "cache_seed": None}
        tools = {"Storekeeper": [stock.count_stock], "Analyst": [stock.weekly_sales], "Buyer": []}
        team = [
            ConversableAgent(
                name, system_message=f"You are {name}.", llm_config=model, functions=tools[name]
            )
            for name in stock.AGENTS
        ]
        for one, other in itertools.pairwise(team):
            one.handoffs.set_after_work(AgentTarget(other))
        pattern = DefaultPattern(
            initial_agent=team[0], agents=team, group_after_work=TerminateTarget()
        )
        result, _variables, _last = initiate_group_chat(pattern, stock.TASK, max_rounds=12)
        return str(result.chat_history[-1]["content"])


def test_other_packages_of_that_name_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package `autogen` without AG2's groups is another framework."""
    assert AutogenInstrumentor().present()
    monkeypatch.setattr(patches, "find_spec", lambda _name: None)
    assert not AutogenInstrumentor().present()
