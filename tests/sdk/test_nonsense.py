"""No argument of a program makes the SDK raise into it, and usable parts are recorded."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mast_trace
from mast_trace.messages import Message, ToolCall
from mast_trace.spans import guard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace.testing import CapturedSpans

pytestmark = pytest.mark.mast_trace(frameworks=[])


def _fails(*_: Any, **__: Any) -> Any:
    raise LookupError("never ask me")


class Hostile:
    """An object that fails whatever it is asked."""

    __str__ = __repr__ = __iter__ = __eq__ = __bool__ = __len__ = __getitem__ = _fails
    __hash__ = __int__ = __float__ = __index__ = __contains__ = __getattr__ = _fails

    @property
    def __class__(self) -> Any:
        raise LookupError("never ask me")


class HostileText(str):
    """A text whose methods fail."""

    __slots__ = ()
    __str__ = __repr__ = __iter__ = __eq__ = __len__ = encode = isascii = strip = _fails
    __hash__ = lower = __format__ = _fails


class HostileList(list):  # type: ignore[type-arg]
    """A list that cannot be read."""

    __iter__ = __len__ = __getitem__ = __bool__ = _fails
    __hash__ = None  # type: ignore[assignment]


class HostileMapping(dict):  # type: ignore[type-arg]
    """A mapping that cannot be read."""

    items = keys = values = __iter__ = __len__ = __getitem__ = __bool__ = _fails
    __hash__ = None  # type: ignore[assignment]


class Callable:
    """A callable without a name."""

    __getattr__ = _fails

    def __call__(self, *_: Any, **__: Any) -> None:
        """Do nothing."""


class Kind(str, Enum):
    """A text that is more than a text."""

    PLANNER = "planner"


@dataclass
class Order:
    """A value of the program's own."""

    number: int


class Box:
    """Holds a value that Hypothesis could not even print."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"<{type(self.value).__name__}>"


HOSTILE = [
    Hostile(),
    HostileText("hostile"),
    HostileList([1]),
    HostileMapping({"a": 1}),
    Callable(),
    Hostile,
    Kind.PLANNER,
    Order(7),
    LookupError(Hostile()),
    Message(5, role=None, tool_calls=7),  # type: ignore[arg-type]
    Message(None, id=3, tool_calls=(1, ToolCall(2, Hostile(), 4))),  # type: ignore[arg-type]
    [Hostile(), "text", Message("text")],
    {"a": Hostile(), 5: [Hostile()]},
    "\ud800 lone",
    "x" * 3_000_000,
    2**70,
    -(2**70),
    float("nan"),
    float("inf"),
    b"bytes",
    object(),
    type,
    lambda: None,
    ...,
]
ANYTHING = st.one_of(
    st.sampled_from([Box(value) for value in HOSTILE]),
    st.builds(lambda: Box(iter([1, "b"]))),
    st.builds(lambda: Box(count())),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(st.characters())
        | st.binary(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.tuples(inner)
            | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
        ),
        max_leaves=6,
    ).map(Box),
)
SIX = st.lists(ANYTHING, min_size=6, max_size=6)
MUCH = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Each test hears of each misuse anew."""
    guard._misused.clear()
    yield
    guard._misused.clear()


@pytest.fixture
def collected(captured_spans: CapturedSpans) -> CapturedSpans:
    return captured_spans


class TestNonsense:
    """In every place of every function."""

    @MUCH
    @given(SIX)
    def test_as_a_message(self, collected: CapturedSpans, values: list[Box]) -> None:
        collected.clear()
        sender, recipients, content, in_reply_to, performative, attributes = (
            box.value for box in values
        )
        identity = mast_trace.message(
            sender,
            recipients,
            content,
            in_reply_to=in_reply_to,
            performative=performative,
            attributes=attributes,
        )
        assert identity
        (span,) = collected.spans
        assert span.attributes is not None
        assert "mast.message.content" in span.attributes

    @MUCH
    @given(SIX)
    def test_as_a_run(self, collected: CapturedSpans, values: list[Box]) -> None:
        collected.clear()
        name, asked, conversation, attributes, reason, more = (box.value for box in values)
        name = None if callable(name) else name
        with mast_trace.run(
            name, input=asked, conversation_id=conversation, attributes=attributes
        ) as run:
            run.set(more)
            run.stopped(reason)
            run.fail(more)
            mast_trace.record_outcome(reason, more)
        assert [span.name.split()[0] for span in collected.spans] == ["invoke_workflow"]

    @MUCH
    @given(SIX)
    def test_as_a_turn(self, collected: CapturedSpans, values: list[Box]) -> None:
        collected.clear()
        name, asked, identity, description, attributes, reply = (box.value for box in values)
        name = None if callable(name) else name
        with mast_trace.agent(
            name, input=asked, agent_id=identity, description=description, attributes=attributes
        ) as turn:
            turn.reply(reply)
            turn.set(attributes)
            turn.fail(reply)
        (span,) = collected.spans
        assert span.attributes is not None
        assert ("gen_ai.output.messages" in span.attributes) == (reply is not None)

    @MUCH
    @given(SIX)
    def test_as_a_tool(self, collected: CapturedSpans, values: list[Box]) -> None:
        collected.clear()
        name, arguments, identity, description, attributes, result = (box.value for box in values)
        name = None if callable(name) else name
        with mast_trace.tool(
            name, arguments, call_id=identity, description=description, attributes=attributes
        ) as call:
            call.result(result)
            call.set(attributes)
            call.fail(result)
        (span,) = collected.spans
        assert span.attributes is not None
        assert "gen_ai.tool.call.result" in span.attributes

    @MUCH
    @given(ANYTHING, st.sampled_from(["run", "agent", "tool", "in_context"]))
    def test_as_what_is_decorated(self, collected: CapturedSpans, box: Box, which: str) -> None:
        """A decorator returns a value that is no function, or a wrapper that calls it."""
        value = box.value
        collected.clear()
        decorate = getattr(mast_trace, which)
        decorated = decorate(value) if which == "in_context" else decorate("name")(value)
        assert callable(decorated) == callable(value)

    @MUCH
    @given(ANYTHING, ANYTHING)
    def test_as_what_a_function_gets_and_returns(
        self, collected: CapturedSpans, box: Box, another: Box
    ) -> None:
        """The objects themselves pass through."""
        value, other = box.value, another.value
        collected.clear()
        for decorate in (mast_trace.run, mast_trace.agent, mast_trace.tool):
            kept = []

            @decorate
            def function(*args: Any, **kwargs: Any) -> Any:
                kept.extend([*args, *kwargs.values()])  # noqa: B023
                return args[0]

            assert function(value, other=other) is value
            assert kept[0] is value
            assert kept[1] is other
        assert len(collected.spans) == 3

    @MUCH
    @given(ANYTHING)
    def test_as_a_time_to_wait(self, collected: CapturedSpans, box: Box) -> None:
        assert mast_trace.flush(box.value) in {True, False}
        assert collected.spans == []


def test_the_wrong_arguments_of_a_message_are_kept(
    captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture
) -> None:
    """The log mentions each wrong argument once."""
    with caplog.at_level(logging.WARNING, logger="mast_trace"), mast_trace.agent("clerk"):
        for _ in range(3):
            mast_trace.message(None, 5, 7)  # type: ignore[arg-type]
    message = captured_spans.named("send_message")[0].attributes or {}
    assert message["mast.message.sender"] == "clerk"
    assert message["mast.message.recipients"] == ("5",)
    assert message["mast.message.content"] == "7"
    told = [record.message for record in caplog.records]
    assert len(told) == 2
    assert "sender is None" in told[0]
    assert "recipients is no text but int" in told[1]


def test_a_list_of_recipients_is_read_from_anything(captured_spans: CapturedSpans) -> None:
    with mast_trace.run("r"):
        mast_trace.message("a", (name for name in ("b", "c")), "hi")  # type: ignore[arg-type]
        mast_trace.message("a", {"b": 1}, "hi")  # type: ignore[arg-type]
        mast_trace.message("a", ["b", None, Kind.PLANNER], "hi")  # type: ignore[list-item]
    found = [
        (span.attributes or {})["mast.message.recipients"]
        for span in captured_spans.named("send_message")
    ]
    assert found == [("b", "c"), ("b",), ("b", "unknown", "planner")]


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (True, "success"),
        (0, "failure"),
        ("failure", "failure"),
        (" Success ", "success"),
        (None, ""),
        (Box(Hostile()), ""),
    ],
)
def test_an_outcome_that_is_no_truth(
    captured_spans: CapturedSpans, given: Any, outcome: str
) -> None:
    """The words for it count as what they say; what says nothing is not recorded."""
    given = given.value if isinstance(given, Box) else given
    with mast_trace.run("r"):
        mast_trace.record_outcome(given, "because")
    assert captured_spans.trajectory().outcome == outcome


def test_attributes_keep_what_they_can(captured_spans: CapturedSpans) -> None:
    """A value that no attribute can hold is recorded as its text."""
    values = {"a": Order(7), "b": 2**70, "c": [1, "x"], 4: True, "d": {"k": [1]}, "e": [1, 2]}
    with mast_trace.tool("t", attributes=values):  # type: ignore[arg-type]
        pass
    (span,) = captured_spans.spans
    attributes = dict(span.attributes or {})
    assert attributes["a"] == "Order(number=7)" or "7" in attributes["a"]
    assert attributes["b"] == str(2**70)
    assert attributes["c"] == '[1, "x"]'
    assert attributes["4"] is True
    assert attributes["d"] == '{"k": [1]}'
    assert attributes["e"] == (1, 2)
