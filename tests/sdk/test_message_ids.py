"""Ids of the messages of a run: one for each message, in every input that shows it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mast_trace.content import content_hash
from mast_trace.messages import Message, ToolCall
from mast_trace.spans.message_ids import UNNAMED_CALL, MessageIds

YES = content_hash("yes")


@pytest.fixture
def ids() -> MessageIds:
    return MessageIds()


def user(text: str, identity: str | None = None) -> Message:
    return Message(text, role="user", id=identity)


def result(text: str, call: str) -> Message:
    return Message(text, role="tool", tool_call_id=call)


def hashed(text: str, calls: str) -> str:
    return content_hash(f"{content_hash(text)}.{calls}")


class TestShown:
    """Inputs of agents and models."""

    def test_is_new_once(self, ids: MessageIds) -> None:
        """Under the framework's id, or one that is made of the text, in whichever role."""
        first = [Message("a", id="m1"), Message("b"), Message("a", id="m1")]
        key = content_hash("b")
        assert ids.show(first) == [("m1", True), (key, True), ("m1", False)]
        assert ids.show([user("b"), Message("c", id="m3")]) == [(key, False), ("m3", True)]

    def test_equal_texts_of_a_list_are_messages_of_their_own(self, ids: MessageIds) -> None:
        """Known by their place among each other: a history that grows keeps their ids."""
        history = [user("yes"), Message("Sure?"), user("yes")]
        sure = content_hash("Sure?")
        assert ids.show(history) == [(YES, True), (sure, True), (f"{YES}#2", True)]
        assert ids.show(history[:1]) == [(YES, False)]
        assert ids.show([*history, user("yes")]) == [
            (YES, False),
            (sure, False),
            (f"{YES}#2", False),
            (f"{YES}#3", True),
        ]

    def test_a_text_under_an_id_that_is_taken_gets_its_own(self, ids: MessageIds) -> None:
        """A text under a taken id gets the same new id each time."""
        other = "m1#" + content_hash("b")
        shown = [Message("a", id="m1"), Message("b", id="m1")]
        assert ids.show(shown) == [("m1", True), (other, True)]
        assert ids.show([Message("b", id="m1")]) == [(other, False)]
        assert ids.say(Message("c", id="m1")) == "m1#" + content_hash("c")
        call = Message("x", id="m1", tool_call_id="c1")
        assert ids.say(call) == "m1#" + hashed("x", "c1")

    def test_equal_texts_under_different_ids_are_different(self, ids: MessageIds) -> None:
        shown = [user("yes", "m1"), Message("yes", id="m2"), user("yes", "m3")]
        assert ids.show(shown) == [("m1", True), ("m2", True), ("m3", True)]

    def test_a_text_that_gets_an_id_later_keeps_its_first(self, ids: MessageIds) -> None:
        """A program hands over a text, the framework makes a message of it."""
        assert ids.show([user("yes")]) == [(YES, True)]
        assert ids.show([user("yes", "u1")]) == [(YES, False)]
        assert ids.show([user("yes", "u1"), user("yes", "u2")]) == [(YES, False), ("u2", True)]
        assert ids.say(user("yes", "u1")) == YES
        assert (ids.known_as("u1"), ids.known_as("u2")) == (YES, "u2")

    def test_ids_that_come_later_go_to_the_messages_in_order(self, ids: MessageIds) -> None:
        """Later ids do not go to messages that are shown under our own."""
        sent = [ids.say(Message("yes"), agent, agent) for agent in "abc"]
        ids.keep(sent[0])
        shown = ids.show([Message("yes", id=f"u{number}") for number in range(3)])
        assert shown == [(sent[1], False), (sent[2], False), ("u2", True)]
        assert ids.known_as("u0") == sent[1]


class TestSaid:
    """Messages with a span."""

    def test_the_same_words_are_another_message(self, ids: MessageIds) -> None:
        """Three agents approve what the user approved."""
        assert ids.show([user("yes")]) == [(YES, True)]
        agents = ["a", "b", "c"]
        sent = [ids.say(Message("yes"), agent, agent) for agent in agents]
        assert sent == [f"{YES}#2", f"{YES}#3", f"{YES}#4"]
        history = [user("yes"), *[Message("yes")] * 3]
        assert ids.show(history) == [(each, False) for each in (YES, *sent)]

    def test_an_id_of_the_framework_tells_messages_apart(self, ids: MessageIds) -> None:
        """The message span with the framework's id marks one message as passed on."""
        assert ids.say(Message("yes")) == YES
        assert ids.say(Message("yes", id="m2")) == "m2"
        assert ids.say(Message("yes", id="m2")) == "m2"
        assert ids.say(Message("yes", id=YES)) == YES
        assert ids.show([Message("yes"), Message("yes")]) == [(YES, False), ("m2", False)]

    def test_an_answer_becomes_the_message_of_its_agent(self, ids: MessageIds) -> None:
        """Any of the agents that answered alike may speak first."""
        answers = {agent: ids.answer(Message("yes"), agent) for agent in ("a", "b", "c")}
        assert list(answers.values()) == [(YES, True), (f"{YES}#2", True), (f"{YES}#3", True)]
        for agent in ("c", "a", "b"):
            assert ids.say(Message("yes"), agent, agent) == answers[agent][0]
        assert ids.say(Message("yes"), "a", "a") == f"{YES}#4"

    def test_nobody_says_the_answer_of_another(self, ids: MessageIds) -> None:
        assert ids.answer(Message("yes"), "manager") == (YES, True)
        assert ids.say(Message("yes"), "a", "a") == f"{YES}#2"
        assert ids.say(Message("yes"), "manager") == YES

    def test_an_answer_with_an_id_is_said_without(self, ids: MessageIds) -> None:
        """A node makes a message of its own of what its model answered."""
        assert ids.answer(Message("yes", id="r1"), "a") == ("r1", True)
        assert ids.say(Message("yes"), "a", "a") == "r1"
        assert ids.say(Message("yes"), "a", "a") == YES

    def test_an_answer_is_said_under_an_id(self, ids: MessageIds) -> None:
        """From then on its text is known by that."""
        assert ids.answer(Message("yes"), "a") == (YES, True)
        assert ids.say(Message("yes", id="m1"), "a") == "m1"
        assert ids.show([Message("yes")]) == [("m1", False)]
        assert ids.say(Message("yes"), "a") == f"{YES}#2"

    def test_a_task_that_was_shown_arrives(self, ids: MessageIds) -> None:
        """Outside of any agent's turn, and in the role in which it was shown."""
        assert ids.show([user("yes")]) == [(YES, True)]
        assert ids.say(user("yes"), "user", "a") == f"{YES}#2"
        assert ids.say(Message("yes"), "a") == f"{YES}#3"
        assert ids.say(user("yes"), "user") == YES

    def test_a_request_is_known_by_its_calls(self, ids: MessageIds) -> None:
        """The answer that asks for them, the message that it becomes, and what is shown later."""
        asks = Message("", tool_calls=(ToolCall("look_up", "{}", "c1"),))
        again = Message("", tool_calls=(ToolCall("look_up", "{}", "c2"),))
        first = asks.key
        assert ids.answer(asks, "a") == (first, True)
        assert ids.say(asks, "a") == first
        assert ids.answer(again, "a") == (content_hash(f"{first}.c2"), True)
        assert ids.show([asks, again, asks]) == [
            (first, False),
            (content_hash(f"{first}.c2"), False),
            (first, False),
        ]
        assert ids.say(asks, "a") == content_hash(f"{first}.c1")

    def test_requests_without_ids_of_calls_are_known_by_their_place(self, ids: MessageIds) -> None:
        asks = Message("", tool_calls=(ToolCall("look_up", "{}"), ToolCall("look_up", "{}")))
        assert ids.answer(asks, "a") == (asks.key, True)
        assert ids.say(Message("", id="m1", tool_calls=asks.tool_calls), "a") == "m1"
        assert ids.show([asks, asks]) == [("m1", False), (f"{asks.key}#2", True)]


class TestResults:
    """Results of tools."""

    def test_are_new_for_each_call(self, ids: MessageIds) -> None:
        """A plain message in the words of a result is known by the first where it is shown."""
        second = hashed("ok", "c2")
        shown = [result("ok", call) for call in ("c1", "c2", "c1")]
        key = content_hash("ok")
        assert ids.show(shown) == [(key, True), (second, True), (key, False)]
        assert ids.show([Message("ok")]) == [(key, False)]
        assert ids.say(Message("ok"), "a") == f"{key}#2"

    def test_of_calls_without_ids_are_shown_in_order(self, ids: MessageIds) -> None:
        """Each is the result of the next call that is shown with it."""
        returned = [ids.result(result("ok", UNNAMED_CALL)) for _ in range(2)]
        assert all(new for _, new in returned)
        (first, _), (second, _) = returned
        assert first != second
        assert ids.show([result("ok", "c8"), result("ok", "c9")]) == [
            (first, False),
            (second, False),
        ]
        assert ids.show([result("ok", "c9"), result("ok", "c8")]) == [
            (second, False),
            (first, False),
        ]
        assert ids.show([result("ok", "c7")]) == [(hashed("ok", "c7"), True)]

    def test_under_an_id_of_the_framework(self, ids: MessageIds) -> None:
        """The message with a result is the result, whose text the tool's span holds."""
        assert ids.result(result("ok", "c1")) == (content_hash("ok"), True)
        message = Message("ok", role="tool", id="m7", tool_call_id="c1")
        assert ids.show([message]) == [(content_hash("ok"), False)]
        assert ids.known_as("m7") == content_hash("ok")


def test_many_threads_get_different_ids(ids: MessageIds) -> None:
    """Ids differ even while other threads show messages."""

    def speak(agent: str) -> list[str]:
        sent = []
        for _ in range(50):
            ids.answer(Message("yes"), agent)
            sent.append(ids.say(Message("yes"), agent, agent))
            ids.show([Message("yes")] * 3)
        return sent

    with ThreadPoolExecutor(8) as pool:
        sent = [identity for each in pool.map(speak, "abcdefgh") for identity in each]
    assert len(set(sent)) == len(sent) == 400


def test_an_argument_that_is_recorded_while_it_is_shown(ids: MessageIds) -> None:
    """A value's `__str__` may itself send messages of the same run; nobody waits for the other."""

    class Talking:
        def __str__(self) -> str:
            ids.show([Message("I am asked who I am.")])
            return "talking"

    call = Message("Look it up.", tool_calls=(ToolCall("look_up", {"who": Talking()}),))
    held: list[tuple[str, bool]] = []
    thread = threading.Thread(target=lambda: held.extend(ids.show([call])), daemon=True)
    thread.start()
    thread.join(30)
    assert [new for _, new in held] == [True]


def test_an_argument_that_waits_for_another_thread_while_it_is_shown() -> None:
    """A value's `__str__` may wait for a thread that itself needs the key of a message."""

    def key_of_another() -> str:
        found: list[str] = []
        other = Message("", tool_calls=(ToolCall("look_up", {"who": "me"}),))
        thread = threading.Thread(target=lambda: found.append(other.key), daemon=True)
        thread.start()
        thread.join(10)
        return found[0] if found else "nothing"

    class Asking:
        answer = ""

        def __str__(self) -> str:
            self.answer = key_of_another()
            return "asking"

    asking = Asking()
    assert Message("", tool_calls=(ToolCall("look_up", {"who": asking}),)).key
    assert asking.answer == key_of_another() != "nothing"


def test_a_message_under_another_id_is_the_same_but_for_it() -> None:
    """Return whether or not its key was asked for before."""
    message = Message("Yes.", "user", "ann", tool_calls=(ToolCall("look_up", {}, "c1"),))
    assert message.with_id("m1") == Message("Yes.", "user", "ann", "m1", message.tool_calls)
    assert message.key == message.with_id("m2").key
    assert message.with_id("m3").calls == "c1"
    assert message.id is None
