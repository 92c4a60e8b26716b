"""What agents were shown in a run, as far as their models' inputs say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mast_trace_judge.rules._evidence import folded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mast_trace.trajectory import Invocation, Step, Trajectory

_QUOTABLE = 20
"""Characters from which a text that occurs in another one is taken for a quotation."""


@dataclass
class Inbox:
    """What an agent was shown in the run.

    Attributes:
        name: of the agent.
        calls: of its models, or its turns where no call says what it was shown.
    """

    trajectory: Trajectory
    name: str
    calls: list[Invocation]
    _arrives: bool | None = None

    @cached_property
    def ids(self) -> set[str]:
        """The messages that it was shown as they are."""
        return {identity for call in self.calls for identity in call.input_ids}

    @cached_property
    def text(self) -> str:
        """All that it was shown."""
        return folded(self.trajectory, self.ids)

    def quotes(self, step: Step) -> bool:
        """Whether the text of a step is part of something that it was shown."""
        text = " ".join(step.text[:1000].lower().split())
        return bool(text) and text in self.text

    def expects(self, sent: Iterable[Step]) -> bool:
        """Whether any message that was sent to it arrived."""
        if self._arrives is None:
            to_it = [step for step in sent if self.name in step.recipients]
            others = [step for step in to_it if step.agent != self.name]
            self._arrives = any(step.message_id in self.ids for step in to_it) or any(
                len(step.text) >= _QUOTABLE and self.quotes(step) for step in others
            )
        return self._arrives


def inboxes_of(trajectory: Trajectory) -> dict[str, Inbox]:
    """Return what each agent was shown, by its name."""
    inboxes: dict[str, Inbox] = {}
    for call in _closest(trajectory):
        inboxes.setdefault(call.agent, Inbox(trajectory, call.agent, [])).calls.append(call)
    return inboxes


def readers_of(trajectory: Trajectory) -> dict[str, Inbox]:
    """Return what each agent was shown that reads.

    Where calls of models are recorded, who makes none reads nothing: it runs the tools of others,
    or stands in for a person.
    """
    inboxes = inboxes_of(trajectory)
    models = {name: inbox for name, inbox in inboxes.items() if inbox.calls[0].kind != "agent"}
    return models or inboxes


def _closest(trajectory: Trajectory) -> list[Invocation]:
    """Return each agent's calls of models, or its turns where no call says what it was shown."""
    told = [call for call in trajectory.invocations if call.agent and call.input_ids]
    models = {call.agent for call in told if call.kind != "agent"}
    return [call for call in told if (call.kind != "agent") == (call.agent in models)]
