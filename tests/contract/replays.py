"""The facts of a client that can be replayed: recorded answers come back, calls after a change reach the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from live_replays import going_live, read_tokens, served
from recorded_calls import ANSWER
from scripted_llm import Reply, last_text

import mast_trace
from contract.clients import ClientContract, both_clients
from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.replay.intervention import Intervention
from mast_trace.testing import capture_spans, replayed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Call = Callable[..., Any]

FIXED = Intervention("answer", 0, 1, Message("fixed"))
LARGE = Intervention("ask", 1, 1, model="large")
PLAIN = ("Hello", "Use a tool", "refuse")


def continued(request: dict[str, Any]) -> str:
    """Answer with the words of the request, so that a correction reaches the end."""
    return f"[{last_text(request)}]"


class ReplayedClientContract(ClientContract):
    """The facts of a client, those of its replays included.

    Attributes:
        replay_ways: the ways that are replayed, unless all are.
        extras: texts that are answered with more than a text, such as thoughts and citations.
    """

    replay_ways: ClassVar[Sequence[str]] = ()
    extras: ClassVar[Sequence[str]]

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "replay_way": list(self.replay_ways or self.ways)}

    def teller(self, asynchronous: bool) -> Callable[..., Any]:
        return self.atell if asynchronous else self.tell

    @both_clients
    def test_every_answer_is_replayed(
        self, replay_way: str, asynchronous: bool, call: Call
    ) -> None:
        """Texts, calls and errors are the recorded ones, extras field by field; no request is sent."""

        def program() -> list[Any]:
            said: list[Any] = []
            tell, options = self.teller(asynchronous), {**self.options, "max_retries": 2}
            with mast_trace.run("work"), mast_trace.agent("worker"):
                for text in PLAIN:
                    try:
                        said.append(call(tell, options, replay_way, text)[:3])
                    except Exception as error:
                        said.append((type(error).__name__, getattr(error, "status_code", None)))
                for text in self.extras:
                    said.append(call(tell, options, replay_way, text))
                    if "stream" not in replay_way:
                        history = [*said[-1].items, {"role": "user", "content": "Go on"}]
                        said.append(call(tell, options, replay_way, "", history)[:3])
            return said

        frameworks = [self.instrumentor.framework]
        with capture_spans(frameworks) as captured:
            first = program()
        asked = len(self.server.requests)
        with replayed(captured.trajectory(), frameworks=frameworks) as replay:
            second = program()
        (_, name, arguments), *others = first[1][1]
        assert (first[0][0], name, arguments, others) == (ANSWER, "look_up", self.arguments, [])
        assert first[2] == ("BadRequestError", 400)
        assert second == first
        replay.assert_identical()
        assert len(self.server.requests) == asked
        kept = [semconv.RESPONSE_EXTRA in span.attributes for span in captured.records]
        assert sum(kept) >= len(self.extras)

    def test_one_recorded_way_answers_another(self) -> None:
        """A recorded call without streaming answers a call with streaming."""
        whole, streamed = self.ways[0], next(way for way in self.ways if "stream" in way)

        def program(way: str) -> Any:
            with mast_trace.run("work"), mast_trace.agent("worker"):
                return self.tell(self.options, way, "Use a tool")[:3]

        frameworks = [self.instrumentor.framework]
        with capture_spans(frameworks) as captured:
            first = program(whole)
        with replayed(captured.trajectory(), frameworks=frameworks) as replay:
            assert program(streamed) == first
        replay.assert_identical()

    def chain(self, call: Call, url: str, way: str, asynchronous: bool, **more: Any) -> list[str]:
        """Ask three times, each time with the answer before."""
        said, options = ["begin"], {**self.options_of(url), **more}
        with mast_trace.run("work"), mast_trace.agent("worker"):
            for _ in range(3):
                said.append(call(self.asking(asynchronous), options, way, said[-1]))
        return said[1:]

    @both_clients
    @pytest.mark.parametrize("change", [FIXED, LARGE])
    def test_calls_after_a_change_are_live(
        self,
        replay_way: str,
        asynchronous: bool,
        change: Intervention,
        call: Call,
        tmp_path: Path,
    ) -> None:
        """They are sent as the program asks for them, counted, and recorded with their tokens."""
        frameworks = [self.instrumentor.framework]
        plain, fixed = ["[begin]", "[[begin]]", "[[[begin]]]"], ["fixed", "[fixed]", "[[fixed]]"]
        with self.serving(continued) as model:
            asked = (call, model.url, replay_way, asynchronous)
            with capture_spans(frameworks) as captured:
                assert self.chain(*asked) == plain
            run, before = captured.trajectory(), len(model.requests)
            with going_live(run, change, tmp_path, frameworks=frameworks) as (player, live, again):
                assert self.chain(*asked) == (fixed if change is FIXED else plain)
        first = "scripted" if change is FIXED else "large"
        assert [each["model"] for each in model.requests[before:]] == [first, "scripted"]
        assert [each.status for each in live.calls()] == [200, 200]
        report = player.report()
        assert (report.divergence, report.served_exchanges, report.live_exchanges) == (None, 1, 2)
        assert served(again) == [True, False, False]
        assert read_tokens(again) == [False, True, True]

    @both_clients
    def test_a_failed_live_call_is_tried_again_and_counted(
        self, replay_way: str, asynchronous: bool, call: Call, tmp_path: Path
    ) -> None:
        """The client's attempts are live calls of their own, each with its status."""
        failures = [True]

        def busy(request: dict[str, Any]) -> Reply | str:
            if "fixed" in last_text(request) and failures:
                failures.pop()
                return Reply("busy", status=503)
            return continued(request)

        frameworks = [self.instrumentor.framework]
        with self.serving(busy) as model:
            asked = (call, model.url, replay_way, asynchronous)
            with capture_spans(frameworks) as captured:
                self.chain(*asked)
            run = captured.trajectory()
            with going_live(run, FIXED, tmp_path, frameworks=frameworks) as (_, live, _spans):
                assert self.chain(*asked, max_retries=1)[-1] == "[[fixed]]"
        assert [each.status for each in live.calls()] == [503, 200, 200]
