"""Later changes of a joint fix, each of which waits for its agent's turn.

After the first change the program runs live, so that no later request need be equal to a recorded one.
A later change therefore meets the call of the same place: if it is the recorded agent's third call, it
changes that agent's third call; in a parallel branch its third call there.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mast_trace.replay.intervention import LaterChange
    from mast_trace.replay.tape import Exchange, Tape

    _Caller = tuple[str, str]
    """An agent and its parallel branch; without a branch, the agent wherever it is."""


class Turns:
    """Counts the model calls of each agent, and knows at which of them a change is due.

    Args:
        tape: the record.
        changes: the later changes.
    """

    def __init__(self, tape: Tape, changes: Iterable[LaterChange]) -> None:
        self._due: dict[tuple[_Caller, int], LaterChange] = {}
        self._made: Counter[_Caller] = Counter()
        self._names: dict[str, str] = {}
        self._counted: dict[int, tuple[_Caller, ...]] = {}
        callers = [(each.agent, each.branch) for each in tape.exchanges]
        self._known = {"", *(agent for agent, _ in callers)}
        for change in changes:
            agent, branch = callers[change.position]
            before = callers[: change.position]
            turn = sum(who == agent and (not branch or where == branch) for who, where in before)
            self._due[(agent, branch), turn] = change

    def __len__(self) -> int:
        """Return the number of changes that have not been made."""
        return len(self._due)

    def due(self, agent: str, branch: str) -> LaterChange | None:
        """Return the change that the next call of an agent meets, and take it out; None without one."""
        for caller in self._callers(agent, branch):
            if change := self._due.pop((caller, self._made[caller]), None):
                return change
        return None

    def served(self, agent: str, branch: str, recorded: Exchange) -> None:
        """Count a call that is answered from the record.

        The record may know its agent by another name than the one that the call came with.
        """
        if agent not in self._known:
            self._names[agent] = recorded.agent
        self._made.update(self._callers(recorded.agent, branch))

    def sent(self, agent: str, branch: str, number: int) -> None:
        """Count a call that is sent to a model under a number."""
        self._counted[number] = self._callers(agent, branch)
        self._made.update(self._counted[number])

    def failed(self, number: int) -> None:
        """Take back a call that a model did not answer: its client makes it again."""
        self._made.subtract(self._counted.pop(number, ()))

    def _callers(self, agent: str, branch: str) -> tuple[_Caller, ...]:
        name = self._names.get(agent, agent)
        return ((name, branch), (name, "")) if branch else ((name, ""),)
