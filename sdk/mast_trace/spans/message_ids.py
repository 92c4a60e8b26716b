"""Ids of a run's messages: one for each message, even if it is shown many times.

Most frameworks give their messages no ids, and every input shows all of them again. A message is
identified by the framework's id, by the ids of its tool calls, else by its text and its position
among the messages with this text: the first "yes" of a history is the first that was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace.content import content_hash
from mast_trace.fork_safe import reentrant_lock

if TYPE_CHECKING:
    from mast_trace.messages import Message

UNNAMED_CALL = "?"
"""Stands for the id of a tool call where the framework gives the tool's execution none."""

_MOST_UNSENT = 256  # equal texts without a message span; they are searched one by one

Held = tuple[str, bool]
"""The id of a message, and whether the message is new, so that a span has to hold its text."""


@dataclass(slots=True)
class _Unsent:
    """A message that no message span represents yet.

    Attributes:
        identity: its id.
        agent: the agent whose model, or turn, answered it; None for a message of an input.
        shown_as: the role under which an input showed it; empty for an answer.
    """

    identity: str
    agent: str | None
    shown_as: str = ""


class MessageIds:
    """The ids of one run's messages. Its methods may be called from several threads.

    An id that is made here is the message's `Message.key`, with a number where that is taken. A
    **text** is the key, with the ids of the tool calls that the message asks for or answers.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}  # by id
        self._ids: dict[str, str | list[str]] = {}  # by text, in the order of the messages
        self._by_call: dict[str, str] = {}  # by key, of the first message that has calls
        self._unsent: dict[str, list[_Unsent]] = {}  # by key
        self._sent_calls: set[str] = set()
        self._names: dict[str, str] = {}  # ours, by the id that the framework gave later
        self._shown_as_ours: set[str] = set()  # ids of ours that need no other name
        # by text: the position before which all messages have a name
        self._place_of_unnamed: dict[str, int] = {}
        # Reentrant: the garbage collector may end another span of the run while it is held.
        self._lock = reentrant_lock()

    def show(self, messages: Sequence[Message]) -> list[Held]:
        """Return the ids of messages that an agent or a model sees, in order."""
        # Keys are made before the lock is taken: they may run the user's own `__str__`.
        shown = [(m, m.key, m.calls) for m in messages]
        before: dict[str, int] = {}  # number of equal texts in the list so far
        held: list[Held] = []
        texts, names = self._texts, self._names
        with self._lock:
            for message, key, calls in shown:
                given = message.id
                if given:
                    # Histories are shown again and again: known messages cost no call.
                    identity = names.get(given, given)
                    if texts.get(identity) == (f"{key}.{calls}" if calls else key):
                        held.append((identity, False))
                    else:
                        held.append(self._named(given, key, calls))
                elif calls:
                    held.append(self._of_call(key, calls))
                else:
                    place = before[key] = before.get(key, -1) + 1
                    held.append(self._in_place(key, place, message.role))
        return held

    def answer(self, message: Message, agent: str | None = None) -> Held:
        """Return the id of an answer that a model, or an agent's turn, has just given.

        Args:
            message: the answer. In the words of an earlier one it is another message.
            agent: the one that is acting.
        """
        key, calls = message.key, message.calls
        with self._lock:
            if message.id:
                identity, new = self._named(message.id, key, calls)
                if new and not calls:
                    self._await(key, _Unsent(identity, agent))
                return identity, new
            if calls:
                return self._of_call(key, calls)
            return self._leave_unsent(key, agent), True

    def result(self, message: Message) -> Held:
        """Return the id of a tool's result, under `UNNAMED_CALL` if the call has no id."""
        key, calls = message.key, message.calls
        with self._lock:
            if calls == UNNAMED_CALL:
                return self._new(key, calls), True
            return self._of_call(key, calls)

    def say(self, message: Message, sender: str = "", acting: str | None = None) -> str:
        """Return the id of a message that is sent now.

        A model's answer and the message that it becomes have one id. So have a text that was shown
        before, such as the task, and the message by which it arrives outside of any agent's turn.
        The same text sent once more is another message.

        Args:
            message: to be sent.
            sender: name of the speaker.
            acting: the agent in whose turn it is sent; None outside of turns.
        """
        key, calls = message.key, message.calls
        with self._lock:
            if message.id:
                return self._say_named(message.id, key, calls, {sender, acting})
            if calls:
                identity, _ = self._of_call(key, calls)
                if identity in self._sent_calls:
                    return self._new(key, calls)
                self._sent_calls.add(identity)
                return identity
            role = "" if acting else message.role
            return self._take_unsent(key, {sender, acting}, role) or self._new(key, "")

    def keep(self, identity: str) -> None:
        """Note that inputs show a message under our id from now on, and give it no other."""
        self._shown_as_ours.add(identity)

    def known_as(self, given: str) -> str:
        """Return our id of the message that the framework calls ``given``."""
        return self._names.get(given, given)

    def _named(self, given: str, key: str, calls: str) -> Held:
        """Return the id of a message that has one from the framework.

        A different text under it gets its own.
        """
        text = _text(key, calls)
        identity = self._names.get(given, given)
        known = self._texts.get(identity)
        if known == text:
            return identity, False
        if known is None:
            held = self._held_of_call(key, calls) if calls else self._unnamed(key)
            if held is not None:
                self._names[given] = held
                return held, False
            self._add(identity, text, key, calls)
            return identity, True
        identity = f"{given}#{_hash(text, calls)}"
        if identity in self._texts:
            return identity, False
        self._add(identity, text, key, calls)
        return identity, True

    def _say_named(self, given: str, key: str, calls: str, speakers: set[str | None]) -> str:
        text = _text(key, calls)
        identity = self._names.get(given, given)
        known = self._texts.get(identity)
        if known is None and not calls:
            answered = self._take_unsent(key, speakers, "")
            if answered is not None:
                # The reader joins the two ids. From now on the text is known by the framework's id.
                self._texts[given] = text
                self._replace(text, answered, given)
                return given
        if known is not None and known != text:
            identity = f"{given}#{_hash(text, calls)}"
        if identity not in self._texts:
            self._add(identity, text, key, calls)
        for each in self._unsent.get(key, ()):
            if each.identity == identity:
                self._taken(key, each)
                break
        return identity

    def _of_call(self, key: str, calls: str) -> Held:
        """Return the id of a message whose text and tool calls are known, or a new one."""
        held = self._held_of_call(key, calls)
        return (self._new(key, calls), True) if held is None else (held, False)

    def _held_of_call(self, key: str, calls: str) -> str | None:
        held = self._ids.get(f"{key}.{calls}")
        if held is None:
            unnamed = f"{key}.{UNNAMED_CALL}"
            if unnamed not in self._ids:
                return None
            # The first result that a tool returned is the first that is shown, now with its call's
            # id.
            waiting = self._ids[unnamed]
            if isinstance(waiting, str):
                held = self._ids.pop(unnamed)
            else:
                held = waiting.pop(0)
                if not waiting:
                    del self._ids[unnamed]
            self._ids[f"{key}.{calls}"] = held
            if isinstance(held, str):
                self._texts[held] = _text(key, calls)
        return held if isinstance(held, str) else held[0]

    def _in_place(self, key: str, place: int, role: str) -> Held:
        """Return the id of a text without ids by its position among the equal ones of a list."""
        held = self._ids.get(key)
        if held is None:
            answered = self._by_call.get(key)
            if answered is not None:
                return answered, False
        elif isinstance(held, str):
            if place == 0:
                return held, False
        elif place < len(held):
            return held[place], False
        return self._leave_unsent(key, None, role), True

    def _leave_unsent(self, key: str, agent: str | None, shown_as: str = "") -> str:
        identity = self._new(key, "")
        self._await(key, _Unsent(identity, agent, shown_as))
        return identity

    def _await(self, key: str, unsent: _Unsent) -> None:
        waiting = self._unsent.setdefault(key, [])
        waiting.append(unsent)
        if len(waiting) > _MOST_UNSENT:
            del waiting[0]

    def _take_unsent(self, key: str, speakers: set[str | None], role: str) -> str | None:
        """Return the first unsent message that is sent now: an answer, or shown in this role."""
        for each in self._unsent.get(key, ()):
            if each.shown_as:
                if each.shown_as != role:
                    continue
            elif each.agent is not None and each.agent not in speakers:
                continue
            return self._taken(key, each)
        return None

    def _unnamed(self, key: str) -> str | None:
        """Return the first message with a text to which the framework has given no id yet."""
        held = self._ids.get(key)
        if held is None:
            return None
        all_held = [held] if isinstance(held, str) else held
        start = self._place_of_unnamed.get(key, 0)
        for place in range(start, len(all_held)):
            self._place_of_unnamed[key] = place + 1
            identity = all_held[place]
            if identity.startswith(key) and identity not in self._shown_as_ours:
                return identity
        return None

    def _taken(self, key: str, unsent: _Unsent) -> str:
        waiting = self._unsent[key]
        waiting.remove(unsent)
        if not waiting:
            del self._unsent[key]
        return unsent.identity

    def _new(self, key: str, calls: str) -> str:
        """Return a new id."""
        text = _text(key, calls)
        identity = key
        if identity in self._texts:
            identity = plain = _hash(text, calls)
            held = self._ids.get(text)
            number = 1 if held is None or isinstance(held, str) else len(held)
            while identity in self._texts:
                number += 1
                identity = f"{plain}#{number}"
        self._add(identity, text, key, calls)
        return identity

    def _add(self, identity: str, text: str, key: str, calls: str) -> None:
        self._texts[identity] = text
        if calls:
            self._by_call.setdefault(key, identity)
        held = self._ids.get(text)
        if held is None:
            self._ids[text] = identity
        elif isinstance(held, str):
            self._ids[text] = [held, identity]
        else:
            held.append(identity)

    def _replace(self, text: str, old: str, new: str) -> None:
        held = self._ids[text]
        if isinstance(held, str):
            self._ids[text] = new
        else:
            # Searched from the end, where the latest answer is.
            place = next(place for place in range(len(held) - 1, -1, -1) if held[place] == old)
            held[place] = new


def _text(key: str, calls: str) -> str:
    return f"{key}.{calls}" if calls else key


def _hash(text: str, calls: str) -> str:
    return content_hash(text) if calls else text
