"""Answers a replayed program's model and tool calls from a tape, and notes the first divergence."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mast_trace.content import content_hash
from mast_trace.fork_safe import reentrant_lock
from mast_trace.replay.canonical import (
    MASKS,
    Item,
    alike,
    canonical_arguments,
    canonical_request,
    difference,
    likeness,
    masked,
    remedy,
    request_key,
    used_masks,
)
from mast_trace.replay.executions import Executions, PlainCalls, strangeness
from mast_trace.replay.intervention import (
    Intervention,
    LaterChange,
    Turns,
    changed_calls,
    with_answer,
)
from mast_trace.replay.live import LiveBranches, LiveCalls
from mast_trace.replay.order import Order, ToolOrder
from mast_trace.replay.parameters import other_parameters

if TYPE_CHECKING:
    from mast_trace.messages import Message
    from mast_trace.replay.network import Network
    from mast_trace.replay.tape import Exchange, Execution, Tape

_FIRST_ERROR = 400
"""The lowest HTTP status that is an error."""


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
        after: whether it came after the change of an intervention.
    """

    kind: str
    agent: str
    text: str
    after: bool = False


@dataclass(frozen=True)
class Live:
    """A model request that is to be sent to a model.

    Attributes:
        number: number of the call, for `Player.answered`.
        model: name of the model that is to be asked; empty for the one that the request names.
        request: the change of its messages; None to send it as it is.
    """

    number: int
    model: str = ""
    request: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Pending:
    """A model request whose recorded answer came after the change, which has not been made yet.

    A parallel branch makes such requests. The caller waits and asks again.
    """


@dataclass(frozen=True)
class ReplayReport:
    """Counts of the calls that a player has answered so far, and the first divergence.

    Attributes:
        served_exchanges: model calls that were answered.
        served_executions: tool calls that were answered.
        live_executions: calls of live tools, which were executed; also those of functions that the program
            executes by itself, as soon as a request carries their result.
        waiting_exchanges: recorded model calls that the program has not made yet.
        waiting_executions: recorded tool calls that the program has not made yet.
        divergence: the first divergence; None if there was none so far.
        live_exchanges: model calls that were sent to a model.
        changed: whether the change of the intervention has been made.
        over_budget: whether a model call was refused because of the limit of live calls.
        other_parameters: description of the first model request that had the recorded messages, but
            another model or other parameters; empty if there was none.
        unmade_changes: changes of a joint fix whose calls the program has not made yet; of the first
            one see ``changed``, unless it is a tool's result.
        masked_places: masks without which a request would not be equal to the recorded one; see
            `mast_trace.replay.normalize`.
        other_requests: place of a call on the tape, its recorded request, and the request that was answered although
            its prompts differ; see `Player`.
    """

    served_exchanges: int
    served_executions: int
    live_executions: int
    waiting_exchanges: int
    waiting_executions: int
    divergence: Divergence | None
    live_exchanges: int = 0
    changed: bool = False
    over_budget: bool = False
    other_parameters: str = ""
    unmade_changes: int = 0
    masked_places: int = 0
    other_requests: Sequence[tuple[int, Sequence[Item], Sequence[Item]]] = ()


@dataclass(frozen=True)
class _Asked:
    """A change by which a model is asked: it holds for each attempt at a request."""

    key: str
    model: str
    request: Mapping[str, Any] | None = None


class Player:
    """Serves each entry of a tape once, up to the border of an intervention if there is one.

    A process has one player, not one for each context, because frameworks run agents in threads and
    tasks that do not inherit the context. Its ``branches`` processes the program's spans, and its
    ``network`` is what the program may reach: None in a test, where nothing is closed.

    Args:
        tape: the record that calls are answered from.
        live_tools: names of tools that are executed where the tape has no result; ``*`` for all.
        changed: called with the new report after each event, while the player's lock is held.
        intervention: the change that is made to the run; without one, no request is ever live.
        live: the log of live calls, which an intervention needs.
        claim: called before the first answer in each process; returns the reason why this process is
            not answered, or nothing. Without it only the process that made the player is answered.
        runs: runs of the program on the tape, after whose end calls are refused and not noted; None if the program
            makes no further ones.
        lenient: whether a request is answered as well whose prompts differ from those of the most similar recorded one.
    """

    def __init__(
        self,
        tape: Tape,
        live_tools: Iterable[str] = (),
        changed: Callable[[ReplayReport], None] = lambda _report: None,
        intervention: Intervention | None = None,
        live: LiveCalls | None = None,
        claim: Callable[[], str] | None = None,
        runs: int | None = None,
        *,
        lenient: bool = False,
    ) -> None:
        if intervention is not None and live is None:
            raise ValueError("An intervention needs a log of live calls.")
        self._tape = tape
        self._changed = changed
        self._live_tools = frozenset(live_tools)
        self._intervention = intervention
        self._live = live
        self._claim = claim or partial(_only, os.getpid())
        self._runs = runs
        self._lenient = lenient
        self._masks = 0
        self._masked_places: set[str] = set()
        self._other_requests: list[tuple[int, Sequence[Item], Sequence[Item]]] = []
        self._admitted = 0
        self._lock = reentrant_lock()
        self._exchanges: dict[str, list[Exchange]] = defaultdict(list)
        for exchange in tape.exchanges:
            self._exchanges[exchange.key].append(exchange)
        self._places = {id(each): place for place, each in enumerate(tape.exchanges)}
        self._executions = Executions(tape)
        self._plain = PlainCalls({*tape.plain_functions} - {*tape.blocks})
        self.order = Order(tape.exchanges)
        self.tool_order = ToolOrder(tape.executions)
        self.branches = LiveBranches()
        self.network: Network | None = None
        self._served_exchanges = 0
        self._served_executions = 0
        self._live_exchanges = 0
        self._live_executions = 0
        self._is_changed = intervention is not None and intervention.change == "start"
        self._asked: _Asked | None = None
        self._turns = Turns(tape, intervention.also if intervention else ())
        self._results = intervention.executions(tape.executions) if intervention else {}
        self._unmade_results = set(self._results)
        self._tools = {id(each): place for place, each in enumerate(tape.executions)}
        self._over_budget = False
        self._answered_spans: set[str] = set()
        self._other_parameters = ""
        self._divergence: Divergence | None = None

    @property
    def inputs(self) -> tuple[tuple[str, str], ...]:
        """Texts that a person typed while the recorded run was made; see `Tape.inputs`."""
        return self._tape.inputs

    def has_answered(self, span_id: str) -> bool:
        """Return whether the tool call of a recorded span has been answered."""
        return span_id in self._answered_spans

    def report(self) -> ReplayReport:
        """Return the counts and the divergence so far."""
        with self._lock:
            return self._report()

    def exchange(
        self, messages: Sequence[Message], agent: str, model: str = "", *, waits: bool = False
    ) -> Exchange | Live | Pending | None:
        """Return the recorded model call with the same request, if it is to be answered from the tape.

        Among equal requests, those of the same parallel branch come first, then those of the same
        agent; each kind is in recorded order.

        Args:
            messages: the request.
            agent: name of the calling agent; empty if unknown.
            model: name of the model that the request names.
            waits: whether the caller can wait for the change of the intervention.

        Returns:
            The recorded call; `Live` for a request that is to be sent; `Pending` if the caller is
            to wait and ask again; None if the program has diverged or its live calls are used up.
        """
        whole = canonical_request(messages)
        request = masked(whole)
        key = request_key(request)
        branch = self.branches.current()
        with self._lock:
            self._admit(agent)
            self._mask()
            self._live_executions += self._plain.executed(messages, live=self._is_changed)
            if self._divergence is not None or self._over_budget or self._is_over():
                return None
            if self._is_changed and (change := self._turns.due(agent, branch)):
                return self._change_later(change, key, agent, branch, model)
            waiting = self._exchanges[key]
            found = min(waiting, key=partial(strangeness, agent, branch), default=None)
            nearest = self._nearest(request, agent) if found is None and self._lenient else None
            if nearest is not None and alike(masked(nearest.request), request):
                found = nearest
                before = masked(found.request)
                self._other_requests.append((self._places[id(found)], before, request))
                waiting = self._exchanges[request_key(before)]
            if found is not None and self._is_on_tape(found):
                waiting.remove(found)
                self._turns.served(agent, branch, found)
                if request_key(whole) != found.key:
                    self._masked_places |= used_masks(whole)
                return self._serve(found)
            if found is not None and self._is_asked_at(found):
                waiting.remove(found)
                self._is_changed = True
                change_of = self._intervention
                assert change_of is not None
                self._asked = _Asked(key, change_of.model, change_of.request)
            if self._is_changed:
                self._stop_ordering()
                return self._counted(self._send(key, model), agent, branch)
            if found is not None and waits:
                return Pending()
            self._diverge("model", agent, self._explained(request, agent))
            return None

    def opaque(self, request: Any, text: str, agent: str = "") -> Live | None:
        """Return whether a request that no tape can answer is to be sent: after the change only.

        Args:
            request: the body, as JSON can hold it.
            text: description for the divergence.
            agent: name of the calling agent; empty if unknown.
        """
        with self._lock:
            if self._is_over():
                return None
            if self._is_changed and self._divergence is None and not self._over_budget:
                model = request.get("model") if isinstance(request, dict) else ""
                shape = json.dumps(request, sort_keys=True, ensure_ascii=False, default=str)
                return self._send(content_hash(shape), str(model or ""))
            self._diverge("unsupported", agent, text)
            return None

    def answered(self, call: Live, status: int) -> None:
        """Note the HTTP status of a live call's response; 0 for a failure without one."""
        if self._live is not None:
            self._live.end(call.number, status)
        with self._lock:
            if not 0 < status < _FIRST_ERROR:
                self._turns.failed(call.number)
            elif call.model:
                self._asked = None

    def steer(self, tool: str, arguments: Any, call_id: str) -> None:
        """Remove the entry of a call that is executed because its tool steers the framework."""
        with self._lock:
            passed = self._executions.take(
                tool, canonical_arguments(arguments), call_id, "", after=self._is_changed
            )
        if passed is not None:
            self.tool_order.release(passed)

    def block(self, tool: str, arguments: Any) -> None:
        """Count a call whose code runs for real in a block, and remove its entry from records that do not tell blocks."""
        self.steer(tool, arguments, "")
        with self._lock:
            self._live_executions += 1
            self._changed(self._report())

    def execution(self, tool: str, arguments: Any, call_id: str, agent: str) -> Execution | None:
        """Return the recorded call of a tool; None if the tool is to be executed.

        Raises:
            Blocked: the run has no such call, and the tool is not a live tool.
        """
        if tool in self._tape.handing_over:
            return None
        asked = canonical_arguments(arguments)
        with self._lock:
            self._admit(agent)
            if self._divergence is None:
                after, branch = self._is_changed, self.branches.current()
                recorded = self._executions.take(
                    tool, asked, call_id, agent, after=after, branch=branch
                )
                if recorded is not None:
                    return self._serve_execution(recorded)
            if self._live_tools & {tool, "*"}:
                self._live_executions += 1
                self._changed(self._report())
                return None
            text = f"The recorded run has no such call of {tool}({asked}); it was not executed."
            if self._is_over():
                raise Blocked(text)
            self._diverge("tool", agent, text)
            raise Blocked(text)

    def answered_otherwise(self, tool: str, call_id: str) -> None:
        """Note the end of a call that may not have reached its tool: a person may have denied it.

        The record holds such a call with the denial as its result.
        """
        with self._lock:
            if call_id and self._divergence is None:
                for passed in self._executions.forget(tool, call_id):
                    self.tool_order.release(passed)

    def note_parameters(self, exchange: Exchange, model: str, parameters: Sequence[str]) -> None:
        """Compare the model and the parameters of an answered request with the recorded ones.

        Args:
            exchange: the recorded call that answers the request.
            model: the model that the request names; empty if unknown.
            parameters: as ``name=value``; empty if unknown.
        """
        found = other_parameters(exchange, model, parameters)
        with self._lock:
            if found and not self._other_parameters:
                who = exchange.agent or "an unknown agent"
                self._other_parameters = f"{who} asks the model with other parameters: {found}."
                self._changed(self._report())

    def runs_live(self, tool: str) -> bool:
        """Return whether a call that no tape can answer is let through as that of a live tool."""
        with self._lock:
            if not self._live_tools & {tool, "*"}:
                return False
            self._live_executions += 1
            self._changed(self._report())
            return True

    def refuse(self, text: str, agent: str = "") -> Divergence:
        """Note a request that no tape can answer, and return the first divergence."""
        with self._lock:
            return self._diverge("unsupported", agent, text)

    def _admit(self, agent: str) -> None:
        """Note a divergence if this process is not the one that is answered."""
        if self._admitted == os.getpid():
            return
        self._admitted = os.getpid()
        if reason := self._claim():
            self._diverge("unsupported", agent, reason)

    def _mask(self) -> None:
        """Look requests up by the program's own masks, once it has declared others than before."""
        if len(MASKS) == self._masks:
            return
        self._masks = len(MASKS)
        left = [each for waiting in self._exchanges.values() for each in waiting]
        self._exchanges = defaultdict(list)
        for each in sorted(left, key=lambda exchange: self._places[id(exchange)]):
            self._exchanges[request_key(masked(each.request))].append(each)

    def _is_over(self) -> bool:
        """Return whether the program makes a run that comes after those on the tape."""
        return self._runs is not None and self.branches.ended_runs >= self._runs

    def _is_on_tape(self, found: Exchange) -> bool:
        intervention = self._intervention
        if intervention is None or self._places[id(found)] < intervention.border:
            return True
        return self._is_changed and intervention.hold and not self._is_asked_at(found)

    def _is_asked_at(self, found: Exchange) -> bool:
        intervention = self._intervention
        return (
            intervention is not None
            and intervention.change == "ask"
            and self._places[id(found)] == intervention.position
        )

    def _serve(self, found: Exchange) -> Exchange:
        intervention = self._intervention
        answer = None
        if (
            intervention is not None
            and intervention.change in {"keep", "answer"}
            and self._places[id(found)] == intervention.position
        ):
            self._is_changed = True
            answer = intervention.answer
            self._stop_ordering()
        return self._serve_with(found, answer)

    def _stop_ordering(self) -> None:
        self.order.stop()
        self.tool_order.stop()

    def _serve_with(self, recorded: Exchange, answer: Message | None) -> Exchange:
        """Answer a call, with a new answer if there is one."""
        self._served_exchanges += 1
        answered = with_answer(recorded, answer)
        if answered.answer is not None:
            ids = {call.id for call in answered.answer.tool_calls if call.id}
            self._executions.know_ids(ids - changed_calls(recorded, answer))
            self._plain.asked(ids)
        self._changed(self._report())
        return answered

    def _change_later(
        self, change: LaterChange, key: str, agent: str, branch: str, model: str
    ) -> Exchange | Live | None:
        """Make a later change of a joint fix at a call."""
        recorded = self._tape.exchanges[change.position]
        waiting = self._exchanges[request_key(masked(recorded.request))]
        waiting[:] = [each for each in waiting if each is not recorded]
        if change.answer is None:
            self._asked = _Asked(key, change.model)
            return self._counted(self._send(key, model), agent, branch)
        self._turns.served(agent, branch, recorded)
        return self._serve_with(recorded, change.answer)

    def _serve_execution(self, recorded: Execution) -> Execution:
        self._served_executions += 1
        self._answered_spans.add(recorded.span_id)
        served = self._with_new_result(recorded)
        self._changed(self._report())
        return served

    def _with_new_result(self, recorded: Execution) -> Execution:
        """Return a call with its new result, if it has one and the changes have begun.

        Results that are changed first may come in any order, as those of parallel tools do.
        """
        place, intervention = self._tools[id(recorded)], self._intervention
        new = self._results.get(place)
        begins = intervention is not None and intervention.change == "result"
        if new is None or not (begins or self._is_changed):
            return recorded
        self._unmade_results.discard(place)
        self._is_changed = True
        self.order.stop()  # tools beside it still end in their order
        return new

    def _send(self, key: str, model: str) -> Live | None:
        assert self._live is not None
        at_change = self._asked if self._asked and key == self._asked.key else None
        other = at_change.model if at_change else ""
        number = self._live.begin(key, other or model)
        if number is None:
            self._over_budget = True
        else:
            self._live_exchanges += 1
        self._changed(self._report())
        request = at_change.request if at_change else None
        return None if number is None else Live(number, other, request)

    def _counted(self, call: Live | None, agent: str, branch: str) -> Live | None:
        if call is not None:
            self._turns.sent(agent, branch, call.number)
        return call

    def _report(self) -> ReplayReport:
        waiting = sum(map(len, self._exchanges.values()))
        return ReplayReport(
            self._served_exchanges,
            self._served_executions,
            self._live_executions,
            waiting,
            len(self._executions),
            self._divergence,
            self._live_exchanges,
            self._is_changed,
            self._over_budget,
            self._other_parameters,
            len(self._turns) + len(self._unmade_results),
            len(self._masked_places),
            tuple(self._other_requests),
        )

    def _diverge(self, kind: str, agent: str, text: str) -> Divergence:
        if self._divergence is None:
            self._divergence = Divergence(kind, agent, text, self._is_changed)
            self._stop_ordering()
            self._changed(self._report())
        return self._divergence

    def _nearest(self, request: Sequence[Item], agent: str) -> Exchange | None:
        """Return the recorded call, if possible of the same agent, whose request has most in common; None if none is left."""
        left = [exchange for waiting in self._exchanges.values() for exchange in waiting]
        return max(
            [each for each in left if each.agent == agent] or left,
            key=lambda each: likeness(masked(each.request), request),
            default=None,
        )

    def _explained(self, request: Sequence[Item], agent: str) -> str:
        who, nearest = agent or "an unknown agent", self._nearest(request, agent)
        if nearest is None:
            return f"{who} asked the model once more than in the recorded run."
        recorded = masked(nearest.request)
        told = f"{who} asked the model otherwise:\n{difference(recorded, request)}"
        return "\n".join(filter(None, (told, remedy(recorded, request))))


def _only(process: int) -> str:
    own = os.getpid()
    if own == process:
        return ""
    return f"A child process ({own}) makes calls, and the record answers its parent ({process})."


class Blocked(Exception):  # an expected event, so the name has no suffix Error
    """A tool call that the recorded run does not hold; the tool was not executed."""
