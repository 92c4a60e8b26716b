"""CrewAI's objects, read into the messages of the contract."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai_programs as programs
from crewai import Agent, Crew, Task
from crewai.flow.flow import Flow
from crewai.tasks.conditional_task import ConditionalTask
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionMessageToolCall
from openai.types.responses import ResponseUsage

from mast_trace.messages import Message, ToolCall
from mast_trace_instrumentations.crewai import reading

pytestmark = pytest.mark.framework("crewai")

SHAPE: dict[str, Any] = {
    "id": "call-1",
    "type": "function",
    "function": {"name": "lookup", "arguments": '{"city": "Paris"}'},
}
CALL = ToolCall("lookup", '{"city": "Paris"}', "call-1")
OBJECT = ChatCompletionMessageToolCall.model_validate(SHAPE)
BLOCK = {"type": "tool_use", "id": "call-2", "name": "lookup", "input": {"city": "Paris"}}
BLOCK_CALL = ToolCall("lookup", {"city": "Paris"}, "call-2")


class TestMessages:
    """The messages of a model call."""

    def test_every_field(self) -> None:
        asked = {"role": "assistant", "content": "", "name": "writer", "tool_calls": [SHAPE]}
        told = {"role": "tool", "content": "2.1", "tool_call_id": "call-1"}
        assert reading.chat_messages([asked, "no message", told]) == [
            Message("", name="writer", tool_calls=(CALL,)),
            Message("2.1", role="tool", tool_call_id="call-1"),
        ]

    def test_what_is_left_out(self) -> None:
        assert reading.chat_messages(None) == []
        assert reading.chat_messages("Hi.") == [Message("Hi.", role="user")]
        assert reading.chat_messages([{"content": "Hi."}]) == [Message("Hi.", role="user")]
        assert reading.chat_messages([{"role": "user"}]) == [Message("", role="user")]

    def test_parts_of_text_are_joined_and_others_stay(self) -> None:
        texts: list[Any] = [
            {"type": "text", "text": "one "},
            {"type": "text", "text": None},
            {"type": "text", "text": "two"},
        ]
        image = {"type": "image_url", "image_url": {"url": "https://example.org/i.png"}}
        [message] = reading.chat_messages([{"role": "user", "content": texts}])
        assert message.content == "one two"
        for mixed in ([*texts, image], [image], ["text"]):
            [message] = reading.chat_messages([{"role": "user", "content": mixed}])
            assert json.loads(message.content) == mixed


class TestAnswers:
    """Answers of a model's call."""

    def test_calls_of_each_provider(self) -> None:
        for response in ([SHAPE], [OBJECT], (BLOCK,)):
            found = reading.answer(list(response))
            assert found.content == ""
            assert found.tool_calls == ((BLOCK_CALL if BLOCK in response else CALL),)
        assert reading.answer([SHAPE, BLOCK]).tool_calls == (CALL, BLOCK_CALL)

    @pytest.mark.parametrize(
        "response",
        [
            "text",
            [],
            ["text"],
            [SHAPE, "text"],
            [{"name": "x"}],
            [{"type": "tool_use"}],
            [{"name": "x", "type": "text"}],
            {"a": 1},
        ],
    )
    def test_anything_else_is_text(self, response: Any) -> None:
        found = reading.answer(response)
        assert found.tool_calls == ()
        assert found.content == (response if response == "text" else json.dumps(response))

    def test_a_call_without_a_name_has_none(self) -> None:
        assert reading.answer([{"function": {"arguments": "{}"}}]) == Message(
            "", tool_calls=(ToolCall("", "{}"),)
        )


class TestCalls:
    """The call that a loop is asked to execute."""

    def test_in_each_way_in_which_it_is_handed_over(self) -> None:
        assert reading.requested_call((OBJECT,), {}) == CALL
        assert reading.requested_call((), {"tool_call": SHAPE}) == CALL
        parts = {"func_name": "lookup", "func_args": '{"city": "Paris"}', "call_id": "call-1"}
        assert reading.requested_call((), parts) == CALL
        assert reading.requested_call((BLOCK,), {"call_id": "x"}) == BLOCK_CALL

    def test_what_the_model_is_told_of_it(self) -> None:
        class Result:
            result = "2.1"

        assert reading.native_result({"result": "2.1", "more": 1}) == "2.1"
        assert reading.native_result({"more": 1}) is None
        assert reading.native_result(Result()) == "2.1"
        assert reading.native_result("2.1") == "2.1"

    def test_the_frameworks_own_word_that_a_tool_was_not_run(self) -> None:
        """Versions before 1.15 have no other sign of it."""
        for told in (
            "Tool not found",
            "Tool execution blocked by hook. Tool: lookup",
            "Tool execution blocked by hook. Tool: lookup, says the hook",
            "Tool 'lookup' has reached its usage limit of 3 times",
        ):
            assert reading.refusal("lookup", told) == told
        for output in (
            "Tool not found in the shed",
            "Tool execution blocked by hook. Tool: other",
            "Tool 'other' has reached its usage limit of 3 times",
            "Paris",
            None,
            ["Tool not found"],
        ):
            assert reading.refusal("lookup", output) is None


@pytest.fixture(scope="module")
def crew() -> Crew:
    """Four tasks: the second reads the first, the third both by default, the last one is skipped."""
    model = programs.LLM(model="openai/gpt-4o", api_key="scripted")
    roles = ("Finder ", "Writer", "Editor", "Finder ")
    agents = [Agent(role=role, goal="g", backstory="b", llm=model) for role in roles]
    find = Task(description="Find it", expected_output="x", agent=agents[0])
    write = Task(description="Write it", expected_output="x", agent=agents[1], context=[find])
    edit = Task(description="Edit it", expected_output="x", agent=agents[2])
    check = ConditionalTask(
        description="Check it",
        expected_output="x",
        agent=agents[3],
        context=[edit],
        condition=lambda _: False,
    )
    return Crew(agents=agents, tasks=[find, write, edit, check])


class TestCrews:
    """Tasks, and whose output goes to whom."""

    def test_what_a_crew_is_asked_to_do(self, crew: Crew) -> None:
        assert reading.task_text(crew) == "Find it\n\nWrite it\n\nEdit it\n\nCheck it"
        assert reading.task_text(None) == ""
        assert reading.task_text(Crew.model_construct(tasks=[object(), *crew.tasks[:1]])) == (
            "\n\nFind it"
        )

    def test_its_plan_without_what_it_may_skip(self, crew: Crew) -> None:
        find, write, edit, _ = crew.tasks
        assert reading.plan(crew) == {
            str(find.id): "Find it",
            str(write.id): "Write it",
            str(edit.id): "Edit it",
        }
        assert reading.plan(None) == {}

    def test_the_role_of_an_agent(self, crew: Crew) -> None:
        assert reading.role_of(crew.agents[0]) == "Finder"
        assert reading.role_of(None) == ""

    def test_who_reads_a_tasks_output(self, crew: Crew) -> None:
        """Without a list of its own a task takes all before it."""
        agent = crew.agents[0]
        agent.crew = crew
        found = [reading.readers(task, agent) for task in crew.tasks]
        assert found == [["Writer", "Editor"], ["Editor"], ["Finder"], []]
        assert reading.readers(object(), agent) == []
        assert reading.readers(crew.tasks[0], None) == []

    def test_a_reader_is_named_once(self, crew: Crew) -> None:
        """A reader with several tasks is named once; a task without an agent names none."""
        find, write, edit, _ = crew.tasks
        nobodys = Task(description="?", expected_output="x")
        again = Task(description="Again", expected_output="x", agent=edit.agent)
        agent = crew.agents[1]
        agent.crew = Crew.model_construct(tasks=[find, nobodys, object(), write, edit, again])
        assert reading.readers(find, agent) == ["Writer", "Editor"]

    def test_its_own_loops_are_told_from_a_users_flow(self) -> None:
        """Versions have it in one of two places; the oldest has none."""
        for module in ("crewai.agents.agent_executor", "crewai.experimental.agent_executor"):
            if installed(module):
                own = importlib.import_module(module).AgentExecutor
                assert reading.is_agent_loop(own.__new__(own))
        elsewhere = type("AgentExecutor", (), {"__module__": "crewai.experimental.agent_executor"})
        assert reading.is_agent_loop(elsewhere())
        assert not reading.is_agent_loop(Flow.__new__(Flow))


class TestTokens:
    """Tokens, in the words of each provider."""

    @pytest.mark.parametrize(
        ("usage", "counted"),
        [
            ({"prompt_tokens": 7, "completion_tokens": 3}, (7, 3, None)),
            ({"input_tokens": 7, "output_tokens": 3}, (7, 3, None)),
            ({"prompt_token_count": 7, "candidates_token_count": 3}, (7, 3, None)),
            ({"inputTokens": 7, "outputTokens": 3}, (7, 3, None)),
            ({"prompt_tokens": 7, "input_tokens": 8, "completion_tokens": 0}, (7, 0, None)),
            ({"prompt_tokens": None, "input_tokens": 8}, (8, None, None)),
            ({"cached_prompt_tokens": 2}, (None, None, 2)),
            ({"cache_read_input_tokens": 2}, (None, None, 2)),
            ({"cached_tokens": 2}, (None, None, 2)),
            ({"prompt_tokens_details": {"cached_tokens": 2}}, (None, None, 2)),
            ({"input_tokens_details": {"cached_tokens": 2}}, (None, None, 2)),
            ({"cached_tokens": 5, "input_tokens_details": {"cached_tokens": 2}}, (None, None, 5)),
            (
                CompletionUsage.model_validate(
                    {
                        "prompt_tokens": 7,
                        "completion_tokens": 3,
                        "total_tokens": 10,
                        "prompt_tokens_details": {"cached_tokens": 2},
                    }
                ),
                (7, 3, 2),
            ),
            (
                ResponseUsage.model_validate(
                    {
                        "input_tokens": 7,
                        "output_tokens": 3,
                        "total_tokens": 10,
                        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
                        "output_tokens_details": {"reasoning_tokens": 1},
                    }
                ),
                (7, 3, 2),
            ),
            (None, (None, None, None)),
        ],
    )
    def test_each_is_found(self, usage: Any, counted: tuple[int | None, ...]) -> None:
        names = ("input_tokens", "output_tokens", "cached_tokens")
        assert reading.tokens(usage) == dict(zip(names, counted, strict=True))
