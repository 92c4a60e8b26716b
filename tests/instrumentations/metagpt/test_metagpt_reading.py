"""MetaGPT's objects, read into the messages of the contract."""

from __future__ import annotations

import json
from typing import Any

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import metagpt_programs as programs
from metagpt.actions.add_requirement import UserRequirement
from metagpt.roles.role import Role
from metagpt.schema import Message as TeamMessage
from metagpt.schema import Plan, Task
from metagpt.strategy.planner import Planner
from openai.types.chat import ChatCompletion

from mast_trace.messages import Message, ToolCall
from mast_trace_instrumentations.metagpt import reading

pytestmark = pytest.mark.framework("metagpt")


class TestRoles:
    """Names, and what a role acts on."""

    def test_its_profile_names_it(self) -> None:
        """A role without a profile is named by its name, else by its kind."""
        assert reading.name_of(programs.Coder()) == "Coder"
        assert reading.name_of(Role(name="Alice")) == "Alice"
        assert reading.name_of(Role()) == "Role"
        assert reading.name_of(object()) == "object"
        names = [reading.own_name(each) for each in (programs.Coder(), Role(), object())]
        assert names == ["Alice", "", ""]

    def test_it_takes_up_what_it_watches_or_is_sent(self) -> None:
        role = programs.Coder()
        asked = TeamMessage("Code!", cause_by=UserRequirement)
        sent = TeamMessage("Code!", cause_by=programs.ReviewCode, send_to={"Alice"})
        other = TeamMessage("Code!", cause_by=programs.ReviewCode)
        assert [reading.takes_up(role, each) for each in (asked, sent, other)] == [
            True,
            True,
            False,
        ]

    def test_a_role_of_a_later_version_may_take_all(self) -> None:
        """A role of a later version says so in a field that this version lacks."""

        class Listening(programs.Coder):
            observe_all_msg_from_buffer: bool = True

        assert reading.takes_up(Listening(), TeamMessage("Code!", cause_by=programs.ReviewCode))

    def test_tasks_of_its_plan_that_are_not_finished(self) -> None:
        tasks = [
            Task(task_id="1", instruction="multiply", is_finished=True),
            Task(task_id="2", instruction="print it"),
            Task(task_id="3", instruction="tell it"),
        ]
        role = programs.Coder()
        role.planner = Planner(plan=Plan(goal="g", tasks=tasks))
        assert reading.open_items(role) == ["print it", "tell it"]
        role.planner = Planner(plan=Plan(goal="g"))
        assert reading.open_items(role) == []
        tasks = [Task.model_construct(instruction="tell it"), tasks[0]]
        del tasks[0].is_finished
        role.planner.plan = Plan.model_construct(goal="g", tasks=tasks)
        assert reading.open_items(role) == ["tell it"]
        for without in (Role(), object()):
            assert reading.open_items(without) == []


class TestMessages:
    """Messages between roles."""

    @pytest.mark.parametrize(
        ("role", "read"),
        [("user", "user"), ("Human", "user"), ("Coder", "assistant"), ("", "assistant")],
    )
    def test_its_text_role_and_id(self, role: str, read: str) -> None:
        source = TeamMessage("Code!", role=role)
        assert reading.message(source) == Message("Code!", role=read, id=source.id)

    def test_a_structure_is_its_text_where_it_has_none(self) -> None:
        structure = Task(task_id="1", instruction="multiply")
        source = TeamMessage("", role="Coder", instruct_content=structure)
        assert json.loads(reading.message(source).content) == structure.model_dump()
        source = TeamMessage("Text.", role="Coder", instruct_content=structure)
        assert reading.message(source).content == "Text."
        assert reading.message(TeamMessage("", role="Coder")).content == ""

    @pytest.mark.parametrize(
        ("stated", "role", "sender"),
        [
            ("metagpt.roles.architect.Architect", "Coder", "Architect"),
            ("Bob", "Coder", "Bob"),
            ("", "Coder", "Coder"),
            ("", "", "Human"),
        ],
    )
    def test_who_it_is_from(self, stated: str, role: str, sender: str) -> None:
        assert reading.sender(TeamMessage("x", role=role, sent_from=stated)) == sender

    def test_where_a_later_version_lacks_a_field(self) -> None:
        """A message that lacks a field is read all the same."""

        class Bare:
            id = "m1"

        assert reading.message(Bare()) == Message("", id="m1")
        assert reading.sender(Bare()) == "Human"


def completion(**message: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 0,
        "model": "gpt-4o",
        "choices": [choice],
    }


CALLS = [
    {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"a": 1}'}},
    {"id": "2", "type": "function", "function": {"name": "stop", "arguments": "{}"}},
]


class TestModelCalls:
    """A model's input and answer."""

    def test_the_messages_of_a_request(self) -> None:
        given = [{"role": "system", "content": "Be."}, "A text alone.", {"content": None}]
        assert reading.chat_messages(given) == [
            Message("Be.", role="system"),
            Message("A text alone.", role="user"),
            Message("", role="user"),
        ]
        assert reading.chat_messages("Hi.") == [Message("Hi.", role="user")]

    @pytest.mark.parametrize("read", [ChatCompletion.model_validate, lambda given: given])
    def test_its_answer(self, read: Any) -> None:
        """As an object, and as the mapping that it is made of."""
        source = read(completion(content="Hello."))
        assert reading.answer(source) == Message("Hello.")
        assert reading.finish_reason(source) == "stop"
        asked = read(completion(content=None, tool_calls=CALLS))
        assert reading.answer(asked) == Message(
            "", tool_calls=(ToolCall("look_up", '{"a": 1}', "1"), ToolCall("stop", "{}", "2"))
        )

    def test_an_answer_of_another_shape(self) -> None:
        assert reading.answer("Hello.") == Message("Hello.")
        for other in ({"text": "x"}, {"choices": []}, [1]):
            assert json.loads(reading.answer(other).content) == other
            assert reading.finish_reason(other) is None
        assert reading.finish_reason("Hello.") is None

    def test_a_call_of_no_function_has_no_name(self) -> None:
        """Models may be given other kinds of tools."""
        custom = {"id": "1", "type": "custom", "custom": {"name": "code", "input": "1 + 1"}}
        assert reading.answer(completion(content=None, tool_calls=[custom])) == Message(
            "", tool_calls=(ToolCall("", None, "1"),)
        )


def test_the_error_behind_the_text_of_another() -> None:
    """Roles raise a plain exception with the traceback of the true one as its text."""
    true = KeyError("no kernel")
    inner, outer = Exception("Traceback ..."), Exception("Traceback ...")
    inner.__context__, outer.__context__ = true, inner
    assert reading.cause(outer) is true
    assert reading.cause(true) is true
    own = Exception("nothing behind it")
    assert reading.cause(own) is own
    true.__context__ = own
    assert reading.cause(true) is true
