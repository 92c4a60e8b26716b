"""MetaGPT: its ready-made teams and roles, people in a model's place, and every way of running."""

from __future__ import annotations

import builtins
import os
import sys
from pathlib import Path

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import metagpt_programs as programs
from metagpt.actions.di.execute_nb_code import ExecuteNbCode
from metagpt.roles.di.data_interpreter import DataInterpreter
from metagpt.software_company import generate_repo

from mast_trace import semconv
from mast_trace_dashboards.programs import Program
from mast_trace_lab.program.forking import parent_of

pytestmark = pytest.mark.framework("metagpt")


def senders(recorded) -> list[tuple[str, tuple[str, ...]]]:
    """Return sender and recipients of each message, in order."""
    return [(sender, to) for sender, to, _ in recorded.sent_messages()]


def test_the_software_company(recorded, server) -> None:
    """`generate_repo` runs its own event loop; each role's document is a message."""
    server.follow(programs.company_script)
    generate_repo("write a game", n_round=5, code_review=False, run_tests=False)
    recorded.check_shape()
    assert [sender for sender, _ in senders(recorded)] == [
        "Human",
        "Product Manager",
        "Architect",
        "Project Manager",
        "Engineer",
        "Engineer",
    ]
    turns = [s.attributes[semconv.AGENT_NAME] for s in recorded.named("invoke_agent")]
    assert turns == ["Product Manager", "Architect", "Project Manager", "Engineer", "Engineer"]
    assert len(recorded.named("chat")) == len(server.requests)
    assert recorded.trajectory().termination_reason == "max_turns"


async def test_the_data_interpreter(recorded, server) -> None:
    """The question, each execution of code in its kernel, and the answer."""
    server.follow(programs.analyst_script("print(6 * 7)"))
    await DataInterpreter(auto_run=True).run("multiply")
    recorded.check_shape()
    assert senders(recorded) == [
        ("user", ("DataInterpreter",)),
        ("DataInterpreter", ("user",)),
    ]
    asked, answered = recorded.named("send_message")
    assert answered.attributes[semconv.MESSAGE_IN_REPLY_TO] == asked.attributes[semconv.MESSAGE_ID]
    calls = recorded.named("execute_tool")
    assert [call.attributes[semconv.TOOL_CALL_RESULT].strip() for call in calls] == ["42", "42"]
    assert len(recorded.named("chat")) == len(server.requests) == 3
    assert recorded.trajectory().open_items == ()


async def test_tasks_of_a_plan_that_were_not_done_are_open_items(
    recorded, server, monkeypatch
) -> None:
    """The code fails again and again, until the person at the keyboard gives up."""
    monkeypatch.setattr(builtins, "input", lambda *_: "exit")
    server.follow(programs.analyst_script("1 / 0"))
    with pytest.raises(SystemExit):
        await DataInterpreter(auto_run=False).run("multiply")
    recorded.check_shape()
    assert recorded.trajectory().open_items == ()  # the plan was not confirmed
    server.follow(programs.analyst_script("1 / 0"))
    recorded.exporter.clear()

    async def act_and_stop(self, _task):
        raise RuntimeError("no kernel")

    monkeypatch.setattr(DataInterpreter, "_act_on_task", act_and_stop)
    with pytest.raises(Exception, match="no kernel"):
        await DataInterpreter(auto_run=True).run("multiply")
    recorded.check_shape()
    run = recorded.trajectory()
    assert run.open_items == ("multiply", "print it")
    assert run.error.startswith("no kernel")


async def test_failing_code_is_a_failed_call_each_time(recorded, server, monkeypatch) -> None:
    """As often as MetaGPT calls it so: a busy notebook loses the output of a cell now and then."""
    execute, succeeded = ExecuteNbCode.run, []

    async def run(self, *args, **options):
        output, success = await execute(self, *args, **options)
        succeeded.append(success)
        return output, success

    monkeypatch.setattr(ExecuteNbCode, "run", run)
    server.follow(programs.analyst_script("1 / 0"))
    role = DataInterpreter(auto_run=True)
    role.planner.auto_run = True
    attempts = 0

    async def once(task):
        nonlocal attempts
        attempts += 1
        if attempts > 1:
            server.follow(programs.analyst_script("print(6 * 7)"))
        return await type(role)._act_on_task(role, task)

    object.__setattr__(role, "_act_on_task", once)
    await role.run("multiply")
    failed = [s for s in recorded.named("execute_tool") if not s.status.is_ok]
    assert len(failed) == succeeded.count(False) > 1
    assert all("ZeroDivisionError" in s.attributes[semconv.TOOL_CALL_RESULT] for s in failed)


async def test_a_person_in_a_models_place(recorded, server, monkeypatch) -> None:
    """The question to the person and the answer are messages, and there is no model call."""
    monkeypatch.setattr(builtins, "input", lambda *_: "looks good")
    server.follow(programs.script)
    await programs.run(programs.team(programs.Coder(), programs.Reviewer(is_human=True)))
    recorded.check_shape()
    assert senders(recorded) == [
        ("Human", ("Coder",)),
        ("Coder", ("Reviewer",)),
        ("Reviewer", ("Human",)),
        ("Human", ("Reviewer",)),
        ("Reviewer", ()),
    ]
    question, answer = recorded.named("send_message")[2:4]
    assert answer.attributes[semconv.MESSAGE_IN_REPLY_TO] == question.attributes[semconv.MESSAGE_ID]
    assert len(recorded.named("chat")) == 1


async def test_a_person_reviews_a_plan(recorded, server, monkeypatch) -> None:
    monkeypatch.setattr(builtins, "input", lambda *_: "confirm")
    server.follow(programs.analyst_script("print(6 * 7)"))
    await DataInterpreter(auto_run=False).run("multiply")
    texts = [text for sender, to, text in recorded.sent_messages() if sender == "Human"]
    assert texts
    assert set(texts) == {"confirm"}


async def test_a_role_inside_of_another_ones_action(recorded, server) -> None:
    """The acting role asks the inner one, which answers it."""
    server.follow(programs.script)

    class Lead(programs.Coder):
        name: str = "Lee"
        profile: str = "Lead"

        async def _act(self):
            done = await programs.Coder().run(self.rc.news[-1].content)
            return programs.Message(content=done.content, cause_by=programs.WriteCode)

    await programs.run(programs.team(Lead()), rounds=2)
    recorded.check_shape()
    assert senders(recorded) == [
        ("Human", ("Lead",)),
        ("Lead", ("Coder",)),
        ("Coder", ("Lead",)),
        ("Lead", ()),
    ]


async def test_an_environment_without_a_team(recorded, server) -> None:
    server.follow(programs.script)
    context = programs.Context()
    env = programs.Environment(context=context)
    env.add_roles([programs.Coder(), programs.Reviewer()])
    env.publish_message(programs.Message(content="an adder"))
    await env.run(k=3)
    recorded.check_shape()
    assert [sender for sender, _ in senders(recorded)] == ["user", "Coder", "Reviewer"]


async def test_tokens_that_a_stream_does_not_bring_are_absent(recorded, server) -> None:
    """MetaGPT cannot count without its encodings: nothing is better than zero."""
    server.follow(programs.script)
    role = programs.Coder()
    role.actions[0].llm.config.stream = True
    try:
        await role.run("an adder")
    finally:
        role.actions[0].llm.config.stream = False
    assert server.requests[-1]["stream"]
    (call,) = recorded.named("chat")
    assert call.attributes.get(semconv.INPUT_TOKENS) != 0


async def test_a_request_that_is_tried_again(recorded, server) -> None:
    """MetaGPT tries again when a connection breaks: each request of its own is a model call."""
    refused = iter([programs.Reply(body="not json", status=200)])
    server.follow(lambda request: next(refused, None) or programs.script(request))
    await programs.run(programs.team())
    recorded.check_shape()
    assert len(recorded.named("chat")) == len(server.requests)


def test_its_replays_are_forked_with_its_libraries_and_read_its_settings_themselves(
    tmp_path: Path,
) -> None:
    """MetaGPT reads settings when it is imported, and a program may have written them just before."""
    file = tmp_path / "program.py"
    file.write_text(
        "import sys\nsys.exit('anthropic' not in sys.modules or 'metagpt' in sys.modules)\n"
    )
    command = (sys.executable, str(file))
    with parent_of(Program(command=command), "metagpt", pytest.fail) as parents:
        assert parents.run(command, os.environ, "discarded", 60) == 0
        assert parents.is_unasked
