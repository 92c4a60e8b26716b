"""Inputs of agents in a run, as recorded by their model calls."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mast_trace.trajectory import Invocation, Step, Trajectory

_QUOTABLE = 20
"""Characters from which a text that occurs in another one counts as a quotation."""
_SEARCHED = 2_000_000_000
"""Characters that are searched for quotations in one run: about two seconds."""
_A_SEARCH = 2000
"""Characters that each search counts beside those that it looks at."""
_FOLDED = 64_000_000
"""Characters of an agent's inputs that are kept for the search."""
_TRIED = 500
"""Number of earlier calls, the nearest ones, that are compared."""


@dataclass
class Allowance:
    """The search budget of one run; beyond it, a text counts as quoted, because the opposite is unproven."""

    searched: int = _SEARCHED
    folded: int = _FOLDED


@dataclass
class Inbox:
    """The inputs of an agent in the run.

    Attributes:
        name: of the agent.
        calls: of its models, or its turns where no call has a recorded input; by their start.
        allowance: shared by the run's inboxes.
    """

    trajectory: Trajectory
    name: str
    calls: list[Invocation]
    allowance: Allowance = field(default_factory=Allowance)
    _arrives: bool | None = None

    @cached_property
    def ids(self) -> set[str]:
        """The messages that it was shown as they are."""
        return {identity for call in self.calls for identity in call.input_ids}

    @cached_property
    def text(self) -> str | None:
        """All inputs of the agent; None if they exceed the limit."""
        texts = self.trajectory.texts
        size = sum(len(texts[identity].content) for identity in self.ids if identity in texts)
        if size > self.allowance.folded:
            return None
        self.allowance.folded -= size
        return folded(self.trajectory, self.ids)

    def quotes(self, step: Step) -> bool:
        """Return whether the text of a step may be part of an input."""
        text = " ".join(step.text[:1000].lower().split())
        if not text:
            return False
        if self.text is None or self.allowance.searched < 0:
            return True
        self.allowance.searched -= len(self.text) + _A_SEARCH
        return text in self.text

    def expects(self, sent: Iterable[Step]) -> bool:
        """Return whether any message that was sent to it arrived.

        Args:
            sent: the messages of which it is a recipient.
        """
        if self._arrives is None:
            to_it = list(sent)
            others = [step for step in to_it if step.agent != self.name]
            self._arrives = any(step.message_id in self.ids for step in to_it) or any(
                len(step.text) >= _QUOTABLE and self.quotes(step) for step in others
            )
        return self._arrives

    def first_after(self, time: int) -> Invocation | None:
        """Return the first call that began after a time, in nanoseconds since the epoch."""
        place = bisect_right(self.calls, time, key=_start)
        return self.calls[place] if place < len(self.calls) else None

    def saw_more_before(self, call: Invocation) -> bool:
        """Return whether an earlier call was shown all that this one was, and more."""
        shown = set(call.input_ids)
        rarest = min((self._places[identity] for identity in shown), key=len, default=[])
        end = bisect_right(rarest, call.start - 1, key=lambda place: self.calls[place].start)
        return any(
            len(self.calls[place].input_ids) > len(shown)
            and set(self.calls[place].input_ids) > shown
            for place in rarest[max(0, end - _TRIED) : end]
        )

    @cached_property
    def _places(self) -> Mapping[str, list[int]]:
        """The calls that showed each message."""
        places: dict[str, list[int]] = defaultdict(list)
        for place, call in enumerate(self.calls):
            for identity in dict.fromkeys(call.input_ids):
                places[identity].append(place)
        return places


def _start(call: Invocation) -> int:
    return call.start


def inboxes_of(trajectory: Trajectory) -> dict[str, Inbox]:
    """Return the inputs of each agent, by its name."""
    inboxes: dict[str, Inbox] = {}
    allowance = Allowance()
    for call in _closest(trajectory):
        inbox = inboxes.get(call.agent)
        if inbox is None:
            inbox = inboxes[call.agent] = Inbox(trajectory, call.agent, [], allowance)
        inbox.calls.append(call)
    return inboxes


def readers_of(trajectory: Trajectory) -> dict[str, Inbox]:
    """Return the inputs of each agent that reads.

    Where calls of models are recorded, an agent without any reads nothing: it runs the tools of
    others, or stands in for a person.
    """
    inboxes = inboxes_of(trajectory)
    models = {name: inbox for name, inbox in inboxes.items() if inbox.calls[0].kind != "agent"}
    return models or inboxes


def _closest(trajectory: Trajectory) -> list[Invocation]:
    """Return each agent's calls of models, or its turns where no call has a recorded input."""
    told = [call for call in trajectory.invocations if call.agent and call.input_ids]
    models = {call.agent for call in told if call.kind != "agent"}
    return [call for call in told if (call.kind != "agent") == (call.agent in models)]
