"""Answers a replayed program's model and tool calls from a tape, and notes the first divergence."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace.replay.canonical import (
    canonical_arguments,
    canonical_request,
    difference,
    request_key,
)
from mast_trace.replay.live_branches import LiveBranches
from mast_trace.replay.order import Order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mast_trace.messages import Message
    from mast_trace.replay.canonical import Item
    from mast_trace.replay.tape import Exchange, Execution, Tape


@dataclass(frozen=True)
class Divergence:
    """The first divergence of a replayed program: a call that the recorded run does not hold.

    Attributes:
        kind: ``model`` (a model request that the run did not make), ``tool`` (a tool call that the run
            did not make; the tool is not executed) or ``unsupported`` (a request that no tape can
            answer).
        agent: name of the calling agent; empty if unknown.
        text: description; for model requests with the diff to the most similar recorded request, if
            possible one of the same agent.
    """

    kind: str
    agent: str
    text: str


@dataclass(frozen=True)
class Report:
    """Counts of the calls that a player has answered so far, and the first divergence.

    Attributes:
        served_exchanges: model calls that were answered.
        served_executions: tool calls that were answered.
        live_executions: calls of live tools, which were executed.
        waiting_exchanges: recorded model calls that the program has not made yet.
        waiting_executions: recorded tool calls that the program has not made yet.
        divergence: the first divergence; None if there was none so far.
    """

    served_exchanges: int
    served_executions: int
    live_executions: int
    waiting_exchanges: int
    waiting_executions: int
    divergence: Divergence | None


class Player:
    """Serves each entry of a tape once.

    A process has one player, not one for each context, because frameworks run agents in threads and
    tasks that do not inherit the context. Its ``branches`` processes the program's spans.

    Args:
        tape: the record that calls are answered from.
        live_tools: names of tools that are executed where the tape has no result; ``*`` for all.
        changed: called with the new report after each event, while the player's lock is held.
    """

    def __init__(
        self,
        tape: Tape,
        live_tools: Iterable[str] = (),
        changed: Callable[[Report], None] = lambda _report: None,
    ) -> None:
        self._tape = tape
        self._changed = changed
        self._live_tools = frozenset(live_tools)
        self._lock = threading.RLock()
        self._exchanges: dict[str, list[Exchange]] = defaultdict(list)
        for exchange in tape.exchanges:
            self._exchanges[exchange.key].append(exchange)
        self._executions = list(tape.executions)
        self.order = Order(tape.exchanges)
        self.branches = LiveBranches()
        self._served_exchanges = 0
        self._served_executions = 0
        self._live_executions = 0
        self._divergence: Divergence | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Texts that a person typed while the recorded run was made."""
        return self._tape.inputs

    def report(self) -> Report:
        """Return the counts and the divergence so far."""
        with self._lock:
            return self._report()

    def exchange(self, messages: Sequence[Message], agent: str) -> Exchange | None:
        """Return the recorded model call with the same request; None if the program has diverged.

        Among equal requests, those of the same parallel branch come first, then those of the same
        agent; each kind is in recorded order.
        """
        request = canonical_request(messages)
        branch = self.branches.current()
        with self._lock:
            waiting = self._exchanges[request_key(request)]
            if self._divergence is None and waiting:
                own = min(waiting, key=lambda each: _strangeness(each, agent, branch))
                waiting.remove(own)
                self._served_exchanges += 1
                self._changed(self._report())
                return own
            self._diverge("model", agent, self._explained(request, agent))
            return None

    def steer(self, tool: str, arguments: Any, call_id: str) -> None:
        """Remove the entry of a call that is executed because its tool steers the framework."""
        with self._lock:
            recorded = self._recorded(tool, canonical_arguments(arguments), call_id, "")
            if recorded is not None:
                self._executions.remove(recorded)

    def execution(self, tool: str, arguments: Any, call_id: str, agent: str) -> Execution | None:
        """Return the recorded call of a tool; None if the tool is to be executed.

        Raises:
            Blocked: the run has no such call, and the tool is not a live tool.
        """
        if tool in self._tape.handing_over:
            return None
        asked = canonical_arguments(arguments)
        with self._lock:
            recorded = self._recorded(tool, asked, call_id, agent)
            if recorded is not None:
                self._executions.remove(recorded)
                self._served_executions += 1
                self._changed(self._report())
                return recorded
            if self._live_tools & {tool, "*"}:
                self._live_executions += 1
                self._changed(self._report())
                return None
            text = f"The recorded run has no such call of {tool}({asked}); it was not executed."
            self._diverge("tool", agent, text)
            raise Blocked(text)

    def refuse(self, text: str, agent: str = "") -> Divergence:
        """Note a request that no tape can answer, and return the first divergence."""
        with self._lock:
            return self._diverge("unsupported", agent, text)

    def _report(self) -> Report:
        waiting = sum(map(len, self._exchanges.values()))
        return Report(
            self._served_exchanges,
            self._served_executions,
            self._live_executions,
            waiting,
            len(self._executions),
            self._divergence,
        )

    def _recorded(self, tool: str, arguments: str, call_id: str, agent: str) -> Execution | None:
        if self._divergence is not None:
            return None
        same = [each for each in self._executions if _plain_name(each.tool) == _plain_name(tool)]
        if call_id and (asked := [each for each in same if each.call_id == call_id]):
            return asked[0]
        # Some frameworks do not pass the id of a call on to the code that executes the tool.
        same = [each for each in same if each.arguments == arguments]
        if call_id or not same:
            return None
        branch = self.branches.current()
        return min(same, key=lambda each: _strangeness(each, agent, branch))

    def _diverge(self, kind: str, agent: str, text: str) -> Divergence:
        if self._divergence is None:
            self._divergence = Divergence(kind, agent, text)
            self.order.stop()
            self._changed(self._report())
        return self._divergence

    def _explained(self, request: Sequence[Item], agent: str) -> str:
        left = [exchange for waiting in self._exchanges.values() for exchange in waiting]
        who = agent or "an unknown agent"
        if not left:
            return f"{who} asked the model once more than in the recorded run."
        own = [each for each in left if each.agent == agent] or left
        nearest = min(own, key=lambda each: _distance(each.request, request))
        return f"{who} asked the model otherwise:\n{difference(nearest.request, request)}"


class Blocked(Exception):  # an expected event, so the name has no suffix Error
    """A tool call that the recorded run does not hold; the tool was not executed."""


def _strangeness(entry: Exchange | Execution, agent: str, branch: str) -> tuple[bool, bool, bool]:
    """Return a sort key: smaller for entries of the same branch, then of the same agent."""
    other = entry.branch != branch
    return bool(branch) and other, entry.agent != agent, bool(entry.branch) and other


def _plain_name(tool: str) -> str:
    """Return a tool's name in the form that frameworks send to models: letters, digits and _."""
    return re.sub(r"\W+", "_", tool).casefold()


def _distance(recorded: Sequence[Item], asked: Sequence[Item]) -> tuple[int, int]:
    """Return a sort key: smaller for requests with more equal items, then for closer lengths."""
    same = sum(one == other for one, other in zip(recorded, asked, strict=False))
    return -same, abs(len(recorded) - len(asked))
