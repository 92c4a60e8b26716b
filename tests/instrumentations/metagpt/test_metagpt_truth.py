"""MetaGPT's programs against the truth: the log of the model's server, and the programs as they are written."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import metagpt_programs as programs
from contract.span_trees import trees_of
from metagpt.actions.action_node import ActionNode
from metagpt.roles.di.data_interpreter import DataInterpreter
from metagpt_programs import (
    CODE,
    TASK,
    Coder,
    Message,
    Reviewer,
    Role,
    Runner,
    TwoSteps,
    script,
    team,
)
from received_inputs import check_inputs
from scripted_llm import Call, Reply, messages_of

from mast_trace import semconv

pytestmark = pytest.mark.framework("metagpt")


class Debater(Role):
    """Answers whoever spoke to it, by name."""

    name: str = ""
    profile: str = ""
    rival: str = ""

    def __init__(self, name: str, rival: str) -> None:
        super().__init__(name=name, profile=name, rival=rival)
        self._watch([programs.UserRequirement, programs.ReviewCode])
        self.set_actions([programs.ReviewCode])

    async def _act(self) -> Message:
        text = await self.rc.todo.run(self.rc.news[-1].content)
        return Message(
            content=text, role=self.profile, cause_by=type(self.rc.todo), send_to=self.rival
        )


class AtOnce(Coder):
    """Asks the model three times at once."""

    profile: str = "AtOnce"

    async def _act(self) -> Message:
        texts = await asyncio.gather(*(self.rc.todo.run(f"part {n}") for n in range(3)))
        return Message(content="\n".join(texts), role=self.profile, cause_by=type(self.rc.todo))


class Lead(Coder):
    """Has another role do its work."""

    profile: str = "Lead"

    async def _act(self) -> Message:
        done = await Coder().run(self.rc.news[-1].content)
        return Message(content=done.content, role=self.profile, cause_by=programs.WriteCode)


class Programmer(Coder):
    """Asks for code by a native call of the model."""

    profile: str = "Programmer"

    async def _act(self) -> Message:
        code = (await self.rc.todo.llm.aask_code([self.rc.news[-1].content]))["code"]
        return Message(content=code, role=self.profile, cause_by=type(self.rc.todo))


class Former(Coder):
    """Fills a form of MetaGPT's own."""

    profile: str = "Former"

    async def _act(self) -> Message:
        node = ActionNode(
            key="size", expected_type=str, instruction="Say the size.", example="small"
        )
        form = await node.fill(self.rc.news[-1].content, self.rc.todo.llm)
        return Message(content=form.content, role=self.profile, cause_by=type(self.rc.todo))


async def debate() -> None:
    made = team(Debater("Ada", "Ben"), Debater("Ben", "Ada"))
    made.run_project("tabs or spaces", send_to="Ada")
    await made.run(n_round=3)


async def two_teams() -> None:
    await asyncio.gather(programs.run(team()), programs.run(team(TwoSteps())))


async def environment() -> None:
    env = programs.Environment(context=programs.Context())
    env.add_roles([Coder(), Reviewer()])
    env.publish_message(Message(content=TASK))
    await env.run(k=3)


def coding(_request: Any) -> Reply:
    return Reply(calls=(Call("execute", {"language": "python", "code": "print(5)"}),))


def forming(_request: Any) -> str:
    return '[CONTENT]\n{"size": "small"}\n[/CONTENT]'


def analysing(request: Any) -> Reply | str:
    return programs.analyst_script("print(6 * 7)")(request)


ROLE = "  invoke_agent {0}\n    chat gpt-4o\n    send_message {0}\n"
PAIR = f"invoke_workflow Team\n{ROLE.format('Coder')}{ROLE.format('Reviewer')}  send_message Human"
STEPS = """invoke_workflow Team
  invoke_agent Stepper
    chat gpt-4o
    chat gpt-4o
    send_message Stepper
  send_message Human"""
SPOKEN = [("Human", ("Coder",), TASK), ("Coder", ("Reviewer",), CODE), ("Reviewer", (), "LGTM")]
STEPPED = [("Human", ("Stepper",), TASK), ("Stepper", (), "LGTM")]


def alone(profile: str) -> str:
    """The trace of a team of one role that asks the model once."""
    return f"invoke_workflow Team\n{ROLE.format(profile)}  send_message Human"


def said(profile: str, text: str) -> list[Any]:
    """The messages of such a team."""
    return [("Human", (profile,), TASK), (profile, (), text)]


TRUTH: dict[str, Any] = {
    "two roles": (lambda: programs.run(team()), script, [PAIR], SPOKEN),
    "two actions": (lambda: programs.run(team(TwoSteps())), script, [STEPS], STEPPED),
    "two teams at once": (two_teams, script, [PAIR, STEPS], [*SPOKEN, *STEPPED]),
    "no team": (
        environment,
        script,
        [PAIR.replace("Team", "Environment").replace("Human", "user")],
        [("user", *SPOKEN[0][1:]), *SPOKEN[1:]],
    ),
    "a debate": (
        debate,
        script,
        [f"invoke_workflow Team\n{ROLE.format('Ada') * 2}{ROLE.format('Ben')}  send_message Human"],
        [
            ("Human", ("Ada",), "tabs or spaces"),
            ("Ada", ("Ben",), "LGTM"),
            ("Ben", ("Ada",), "LGTM"),
            ("Ada", ("Ben",), "LGTM"),
        ],
    ),
    "calls at once": (
        lambda: programs.run(team(AtOnce()), 2),
        script,
        [alone("AtOnce").replace("    chat gpt-4o\n", "    chat gpt-4o\n" * 3)],
        said("AtOnce", "\n".join([CODE] * 3)),
    ),
    "a role in a role": (
        lambda: programs.run(team(Lead()), 2),
        script,
        [
            """invoke_workflow Team
  invoke_agent Lead
    invoke_agent Coder
      chat gpt-4o
      send_message Coder
    send_message Lead
    send_message Lead
  send_message Human"""
        ],
        [
            ("Human", ("Lead",), TASK),
            ("Lead", ("Coder",), TASK),
            ("Coder", ("Lead",), CODE),
            ("Lead", (), CODE),
        ],
    ),
    "a native call": (
        lambda: programs.run(team(Programmer()), 2),
        coding,
        [alone("Programmer")],
        said("Programmer", "print(5)"),
    ),
    "a form": (
        lambda: programs.run(team(Former()), 2),
        forming,
        [alone("Former")],
        said("Former", forming(None)),
    ),
    "code in a notebook": (
        lambda: programs.run(team(Runner()), 2),
        script,
        [alone("Runner").replace("chat gpt-4o", "execute_tool ExecuteNbCode")],
        said("Runner", "42\n"),
    ),
    "an analyst": (
        lambda: DataInterpreter(auto_run=True).run("multiply"),
        analysing,
        [
            """invoke_workflow DataInterpreter
  invoke_agent DataInterpreter
    chat gpt-4o
    chat gpt-4o
    chat gpt-4o
    execute_tool ExecuteNbCode
    execute_tool ExecuteNbCode
    send_message DataInterpreter
  send_message user"""
        ],
        [("user", ("DataInterpreter",), "multiply"), ("DataInterpreter", ("user",), None)],
    ),
}
"""Program -> how it runs, its model's answers, its traces, its messages; the analyst's is its whole plan."""


def tokens(request: Any, reply: Reply | str) -> tuple[int, int]:
    """The tokens that the server counts for a request and its answer."""
    answer = Reply(reply) if isinstance(reply, str) else reply
    out = len(answer.text) + sum(len(json.dumps(call.arguments)) for call in answer.calls)
    asked = sum(len(json.dumps(message)) for message in messages_of(request))
    return asked // 4 + 1, out // 4 + 1


@pytest.mark.parametrize("name", TRUTH)
async def test_a_program_is_recorded_as_it_was(name: str, recorded: Any, server: Any) -> None:
    """Its messages, tools, calls and their parents; inputs and tokens are those of the server's log."""
    work, answers, traces, sent = TRUTH[name]
    server.follow(answers)
    result = await work()
    recorded.check_shape(runs=len(traces))
    assert trees_of(recorded) == sorted(traces)
    sent = [(who, to, result.content if text is None else text) for who, to, text in sent]
    assert sorted(recorded.sent_messages()) == sorted(sent)
    check_inputs(recorded, server.requests, in_order="at once" not in name)
    assert sorted(
        (call.attributes[semconv.INPUT_TOKENS], call.attributes[semconv.OUTPUT_TOKENS])
        for call in recorded.named("chat")
    ) == sorted(tokens(request, answers(request)) for request in server.requests)
