"""Content policy: capture, redaction, truncation, hashing."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import mast_trace
from mast_trace._session import current_session, paused
from mast_trace._settings import SDKSettings
from mast_trace.content import (
    ATTRIBUTE_LIMIT,
    MOST_CONTENT,
    WITHHELD,
    ContentPolicy,
    Redacted,
    as_text,
    content_hash,
    joined,
    truncate,
    well_formed,
)
from mast_trace.content_settings import content_from_environment
from mast_trace.messages import Message, ToolCall
from mast_trace.testing import capture_spans

if TYPE_CHECKING:
    from mast_trace.content import Capture
    from mast_trace.testing import CapturedSpans

ANY_TEXT = st.text(st.characters(codec=None), max_size=600)
SECRET = "sk-live-wxyzwxyz"
ESCAPED = 'sk-live"wx\nyz\\wxyz'
"""A secret that JSON spells otherwise."""


def redact(text: str) -> str:
    """Recognises whole secrets alone."""
    return text.replace(SECRET, "[key]").replace(ESCAPED, "[key]")


class Hostile:
    """A value all of whose ways of being shown fail."""

    def __str__(self) -> str:
        raise RuntimeError("not shown")

    __repr__ = __str__


ANY_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.builds(lambda: 10**6000)  # more digits than Python shows
    | st.floats()
    | ANY_TEXT
    | st.binary()
    | st.builds(Hostile)
    | st.sampled_from([object, Hostile, ValueError("x"), memoryview(b"12")]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(st.integers())
        | st.dictionaries(st.integers() | ANY_TEXT | st.none() | st.builds(Hostile), inner)
    ),
    max_leaves=15,
)
QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class TestTruncate:
    """Cutting a text."""

    @given(ANY_TEXT, st.integers(0, 400))
    def test_respects_the_limit_in_bytes_and_can_be_encoded(self, text: str, limit: int) -> None:
        """For any characters the result is UTF-8 of at most that many bytes."""
        assert len(truncate(text, limit).encode()) <= limit

    @given(ANY_TEXT)
    def test_leaves_what_fits_alone(self, text: str) -> None:
        """A text that fits stays unchanged, except characters that no encoding can carry."""
        assert truncate(text, 2400) == well_formed(text)

    @given(st.text("aä\N{ROBOT FACE}", min_size=500, max_size=600))
    def test_keeps_head_and_tail_and_says_how_much_is_gone(self, text: str) -> None:
        """The end of a text matters as much as its beginning: errors stand there."""
        kept = truncate(text, 300)
        head, count, tail = re.match(
            r"(?s)(.*)\n\[\.\.\. (\d+) characters cut by mast-trace \.\.\.\]\n(.*)", kept
        ).groups()
        assert head
        assert tail
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + int(count) + len(tail) == len(text)

    def test_of_a_text_that_is_a_subclass_gives_a_plain_one(self) -> None:
        """Frameworks return strings that are more than that."""

        class Rich(str):
            __slots__ = ()

        assert type(truncate(Rich("x"))) is str


class TestAsText:
    """Rendering any value."""

    @QUICK
    @given(ANY_VALUE)
    def test_never_raises_and_gives_text(self, value: Any) -> None:
        """Values of arbitrary programs, their keys and their failing methods."""
        assert isinstance(as_text(value), str)

    @QUICK
    @given(ANY_VALUE, st.integers(300, 2000))
    def test_of_a_container_stays_near_the_limit(self, value: Any, limit: int) -> None:
        """The length stays near the limit, beside escapes and the marks of cuts."""
        text = as_text([value, value, value], limit)
        assert len(text) <= 12 * limit + 2000

    @QUICK
    @given(st.dictionaries(ANY_TEXT, st.integers() | ANY_TEXT | st.booleans() | st.none()))
    def test_of_plain_values_is_json(self, value: dict[str, Any]) -> None:
        """A reader gets the text back unchanged."""
        assert json.loads(as_text(value)) == value

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("as it is", "as it is"),
            (None, ""),
            (3, "3"),
            ({"a": (1, 2)}, '{"a": [1, 2]}'),
            (float("nan"), "nan"),
            ([float("inf")], '["inf"]'),
            (b"abc", "<3 bytes>"),
            (ValueError("broken"), "broken"),
            (Hostile(), "<Hostile>"),
            ({Hostile(): 1}, '{"<Hostile>": 1}'),
        ],
    )
    def test_is_what_a_person_expects(self, value: Any, text: str) -> None:
        """No quotes around what is text already, no NaN that JSON does not know."""
        assert as_text(value) == text

    @pytest.mark.parametrize(
        "part",
        [
            {"image_url": {"url": "data:image/png;base64,{}"}},
            {"input_audio": {"data": "{}", "format": "wav"}},
            {"type": "image", "base64": "{}", "mime_type": "image/png"},
        ],
    )
    def test_of_a_picture_is_its_size_and_hash(self, part: dict[str, Any]) -> None:
        """Pictures of megabytes are kept apart, small ones and addresses stay, and what is missing is noted."""
        texts = {}
        for data in ("QUJD", "A" * 5_000_000, "B" * 5_000_000):
            cut: list[str] = []
            given = json.loads(json.dumps(part).replace("{}", data))
            texts[data] = as_text(given, on_cut=lambda kept=cut: kept.append("cut"))
            assert bool(cut) is (len(data) > 4)
            assert (json.loads(texts[data]) == given) is not bool(cut)
        assert len(set(texts.values())) == 3
        assert max(map(len, texts.values())) < 200

    @QUICK
    @given(ANY_VALUE, st.integers(1, 3000), st.sampled_from([0, 20, 9000]))
    def test_of_arguments_rendered_before_is_the_same(
        self, value: Any, limit: int, copies: int
    ) -> None:
        """A call's arguments are rendered once, without regard to a limit that they are far from."""
        call = ToolCall("read", {"first": value, "more": ["page"] * copies})
        assume(not call.text.startswith("<"))  # a limit may cut off the part that has no text
        for each in (limit, ATTRIBUTE_LIMIT):
            assert call.text_within(each) == as_text(call.arguments, each)

    def test_of_a_structure_that_contains_itself_ends(self) -> None:
        """A structure that contains itself twice would double at each level."""
        looped: list[Any] = []
        looped += [looped, looped, looped]
        assert len(as_text(looped)) < 1_000_000
        assert len(as_text([None] * 100_000, 1000)) < 4000
        deep: list[Any] = []
        for _ in range(5000):
            deep = [deep]
        assert as_text(deep).startswith("[[[[")

    def test_does_not_read_all_of_a_huge_state(self) -> None:
        """Rendering stops once enough is collected."""

        class Counted(dict):
            read = 0

            def items(self) -> Any:
                for item in super().items():
                    Counted.read += 1
                    yield item

        state = Counted({f"k{index}": "x" * 1000 for index in range(10_000)})
        assert len(as_text(state)) < 70_000
        assert Counted.read < 100


class TestHash:
    """The content hash."""

    @given(ANY_TEXT)
    def test_is_sixteen_digits_of_any_text(self, text: str) -> None:
        """Lone surrogates too; equal for equal texts."""
        assert re.fullmatch("[0-9a-f]{16}", content_hash(text))
        assert content_hash(text) == content_hash("".join(list(text)))

    def test_tells_long_texts_apart_at_their_end(self) -> None:
        """The whole text is hashed."""
        assert content_hash("x" * 20_000 + "a") != content_hash("x" * 20_000 + "b")


class Shown:
    """A value of the program's own."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def record(captured: CapturedSpans, secret: str = SECRET) -> str:
    """Put the secret into every place that takes a text; return all that was recorded."""
    spelled = json.dumps({"key": [secret, {"n": secret}]})
    calls = (
        ToolCall("pay", {"key": secret}, "c1"),
        ToolCall("pay", f'{{"key": "{secret}"}}'),
        ToolCall("pay", spelled),
    )
    with mast_trace.run("r", input=secret):
        with mast_trace.agent("a", input=[secret, Message("x", tool_calls=calls)]) as turn:
            turn.reply(f"my key is {secret}")
        mast_trace.message("a", "b", spelled)
        mast_trace.message("a", "b", Message(f"use {secret}", tool_calls=calls))
        with mast_trace.tool("pay", {"key": secret, "n": 1}, description=secret) as call:
            call.result({"rows": [secret]})
        with mast_trace.tool("pay", f"\n{spelled}") as call:
            call.result(f" {spelled}")
        with mast_trace.tool("pay", secret) as call:
            call.fail(f"{secret} was declined")
        mast_trace.record_outcome(False, f"{secret} leaked", expected=[f"no {secret}"])
    with mast_trace.run("s", input={"key": secret}) as run:
        with mast_trace.agent("a", input=[["of", secret]]) as turn:
            turn.reply({secret: 1})
            turn.fail({"key": secret})  # type: ignore[arg-type]
        mast_trace.message("a", "b", {"key": [secret]})  # type: ignore[arg-type]
        session = current_session()
        assert session is not None
        chat = session.telemetry.chat("m", input=[Message(secret)])
        thought = {"type": "thinking", "thought": secret, "more": [{"type": {"of": Shown(secret)}}]}
        chat.response(Message(f"so {secret}", tool_calls=calls), extra=thought)
        chat.end(ValueError(secret))
        run.fail(Shown(secret))  # type: ignore[arg-type]
        mast_trace.record_outcome(False, {"key": secret})  # type: ignore[arg-type]
    return "\n".join(
        f"{dict(span.attributes or {})} {span.status.description}" for span in captured.spans
    )


class TestRedaction:
    """The redact function."""

    @pytest.mark.parametrize("secret", [SECRET, ESCAPED], ids=["plain", "escaped"])
    @pytest.mark.parametrize("shift", [None, 0, 8], ids=["short", "cut", "cut elsewhere"])
    def test_reaches_every_text(
        self, monkeypatch: pytest.MonkeyPatch, secret: str, shift: int | None
    ) -> None:
        """Messages, tool calls, arguments, results, errors, descriptions, reasons.

        It comes before the cut, as half a secret is not recognised, and before quotes are escaped. Wherever
        a long text is cut, four characters of a secret are left by one of the two shifts.
        """
        monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "1000")
        text = secret if shift is None else "." * shift + secret * 6000
        with capture_spans(frameworks=[], redact=redact) as captured:
            everything = record(captured, text)
        assert not re.search("sk-l|wxyz", everything)
        assert everything.count("[key]") >= 20

    @pytest.mark.parametrize("secret", [SECRET, ESCAPED], ids=["plain", "escaped"])
    def test_is_noted_where_it_changed_a_text(self, secret: str) -> None:
        """Input and reply of one span are both named, and an input whose text an earlier span holds."""
        with capture_spans(frameworks=[], redact=redact) as captured:
            record(captured, secret)
            with mast_trace.run("s"), mast_trace.agent("a", input=[SECRET]):
                with mast_trace.agent("b", input=[SECRET]):
                    pass
                with mast_trace.tool("pay", {"n": 1}) as call:
                    call.result("paid")
        noted = [
            list((span.attributes or {}).get("mast.content.redacted", ()))
            for span in captured.spans
            if not span.name.startswith("record_outcome")
        ]
        asked, replied = "gen_ai.input.messages", "gen_ai.output.messages"
        arguments, result = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
        assert noted == [
            [asked],
            [asked, replied],
            ["mast.message.content"],
            ["mast.message.content"],
            [arguments, result],
            [arguments, result],
            [arguments],
            [asked],
            [asked, replied],
            ["mast.message.content"],
            [asked, replied, "mast.response.extra"],
            [],
            [asked],
            [asked],
            [],
        ]

    @pytest.mark.parametrize("order", [1, -1])
    def test_is_noted_wherever_in_a_structure_it_was(self, order: int) -> None:
        texts = [ESCAPED, 'a "quoted" word']
        assert isinstance(as_text(texts[::order], clean=redact), Redacted)
        assert not isinstance(as_text(texts[1:], clean=redact), Redacted)
        assert "sk-l" not in ContentPolicy(redact=redact).text(texts)

    def test_goes_on_for_what_is_open_at_the_end(self) -> None:
        """A turn that is open when recording ends keeps the rules of its session."""
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        with paused():
            mast_trace.instrument(frameworks=[], tracer_provider=provider, redact=redact)
            with mast_trace.run("r"), mast_trace.agent("a") as turn:
                mast_trace.uninstrument()
                turn.reply(joined("", ["so ", as_text({"key": ESCAPED * 9000})]))
        texts = str([dict(span.attributes or {}) for span in exporter.get_finished_spans()])
        assert "[key]" in texts
        assert not re.search("sk-l|wxyz", texts)
        assert "mast.content.redacted" in texts

    def test_comes_before_the_hash(self) -> None:
        """The hash of a short secret would give it away to whoever guesses."""
        with capture_spans(frameworks=[], redact=redact) as captured:
            everything = record(captured)
        for text in (SECRET, f"use {SECRET}", f"my key is {SECRET}", f'{{"rows": ["{SECRET}"]}}'):
            assert content_hash(text) not in everything
        assert content_hash("my key is [key]") in everything

    def test_keeps_the_structure_of_a_tool_call(self) -> None:
        """The judge still sees which arguments there were."""
        with capture_spans(frameworks=[], redact=redact) as captured:
            record(captured)
        first = captured.named("execute_tool")[0].attributes or {}
        assert json.loads(str(first["gen_ai.tool.call.arguments"])) == {"key": "[key]", "n": 1}

    def test_runs_once_for_a_text_that_is_seen_often(self) -> None:
        """A history is not redacted again at each turn."""
        calls = []

        def counting(text: str) -> str:
            calls.append(text)
            return text

        history = [f"message {index}" for index in range(20)]
        with capture_spans(frameworks=[], redact=counting), mast_trace.run("r"):
            for _ in range(5):
                with mast_trace.agent("a", input=history):
                    pass
        assert len(calls) == 20

    @pytest.mark.parametrize("broken", [lambda _: None, lambda _: 1 / 0])
    def test_that_fails_lets_nothing_through(self, broken: Any) -> None:
        """A defect in it withholds the text and never reaches the program."""
        with capture_spans(frameworks=[], redact=broken) as captured:
            everything = record(captured)
        assert SECRET not in everything
        assert WITHHELD in everything


class TestCapture:
    """The recorded part of contents."""

    def test_off_records_hashes_and_sizes_only(self) -> None:
        """Structure stays: who spoke to whom, which messages were seen."""
        with capture_spans(frameworks=[], capture_content=False) as captured:
            everything = record(captured)
        assert SECRET not in everything
        message = captured.named("send_message")[0].attributes or {}
        assert message["mast.message.content_hash"]
        assert message["mast.message.recipients"] == ("b",)
        turn = captured.named("invoke_agent")[0].attributes or {}
        assert turn["mast.input.length"] == len(SECRET) + 1
        assert len(turn["mast.input.message_ids"]) == 2

    @pytest.mark.parametrize(("capture", "times"), [("full", 2), (True, 1), (False, 0)])
    def test_of_an_input_that_is_seen_twice(self, capture: Capture, times: int) -> None:
        """A span refers to an earlier one; "full" is for tools that cannot follow ids."""
        with capture_spans([], capture_content=capture) as captured, mast_trace.run("r"):
            for _ in range(2):
                with mast_trace.agent("a", input=["the question"]):
                    pass
        everything = [str(dict(span.attributes or {})) for span in captured.spans]
        assert sum(text.count("the question") for text in everything) == times

    def test_keeps_a_text_of_the_size_of_the_limit_whole(self) -> None:
        """In bytes of UTF-8; one more, and its head and tail are kept around a mark."""
        fits = "\N{ROBOT FACE}" * (ATTRIBUTE_LIMIT // 4)
        with capture_spans(frameworks=[]) as captured, mast_trace.run("r"):
            mast_trace.message("a", "b", fits)
            mast_trace.message("a", "b", f"{fits}.")
        whole, cut = (dict(span.attributes or {}) for span in captured.named("send_message"))
        assert whole["mast.message.content"] == fits
        assert "mast.content.truncated" not in whole
        text = str(cut["mast.message.content"])
        assert len(text.encode()) <= ATTRIBUTE_LIMIT
        assert text.startswith("\N{ROBOT FACE}" * 100_000)
        assert text.endswith("\N{ROBOT FACE}" * 70_000 + ".")
        assert "characters cut by mast-trace" in text
        assert cut["mast.content.truncated"] == ("mast.message.content",)

    @pytest.mark.parametrize(
        ("variables", "limit", "origin"),
        [
            ({}, ATTRIBUTE_LIMIT, "default"),
            ({"ATTRIBUTE": "70000"}, 70_000, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
            (
                {"ATTRIBUTE": "70000", "SPAN_ATTRIBUTE": "4000000"},
                4_000_000,
                "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
            ),
            ({"ATTRIBUTE": "9" * 5000}, MOST_CONTENT, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
        ],
    )
    def test_has_the_limit_of_opentelemetrys_variables(
        self,
        monkeypatch: pytest.MonkeyPatch,
        variables: dict[str, str],
        limit: int,
        origin: str,
    ) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(f"OTEL_{name}_VALUE_LENGTH_LIMIT", value)
        settings = SDKSettings.resolve()
        assert (settings.content.limit, settings.content_limit.origin) == (limit, origin)
        assert content_from_environment().limit == limit

    def test_leaves_json_whole_whatever_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """OpenTelemetry's SDK, which would cut it anywhere, is kept from doing so."""
        monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "1000")
        asked = ["x" * 900, "y" * 900]
        with capture_spans(frameworks=[]) as captured, mast_trace.agent("a", input=asked):
            pass
        turn = captured.named("invoke_agent")[0].attributes or {}
        texts = [
            each["parts"][0]["content"] for each in json.loads(str(turn["gen_ai.input.messages"]))
        ]
        assert [text[0] + text[-1] for text in texts] == ["xx", "yy"]

    def test_cuts_long_texts_and_says_so(self) -> None:
        """On messages, results and arguments, in valid JSON where JSON is promised."""
        long = "x" * 3_000_000
        with capture_spans(frameworks=[]) as captured, mast_trace.run("r"):
            mast_trace.message("a", "b", long)
            with mast_trace.tool("t", {"long": long}) as call:
                call.result(long)
            calls = (ToolCall("write", {"file": long}, "c"),)
            with mast_trace.agent("a", input=[long + "!", "short", Message("", tool_calls=calls)]):
                pass
        for span in captured.spans:
            for value in (span.attributes or {}).values():
                assert len(str(value)) < 1.01 * ATTRIBUTE_LIMIT
        message = captured.named("send_message")[0].attributes or {}
        assert message["mast.content.truncated"] == ("mast.message.content",)
        called = captured.named("execute_tool")[0].attributes or {}
        assert called["mast.content.truncated"] == (
            "gen_ai.tool.call.arguments",
            "gen_ai.tool.call.result",
        )
        turn = captured.named("invoke_agent")[0].attributes or {}
        assert turn["mast.content.truncated"] == ("gen_ai.input.messages",)
        first, second, third = json.loads(str(turn["gen_ai.input.messages"]))
        assert "characters cut by mast-trace" in first["parts"][0]["content"]
        assert second["parts"][0]["content"] == "short"
        assert "characters cut by mast-trace" in str(third["parts"][0]["arguments"])
