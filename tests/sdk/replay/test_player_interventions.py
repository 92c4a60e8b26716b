"""The player with an intervention: served before the border, changed at it, live after it."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

import pytest

from mast_trace.messages import Message, ToolCall
from mast_trace.replay.canonical import canonical_arguments, canonical_request
from mast_trace.replay.intervention import Intervention, LaterChange, LaterResult, with_answer
from mast_trace.replay.live import LiveCall, LiveCalls
from mast_trace.replay.player import Blocked, Live, Pending, Player
from mast_trace.replay.tape import Exchange, Execution, Tape

if TYPE_CHECKING:
    from pathlib import Path

PAY = ToolCall("pay", '{"eur": 5}', "c1")


def asked(text: str) -> list[Message]:
    """Return the messages of a request."""
    return [Message(text, role="user")]


def exchange(text: str, answer: str, *calls: ToolCall) -> Exchange:
    """Return a recorded model call of the agent ``a``."""
    return Exchange("a", canonical_request(asked(text)), Message(answer, tool_calls=calls))


@pytest.fixture
def log(tmp_path: Path) -> LiveCalls:
    """A log of live calls without a limit."""
    return LiveCalls(tmp_path / "live.jsonl")


def player(log: LiveCalls, change: Intervention, *entries: Exchange, **more) -> Player:
    """Return a player of a tape with the entries."""
    tape = Tape("run", entries or THREE, more.pop("executions", ()))
    return Player(tape, more.pop("live_tools", ()), intervention=change, live=log)


THREE = tuple(exchange(word, word.upper()) for word in ("one", "two", "three"))


def served(found: object) -> str:
    """Return the text of a served answer."""
    assert isinstance(found, Exchange)
    assert found.answer is not None
    return found.answer.content


def test_a_miss_before_the_change_is_never_live(log: LiveCalls) -> None:
    """An unrecorded request diverges, and nothing is live after it either."""
    own = player(log, Intervention("keep", 1, 2))
    assert served(own.exchange(asked("one"), "a")) == "ONE"
    assert own.exchange(asked("other"), "a") is None
    assert own.exchange(asked("two"), "a") is None
    divergence = own.report().divergence
    assert divergence is not None
    assert not divergence.after
    assert log.calls() == ()


def test_a_miss_after_the_change_is_live(log: LiveCalls) -> None:
    """After the kept answer even a recorded request is live, unless it is held."""
    for hold, expected in ((False, Live), (True, Exchange)):
        own = player(log, Intervention("keep", 1, 2, hold=hold))
        own.exchange(asked("one"), "a")
        own.exchange(asked("two"), "a")
        assert isinstance(own.exchange(asked("other"), "a"), Live)
        assert isinstance(own.exchange(asked("three"), "a"), expected)


def test_an_earlier_answer_is_served_even_if_asked_for_late(log: LiveCalls) -> None:
    """A parallel branch that asks late for an answer before the border gets the recorded one."""
    own = player(log, Intervention("answer", 1, 2, Message("new")))
    assert served(own.exchange(asked("two"), "a")) == "new"
    assert served(own.exchange(asked("one"), "a")) == "ONE"
    assert log.calls() == ()


def test_a_parallel_branch_waits_for_the_change(log: LiveCalls) -> None:
    """A request that was answered after the border waits, and is live once the change is made."""
    own = player(log, Intervention("keep", 0, 1))
    assert own.exchange(asked("three"), "a", waits=True) == Pending()
    assert log.calls() == ()
    own.exchange(asked("one"), "a")
    assert isinstance(own.exchange(asked("three"), "a", waits=True), Live)


def test_a_branch_that_cannot_wait_any_more_diverges(log: LiveCalls) -> None:
    """A waiting request does not go live if the change never comes: it diverges."""
    own = player(log, Intervention("keep", 0, 1))
    assert own.exchange(asked("three"), "a", waits=False) is None
    assert own.report().divergence is not None
    assert log.calls() == ()


def test_an_attempt_again_goes_to_the_same_model(log: LiveCalls) -> None:
    """The client's attempt after a failure is asked of the other model, later requests of its own."""
    own = player(log, Intervention("ask", 0, 0, model="large"))
    first = own.exchange(asked("one"), "a", "small")
    assert first == Live(0, "large")
    own.answered(first, 503)
    again = own.exchange(asked("one"), "a", "small")
    assert again == Live(1, "large")
    own.answered(again, 200)
    assert own.exchange(asked("one"), "a", "small") == Live(2, "")
    assert [(call.model, call.status) for call in log.calls()] == [
        ("large", 503),
        ("large", 200),
        ("small", 0),
    ]


def test_an_uninterpretable_request_is_live_after_the_change_only(log: LiveCalls) -> None:
    """A request that no tape can answer diverges before the change; after it, it is counted."""
    assert player(log, Intervention("keep", 0, 1)).opaque({"model": "m"}, "embeddings") is None
    own = player(log, Intervention("start"))
    assert own.opaque({"model": "m"}, "embeddings") == Live(0)
    assert log.calls()[0].model == "m"


class TestLaterChanges:
    """The later parts of a joint fix meet the call that their agent makes in the same place."""

    def own(self, log: LiveCalls, *also: LaterChange) -> Player:
        entries = [*THREE, Exchange("b", canonical_request(asked("b one")), Message("B ONE"))]
        return player(log, Intervention("answer", 0, 1, Message("new"), also=also), *entries)

    def test_a_request_that_was_never_recorded(self, log: LiveCalls) -> None:
        own = self.own(log, LaterChange(2, Message("third")), LaterChange(3, Message("of b")))
        assert own.report().unmade_changes == 2
        assert served(own.exchange(asked("one"), "a")) == "new"
        assert isinstance(own.exchange(asked("another"), "a"), Live)
        assert served(own.exchange(asked("b otherwise"), "b")) == "of b"
        assert served(own.exchange(asked("and another"), "a")) == "third"
        assert isinstance(own.exchange(asked("three"), "a"), Live)
        assert own.report().unmade_changes == 0

    def test_an_attempt_again_is_no_turn(self, log: LiveCalls) -> None:
        """A client that repeats a failed call does not move the later change to an earlier call."""
        own = self.own(log, LaterChange(2, Message("third")))
        own.exchange(asked("one"), "a")
        failed = own.exchange(asked("two"), "a")
        assert isinstance(failed, Live)
        own.answered(failed, 503)
        again = own.exchange(asked("two"), "a")
        assert isinstance(again, Live)
        own.answered(again, 200)
        assert served(own.exchange(asked("three"), "a")) == "third"

    def test_another_model_is_asked_at_each_attempt_and_no_longer(self, log: LiveCalls) -> None:
        own = self.own(log, LaterChange(1, model="large"))
        own.exchange(asked("one"), "a")
        first = own.exchange(asked("two"), "a", "small")
        assert first == Live(0, "large")
        own.answered(first, 503)
        second = own.exchange(asked("two"), "a", "small")
        assert second == Live(1, "large")
        own.answered(second, 200)
        assert own.exchange(asked("three"), "a", "small") == Live(2)

    def test_before_the_first_change_nothing_is_changed(self, log: LiveCalls) -> None:
        own = self.own(log, LaterChange(1, Message("early")))
        assert own.exchange(asked("two"), "a", waits=True) == Pending()
        assert own.report().unmade_changes == 1

    def test_a_later_result_is_that_of_the_recorded_arguments(self, log: LiveCalls) -> None:
        """It is served after the first change alone, and again for each further call."""
        paid = tuple(Execution("a", "pay", canonical_arguments({"eur": n}), "paid") for n in (5, 6))
        change = Intervention("answer", 0, 1, Message("new"), results=(LaterResult(1, "refused"),))
        own = player(log, change, executions=paid)
        own.exchange(asked("one"), "a")
        assert own.report().unmade_changes == 1
        results = [own.execution("pay", {"eur": n}, "", "b") for n in (5, 6, 6)]
        assert [each.result for each in results if each] == ["paid", "refused", "refused"]
        assert own.report().unmade_changes == 0

    def test_a_later_result_is_recorded_before_the_first_change(self, log: LiveCalls) -> None:
        """The change has then not been made, which the report tells."""
        paid = Execution("a", "pay", canonical_arguments({"eur": 5}), "paid")
        change = Intervention("answer", 0, 1, Message("new"), results=(LaterResult(0, "refused"),))
        own = player(log, change, executions=(paid,))
        assert own.execution("pay", {"eur": 5}, "", "a") == paid
        own.exchange(asked("one"), "a")
        assert (own.report().changed, own.report().unmade_changes) == (True, 1)

    def test_they_survive_their_file(self) -> None:
        also = (LaterChange(2, Message("x", tool_calls=(PAY,))), LaterChange(4, model="m"))
        results = (LaterResult(1, "refused"),)
        change = Intervention("answer", 0, 1, Message("y"), also=also, results=results)
        assert Intervention.from_plain(change.to_plain()) == change


class TestTools:
    """Tool calls after the change are answered by arguments, not by ids alone."""

    def own(self, log: LiveCalls, change: Intervention, **more) -> Player:
        paid = Execution("a", "pay", canonical_arguments({"eur": 5}), "paid", "c1")
        made = player(log, change, exchange("one", "", PAY), executions=(paid,), **more)
        made.exchange(asked("one"), "a")
        return made

    def test_a_changed_call_keeps_its_id_and_not_its_result(self, log: LiveCalls) -> None:
        other = Message("", tool_calls=(ToolCall("pay", '{"eur": 6}', "c1"),))
        own = self.own(log, Intervention("answer", 0, 1, other))
        with pytest.raises(Blocked):
            own.execution("pay", {"eur": 6}, "c1", "a")
        divergence = own.report().divergence
        assert divergence is not None
        assert divergence.after

    def test_an_id_of_a_live_answer_may_be_a_recorded_one(self, log: LiveCalls) -> None:
        own = self.own(log, Intervention("keep", 0, 1))
        with pytest.raises(Blocked):
            own.execution("pay", {"eur": 7}, "c1", "a")

    def test_defaults_that_a_framework_fills_in_do_not_matter(self, log: LiveCalls) -> None:
        own = self.own(log, Intervention("keep", 0, 1))
        found = own.execution("pay", {"eur": 5.0, "note": None}, "c1", "a")
        assert found is not None
        assert found.result == "paid"

    def test_the_same_call_again_has_the_same_result(self, log: LiveCalls) -> None:
        own = self.own(log, Intervention("keep", 0, 1))
        results = [own.execution("pay", {"eur": 5}, each, "a") for each in ("c1", "c2", "")]
        assert [each.result for each in results if each] == ["paid"] * 3

    def test_a_changed_result_stays_changed(self, log: LiveCalls) -> None:
        own = self.own(log, Intervention("result", 0, 1, result="refused"))
        results = [own.execution("pay", {"eur": 5}, each, "a") for each in ("c1", "c2")]
        assert [each.result for each in results if each] == ["refused"] * 2
        assert own.report().changed

    def test_before_the_change_each_call_is_served_once(self, log: LiveCalls) -> None:
        paid = Execution("a", "pay", canonical_arguments({"eur": 5}), "paid")
        own = player(log, Intervention("keep", 2, 3), executions=(paid,))
        assert own.execution("pay", {"eur": 5}, "", "a") == paid
        with pytest.raises(Blocked):
            own.execution("pay", {"eur": 5}, "", "a")


def test_an_intervention_survives_its_file() -> None:
    """An intervention that is written as JSON and read again is equal to the original."""
    change = Intervention("answer", 3, 4, Message("x", tool_calls=(PAY,)), "r", "m", hold=True)
    assert Intervention.from_plain(change.to_plain()) == change
    assert Intervention.from_plain(Intervention("start").to_plain()) == Intervention("start")


def test_a_changed_answer_ends_as_such_answers_do() -> None:
    """The reason for the end of an answer with tool calls does not outlive the calls."""
    asking = Message("", tool_calls=(PAY,))
    recorded = Exchange("a", (), asking, finish_reason="tool_calls", extra='{"thought": 1}')
    assert with_answer(recorded, Message("no")) == Exchange("a", (), Message("no"))
    other = Message("", tool_calls=(ToolCall("pay", "{}", "c1"),))
    assert with_answer(recorded, other).finish_reason == "tool_calls"


def test_an_intervention_needs_a_log() -> None:
    """Without a log, live calls could not be counted."""
    with pytest.raises(ValueError, match="log of live calls"):
        Player(Tape("run"), intervention=Intervention("start"))


def _begin(path: Path, results: multiprocessing.Queue) -> None:
    log = LiveCalls(path, 20)
    numbers = [log.begin("key", "m") for _ in range(10)]
    results.put([number for number in numbers if number is not None])


def test_processes_share_one_limit(tmp_path: Path) -> None:
    """Three processes that want ten calls each send twenty in all, each with a number of its own."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    path = tmp_path / "live.jsonl"
    workers = [context.Process(target=_begin, args=(path, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    numbers = sorted(number for _ in workers for number in results.get(timeout=60))
    for worker in workers:
        worker.join()
    assert numbers == list(range(20))
    assert LiveCalls(path).calls() == [LiveCall("key", "m")] * 20


def test_a_limit_of_zero(log: LiveCalls, tmp_path: Path) -> None:
    """Nothing is sent, and the report tells that the limit was the reason."""
    none = LiveCalls(tmp_path / "none.jsonl", 0)
    own = player(none, Intervention("start"))
    assert own.exchange(asked("one"), "a") is None
    assert own.report().over_budget
    assert own.report().divergence is None
    assert none.calls() == []
    assert log.calls() == ()
