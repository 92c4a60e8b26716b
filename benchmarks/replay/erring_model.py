"""A model that errs at random, for a team that adds up numbers: its success rate after every step is known.

The team has one agent for each number. An agent looks its number up, reads the last sum, and reports the next:
two decisions, of which only the report may be wrong. A wrong report adds too much, so that no later one can repair
it. The real team (``real_team.py``) and its simulation (``team_bounds.py``) draw from the same model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

NUMBERS = (130, 85, 40, 210, 55)
"""Number of each agent."""

LENGTH = 2 * len(NUMBERS)
"""Decisions of a run."""

PLANTED = 1000
"""Amount by which a planted error is wrong; those of chance are smaller."""

PLACES = range(len(NUMBERS) - 1)
"""Agents that may have a planted error; an agent after it errs by chance."""


def decision_of(agent: int) -> int:
    """Return the index of an agent's report among the decisions."""
    return 2 * agent + 1


@dataclass
class ErringModel:
    """The model of the team.

    Attributes:
        rate: success rate of the reports after `place` together, which err alike.
        place: agent with the planted error; the reports up to it are never wrong by chance.
        planted: whether the error is made, in the recorded run or in every replay.
        draw: the source of chance; None for a model that makes no error but the planted one.
    """

    rate: float
    place: int
    planted: bool
    draw: random.Random | None = field(default=None, repr=False)

    @property
    def chance(self) -> float:
        """Chance that one of the reports after `place` is wrong."""
        after = len(NUMBERS) - 1 - self.place
        return float(1 - self.rate ** (1 / after))

    def excess(self, agent: int) -> int:
        """Return the amount by which an agent's next report is wrong; 0 for a right one."""
        if agent == self.place:
            return PLANTED if self.planted else 0
        if agent < self.place or self.draw is None or self.draw.random() >= self.chance:
            return 0
        return self.draw.randrange(1, PLANTED // len(NUMBERS))

    def __call__(self, request: Mapping[str, Any]) -> Any:
        """Answer a request of the real team, as a script of `scripted_llm.ScriptedLLM`."""
        from scripted_llm import Call, Reply, messages_of, system_text

        agent = int(re.findall(r"Adder (\d+)", system_text(request))[0])
        messages = messages_of(request)
        if messages[-1].get("role") != "tool":
            return Reply(calls=(Call("look_up", {"agent": agent}),))
        texts = [str(each.get("content") or "") for each in messages]
        last = int(re.findall(r"The sum is (\d+)", "\n".join(texts))[-1])
        number = int(re.findall(r"The number is (\d+)", texts[-1])[-1])
        return report(last + number + self.excess(agent))


def report(total: int) -> str:
    """Return the words of a report."""
    return f"The sum is {total}."


def is_right(answer: str) -> bool:
    """Return whether a final answer is right."""
    return answer == report(sum(NUMBERS))
