"""MetaGPT: each recorded input of a model is what the model's server received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import metagpt_programs  # noqa: F401  # sets MetaGPT's surroundings before it is imported
from metagpt.actions import Action
from metagpt.context import Context
from metagpt.schema import Message
from metagpt_programs import Coder, script, team
from received_inputs import check_inputs, tools_asked_for
from recorded_spans import RecordedSpans
from scripted_llm import Call, Reply

from mast_trace.content import ContentPolicy
from mast_trace_instrumentations.metagpt import MetaGPTInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("metagpt")

CODE = {"language": "python", "code": "print(5)"}
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


@pytest.fixture(params=[True, "full"], ids=["once", "full"])
def inputs(request: pytest.FixtureRequest) -> Iterator[RecordedSpans]:
    """The spans of the test's teams, with each text once and with all texts in full."""
    spans = RecordedSpans.of(MetaGPTInstrumentor(), ContentPolicy(capture=request.param))
    yield spans
    spans.instrumentor.uninstrument()


async def run(*roles: Any) -> None:
    """Run a team to its end."""
    made = team(*roles)
    made.run_project("an adder")
    await made.run(n_round=4)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_of_a_team(inputs: RecordedSpans, server: Any, monkeypatch: Any, stream: bool):
    """Texts alone."""
    server.follow(script)
    asked = Action._aask

    async def ask(self: Action, prompt: str, system_msgs: Any = None) -> str:
        self.llm.config.stream = stream
        return await asked(self, prompt, system_msgs)

    monkeypatch.setattr(Action, "_aask", ask)
    await run()
    assert [bool(request.get("stream")) for request in server.requests] == [stream] * 2
    check_inputs(inputs, server.requests)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_of_a_history_with_tool_calls(
    inputs: RecordedSpans, server: Any, stream: bool
) -> None:
    """The framework sends such a history as it is given."""
    server.follow(lambda _request: "It is 5.")
    llm = Context().llm()
    assert await llm.acompletion_text(HISTORY, stream=stream) == "It is 5."
    assert tools_asked_for(server.requests) == {"add"}
    check_inputs(inputs, server.requests)


@pytest.mark.parametrize(
    "asked",
    [
        [{"role": "user", "content": "Print the sum."}],
        ["Print the sum.", Message(content="Of 2 and 3.", role="user")],
    ],
    ids=["dictionaries", "others"],
)
async def test_of_code_that_the_model_gives_in_a_call(
    inputs: RecordedSpans, server: Any, asked: list[Any]
) -> None:
    """MetaGPT's one native call; it reads its arguments, and the history goes on without it."""

    class Programmer(Coder):
        """A role that asks for code by a call."""

        async def _act(self) -> Message:
            code = (await self.rc.todo.llm.aask_code(asked))["code"]
            return Message(content=code, role=self.profile, cause_by=type(self.rc.todo))

    server.follow(lambda _request: Reply(calls=(Call("execute", CODE),)))
    await run(Programmer())
    check_inputs(inputs, server.requests)
    assert server.requests
