"""The player serves each entry of a tape once, to its agent first, and reports divergences."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_trace.messages import Message, ToolCall
from mast_trace.replay.canonical import canonical_arguments, canonical_request
from mast_trace.replay.player import Blocked, Player
from mast_trace.replay.tape import Exchange, Execution, Tape


def asked(text: str) -> list[Message]:
    """Return the messages of a request."""
    return [Message(text, role="user")]


def exchange(agent: str, text: str, answer: str) -> Exchange:
    """Return a recorded model call."""
    return Exchange(agent, canonical_request(asked(text)), Message(answer))


def execution(
    agent: str, tool: str, arguments: object, result: str, call_id: str = ""
) -> Execution:
    """Return a recorded tool call."""
    return Execution(agent, tool, canonical_arguments(arguments), result, call_id)


def test_equal_requests_are_answered_in_the_order_of_the_recording() -> None:
    """Each entry is served once, in recorded order."""
    player = Player(Tape("run", (exchange("a", "go on", "one"), exchange("a", "go on", "two"))))
    said = [player.exchange(asked("go on"), "a") for _ in range(2)]
    assert [each and each.answer and each.answer.content for each in said] == ["one", "two"]
    assert player.exchange(asked("go on"), "a") is None
    divergence = player.report().divergence
    assert divergence is not None
    assert divergence.text == "a asked the model once more than in the recorded run."


def test_an_agent_gets_its_own_answer() -> None:
    """Among equal requests of two agents, each gets the answer to its own."""
    player = Player(Tape("run", (exchange("a", "vote", "yes"), exchange("b", "vote", "no"))))
    found = player.exchange(asked("vote"), "b")
    assert found is not None
    assert found.agent == "b"


def test_after_a_divergence_nothing_is_served() -> None:
    """Calls after a divergence are not answered, as they no longer test the recorded run."""
    player = Player(Tape("run", (exchange("a", "1 + 1", "2"), exchange("a", "1 + 2", "3"))))
    assert player.exchange(asked("1 + 4"), "a") is None
    assert player.exchange(asked("1 + 1"), "a") is None
    report = player.report()
    assert report.served_exchanges == 0
    assert report.divergence is not None
    assert "+user: 1 + 4" in report.divergence.text


def test_a_tool_that_was_not_called_so_is_blocked() -> None:
    """A call with other arguments is blocked, as its side effects would be real."""
    player = Player(Tape("run", (), (execution("a", "pay", {"eur": 5}, "paid"),)))
    with pytest.raises(
        Blocked, match=r"no such call of pay\(\{\"eur\": 6\}\); it was not executed"
    ):
        player.execution("pay", {"eur": 6}, "", "a")
    assert player.report().live_executions == 0


def test_live_tools_are_executed_and_counted() -> None:
    """Live tools are executed; other unrecorded calls are blocked."""
    player = Player(Tape("run"), live_tools=["look"])
    assert player.execution("look", {}, "", "a") is None
    with pytest.raises(Blocked):
        player.execution("pay", {}, "", "a")
    assert player.report().live_executions == 1


def test_a_call_is_found_by_its_id_whatever_its_arguments_became() -> None:
    """A call is found by its id, as frameworks fill in defaults and convert types of arguments."""
    tape = Tape("run", (), (execution("a", "sum", {"x": 1}, "3", "c1"),))
    found = Player(tape).execution("sum", {"x": 1.0, "y": 2}, "c1", "a")
    assert found is not None
    assert found.result == "3"


def test_a_call_of_another_id_is_another_call() -> None:
    """A call with another id does not match; ids come from answers on the tape and never change."""
    tape = Tape("run", (), (execution("a", "sum", {"x": 1}, "3", "c1"),))
    with pytest.raises(Blocked):
        Player(tape).execution("sum", {"x": 1}, "c2", "a")


def test_handing_over_always_happens() -> None:
    """Hand-off tools are executed, because they have no effects outside the process."""
    player = Player(Tape("run", handing_over=("transfer",)))
    assert player.execution("transfer", {}, "", "a") is None
    assert player.report().divergence is None


def test_threads_share_a_tape() -> None:
    """A hundred calls from eight threads are served a hundred different entries."""
    entries = tuple(exchange("a", str(number % 10), f"{number}") for number in range(100))
    player = Player(Tape("run", entries))
    texts = [str(number % 10) for number in range(100)]
    random.Random(1).shuffle(texts)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: player.exchange(asked(text), "a"), texts))
    answers = {each.answer.content for each in found if each is not None and each.answer}
    assert len(answers) == 100
    assert player.report().waiting_exchanges == 0


texts = st.text(max_size=20)
messages = st.builds(
    Message,
    texts,
    role=st.sampled_from(["user", "assistant", "system"]),
    tool_calls=st.lists(st.builds(ToolCall, texts, texts, texts), max_size=2).map(tuple),
)
exchanges = st.builds(
    Exchange,
    texts,
    st.lists(messages, max_size=3).map(canonical_request),
    messages | st.none(),
    texts,
    texts,
    texts,
    texts,
)
executions = st.builds(
    Execution, texts, texts, texts.map(canonical_arguments), texts, texts, texts | st.none(), texts
)


@given(
    st.builds(
        Tape,
        texts,
        st.lists(exchanges, max_size=4).map(tuple),
        st.lists(executions, max_size=4).map(tuple),
        st.lists(texts, max_size=2).map(tuple),
    )
)
def test_a_tape_survives_its_file(tape: Tape) -> None:
    """A tape that is written as JSON and read again is equal to the original."""
    assert Tape.from_json(tape.to_json()) == tape


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "run": "x"}'])
def test_what_is_no_tape_is_refused(text: str) -> None:
    """Invalid tapes raise a ValueError with a clear message."""
    with pytest.raises(ValueError, match=r"tape|Expecting"):
        Tape.from_json(text)
