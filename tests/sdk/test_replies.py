"""The answer of a hand-made agent is a step of its run, once, in any form."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

import mast_trace
from mast_trace.manual import blocks
from mast_trace.messages import Message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mast_trace.testing import CapturedSpans

pytestmark = pytest.mark.mast_trace(frameworks=[])

CANBERRA = "Canberra."


class City(BaseModel):
    """An answer of pydantic's."""

    name: str


@dataclass
class Place:
    """An answer of one's own."""

    name: str


def answers(captured: CapturedSpans) -> list[str]:
    """The texts that the turns hold, in order."""
    return [
        json.loads(str((span.attributes or {})["gen_ai.output.messages"]))[-1]["parts"][0][
            "content"
        ]
        for span in captured.named("invoke_agent")
        if "gen_ai.output.messages" in (span.attributes or {})
    ]


def steps(captured: CapturedSpans) -> list[tuple[str, str]]:
    return [(step.agent, step.text) for step in captured.trajectory().steps]


class TestSteps:
    """The reader's view of answers."""

    def test_of_a_block(self, captured_spans: CapturedSpans) -> None:
        with mast_trace.run("quiz", input="Capital of Australia?"), mast_trace.agent("a") as turn:
            turn.reply(CANBERRA)
        assert steps(captured_spans) == [("a", CANBERRA)]
        assert captured_spans.trajectory().final_answer == CANBERRA

    def test_of_one_that_hands_on_the_answer_of_another(
        self, captured_spans: CapturedSpans
    ) -> None:
        """The outer one says nothing of its own."""

        @mast_trace.agent
        def inner() -> str:
            return CANBERRA

        @mast_trace.agent
        def outer() -> str:
            return inner()

        with mast_trace.run("quiz"):
            outer()
        assert steps(captured_spans) == [("inner", CANBERRA)]

    def test_of_one_that_answers_the_same_twice(self, captured_spans: CapturedSpans) -> None:
        """Two turns, two answers, two ids."""
        with mast_trace.run("quiz"):
            for _ in range(2):
                with mast_trace.agent("a") as turn:
                    turn.reply(CANBERRA)
        assert steps(captured_spans) == [("a", CANBERRA)] * 2

    @pytest.mark.parametrize("message_first", [False, True])
    def test_of_one_that_sends_it_too(
        self, captured_spans: CapturedSpans, *, message_first: bool
    ) -> None:
        """The message is the one step."""
        with mast_trace.run("quiz"), mast_trace.agent("a") as turn:
            if message_first:
                mast_trace.message("a", "user", CANBERRA)
                turn.reply(CANBERRA)
            else:
                turn.reply(CANBERRA)
                mast_trace.message("a", "user", CANBERRA)
        run = captured_spans.trajectory()
        assert [(step.agent, step.text) for step in run.steps] == [("a", CANBERRA)]
        assert run.invocations[0].output_id == run.steps[0].message_id

    def test_of_one_that_sends_it_after_its_turn(self, captured_spans: CapturedSpans) -> None:
        """A message sent after the turn counts as that agent's answer by its sender."""

        @mast_trace.agent
        def geographer() -> str:
            return CANBERRA

        with mast_trace.run("quiz", input=CANBERRA):
            mast_trace.message("geographer", "user", geographer())
        run = captured_spans.trajectory()
        assert [(step.agent, step.text) for step in run.steps] == [("geographer", CANBERRA)]
        assert run.invocations[0].output_id == run.steps[0].message_id


def test_equal_answers_have_ids_of_their_own(captured_spans: CapturedSpans) -> None:
    """In threads too; an agent's message refers to its own."""

    def approve(name: str) -> None:
        for _ in range(20):
            with mast_trace.agent(name) as turn:
                turn.reply("approved")
                mast_trace.message(name, "user", "approved")

    with mast_trace.run("approvals", input="approved"), ThreadPoolExecutor(6) as pool:
        list(pool.map(mast_trace.in_context(approve), "abcdef"))
    sent = [span.attributes or {} for span in captured_spans.named("send_message")]
    replied = [span.attributes or {} for span in captured_spans.named("invoke_agent")]
    ids = {str(attributes["mast.message.id"]) for attributes in sent}
    assert len(ids) == len(sent) == 120
    for name in "abcdef":
        own = {a["mast.message.id"] for a in sent if a["mast.message.sender"] == name}
        assert own == {a["mast.message.id"] for a in replied if a["gen_ai.agent.name"] == name}
    (root,) = captured_spans.named("invoke_workflow")
    (task,) = (root.attributes or {})["mast.input.message_ids"]  # type: ignore[misc]
    assert task not in ids


def test_three_who_approve_what_the_user_approved(captured_spans: CapturedSpans) -> None:
    """Each message answers the one before, and none itself."""
    with mast_trace.run("approvals", input="approved"):
        before = mast_trace.message("user", "a", Message("approved", role="user"))
        ids = [before]
        for name, to in (("a", "b"), ("b", "c"), ("c", "user")):
            before = mast_trace.message(name, to, "approved", in_reply_to=before)
            ids.append(before)
    run = captured_spans.trajectory()
    assert [step.message_id for step in run.steps] == ids
    assert len(set(ids)) == 4
    assert [step.in_reply_to for step in run.steps] == ["", *ids[:-1]]
    assert len({step.content_hash for step in run.steps}) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (CANBERRA, CANBERRA),
        (Message(CANBERRA), CANBERRA),
        ({"capital": "Canberra"}, '{"capital": "Canberra"}'),
        (["Canberra", 2], '["Canberra", 2]'),
        (42, "42"),
        (0, "0"),
        (False, "false"),
        (City(name="Canberra"), "name='Canberra'"),
        (Place("Canberra"), "Place(name='Canberra')"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_is_an_answer(captured_spans: CapturedSpans, value: Any, text: str) -> None:
    """Return whether it is replied or returned."""

    @mast_trace.agent
    def geographer() -> Any:
        return value

    with mast_trace.run("quiz"):
        assert geographer() is value
        with mast_trace.agent("a") as turn:
            turn.reply(value)
    assert answers(captured_spans) == [text, text]


def test_what_says_nothing_is_no_answer(captured_spans: CapturedSpans) -> None:
    """None, and a stream, which belongs to whoever reads it."""
    stream = (piece for piece in ["Can", "berra."])

    @mast_trace.agent
    def silent() -> None:
        return None

    @mast_trace.agent
    def streaming() -> Any:
        return stream

    silent()
    assert list(streaming()) == ["Can", "berra."]
    assert answers(captured_spans) == []


class TestGenerators:
    """Agents that answer piece by piece."""

    @pytest.mark.parametrize("is_async", [False, True])
    @pytest.mark.parametrize(
        ("items", "room", "answer"),
        [
            (["Can", "berra."], 99, CANBERRA),
            ([{"state": "thinking"}, CANBERRA], 999, '[{"state": "thinking"}, "Canberra."]'),
            (["Can", "berra", ".", "!"], 8, "Canberra"),
            ([{"state": 1}, {"state": 2}], 8, '[{"state": 1}]'),
        ],
    )
    async def test_of_pieces(
        self,
        captured_spans: CapturedSpans,
        monkeypatch: pytest.MonkeyPatch,
        items: list[Any],
        room: int,
        answer: str,
        *,
        is_async: bool,
    ) -> None:
        """The pieces make one answer, as far as there is room for them, and all reach the consumer."""
        monkeypatch.setattr(blocks, "_MOST_YIELDED", room)

        def pieces() -> Iterator[Any]:
            yield from items

        async def later() -> AsyncIterator[Any]:
            for item in items:
                yield item

        if is_async:
            assert [piece async for piece in mast_trace.agent(later)()] == items
        else:
            assert list(mast_trace.agent(pieces)()) == items
        assert answers(captured_spans) == [answer]

    def test_that_return_their_answer(self, captured_spans: CapturedSpans) -> None:
        """The return value is the answer; yielded values are not."""

        @mast_trace.agent
        def geographer() -> Iterator[str]:
            yield "Thinking..."
            return CANBERRA

        assert list(geographer()) == ["Thinking..."]
        assert answers(captured_spans) == [CANBERRA]

    def test_that_are_left_early_or_fail(self, captured_spans: CapturedSpans) -> None:
        """Items before the end are kept."""

        @mast_trace.agent
        def geographer(*, fails: bool) -> Iterator[str]:
            yield "Can"
            if fails:
                raise LookupError("no map")
            yield "berra."

        stream = geographer(fails=False)
        assert next(stream) == "Can"
        stream.close()  # type: ignore[attr-defined]
        with suppress(LookupError):
            list(geographer(fails=True))
        assert answers(captured_spans) == ["Can", "Can"]

    def test_of_tools(self, captured_spans: CapturedSpans) -> None:
        """The result of a tool that is a generator is its items."""

        @mast_trace.tool
        def lines() -> Iterator[str]:
            yield "a\n"
            yield "b\n"

        assert list(lines()) == ["a\n", "b\n"]
        (span,) = captured_spans.named("execute_tool")
        assert (span.attributes or {})["gen_ai.tool.call.result"] == "a\nb\n"
