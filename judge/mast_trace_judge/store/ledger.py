"""The ledger: every call of a judge's model with its cost and its answer.

A call is written when it ends. So the ledger also serves as a cache of paid answers: a judge that
was killed in the middle of a run finds its earlier answers and makes only the missing calls.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final, Protocol

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.removal.tombstones import insert_living
from mast_trace_collector.storage.transient import is_transient
from mast_trace_judge.store.apart import apart
from mast_trace_judge.store.model_records import Kind, record_of
from mast_trace_judge.store.records import Columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage.store import Store

_BEFORE: Final = r"(?:the model's endpoint (?:failed \d+ times, last|refuses the request): )?"
_KNOWN: Final = re.compile(
    rf"{_BEFORE}(?:HTTP \d+|no connection: .*|no answer within [\d.e+]+ s|no attempt was allowed"
    r"|the prompt exceeds the model's context window|the account's quota is used up|the answer has no choices|the answer is not the API's"
    r"|the day's cap of [\d.]+ USD is reached.*"
    r"|the model refused|a content filter stopped the model"
    r"|the answer was cut at the limit of output tokens"
    r"|there is no complete JSON object in the answer|the call was cancelled)",
    re.DOTALL,
)

TABLE = "mast_judge_calls"
_LOG = logging.getLogger(__name__)
_MOST_WAITING = 2000


def without_texts(failure: str) -> str:
    """Return as much of a call's failure as is known to hold no text that the call was about.

    Servers repeat a rejected request in their errors, and models speak of the run as they refuse. Words that are not
    known are dropped, so that a new failure cannot tell anything.
    """
    if not failure:
        return ""
    known = _KNOWN.match(failure)
    return known.group() if known else "the call failed, or its answer cannot be read"


@dataclass(frozen=True)
class JudgeCall:
    """One call, retries included.

    Attributes:
        stage: the question.
        status: ``ok``, ``unreadable`` or ``error``.
        error: text of the error, empty if there was none.
        request_hash: equal for the same question about the same record to the same model, in its
            reading of that number.
        sample: number of the model's reading of the run, from 1 on.
        answer: the text, where it could be read.
    """

    project: str
    trace_id: str
    judge_version: str
    stage: str
    model: str
    started_at: datetime
    duration_ms: int
    status: str
    error: str = ""
    retries: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    request_hash: str = ""
    answer: str = ""
    sample: int = 1
    call_id: str = field(default_factory=lambda: str(uuid.uuid4()))


_COLUMNS: Final = Columns(JudgeCall)


class Ledger(Protocol):
    """The interface that records calls, and finds paid answers."""

    async def record(self, call: JudgeCall) -> None:
        """Write a call."""

    async def answers(self, trace_id: str, judge_version: str) -> Mapping[str, str]:
        """Return the answers that could be read, by the hash of their request."""

    async def unreadable(self, trace_id: str, judge_version: str) -> Mapping[str, int]:
        """Return the number of answers that could not be read, by the hash of their request."""

    async def blind_record(self, kind: Kind) -> tuple[int, int]:
        """Return the blind labels of runs of this kind in which the model's step was right, and all of them."""

    async def flush(self) -> None:
        """Write calls that could not be written before."""

    def spent_today(self) -> float:
        """Return the US dollars of all calls since midnight UTC."""


class MemoryLedger:
    """A ledger for judging without a store; it lasts as long as the process.

    Attributes:
        calls: every call, in the order in which they ended.
    """

    def __init__(self) -> None:
        self.calls: list[JudgeCall] = []

    async def record(self, call: JudgeCall) -> None:
        """Write a call."""
        self.calls.append(call)

    async def answers(self, trace_id: str, judge_version: str) -> Mapping[str, str]:
        """Return the answers that could be read, by the hash of their request."""
        return _answers(self.calls, trace_id, judge_version)

    async def unreadable(self, trace_id: str, judge_version: str) -> Mapping[str, int]:
        """Return the number of answers that could not be read, by the hash of their request."""
        return Counter(
            call.request_hash
            for call in self.calls
            if (call.trace_id, call.judge_version) == (trace_id, judge_version)
            and call.status == "unreadable"
        )

    async def blind_record(self, kind: Kind) -> tuple[int, int]:  # noqa: ARG002
        """Return none: memory has no labels."""
        return 0, 0

    async def flush(self) -> None:
        """Do nothing: memory needs no writing."""

    def spent_today(self) -> float:
        """Return the US dollars of all calls since midnight UTC."""
        today = datetime.now(timezone.utc).date()
        return sum(call.cost_usd for call in self.calls if call.started_at.date() == today)


class StoreLedger:
    """The ledger in the database's table ``mast_judge_calls``.

    While the database is down calls wait in memory, so that judging goes on, and their answers are found there: the
    newest `_MOST_WAITING` of them. A call that the database never takes is left out, with an error in the log.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[JudgeCall] = []
        self._writing = threading.Lock()

    async def record(self, call: JudgeCall) -> None:
        """Write a call, even if the judging of its run is cancelled meanwhile."""
        self._waiting.append(call)
        try:
            await self.flush()
        except (StorageError, OSError) as error:
            _LOG.warning("%d judge calls wait for the database: %s", len(self._waiting), error)

    async def flush(self) -> None:
        """Write calls that could not be written before.

        Raises:
            StorageError: the database does not accept them.
        """
        if self._waiting:
            await asyncio.shield(asyncio.to_thread(self._write))

    def _write(self) -> None:
        with self._writing:
            calls = self._waiting[:]
            too_large: list[tuple[JudgeCall, Exception]] = []

            def refused(call: JudgeCall, error: Exception) -> None:
                if is_transient(error):
                    too_large.append((call, error))
                else:
                    _lost(call, str(error))

            try:
                if calls:
                    apart(calls, self._insert, refused)
                    self._waiting[: len(calls)] = [call for call, _ in too_large]
            finally:
                # Calls are added at the other end meanwhile, and taken away only here.
                for _ in range(len(self._waiting) - _MOST_WAITING):
                    _lost(self._waiting.pop(0), "too many calls wait for the database")
            if too_large:
                raise too_large[0][1]

    def _insert(self, calls: Sequence[JudgeCall]) -> None:
        insert_living(self._store, TABLE, [_COLUMNS.row(call) for call in calls])

    async def answers(self, trace_id: str, judge_version: str) -> Mapping[str, str]:
        """Return the answers that could be read, by the hash of their request.

        Raises:
            StorageError: the database does not answer.
        """
        waiting = _answers(self._waiting[:], trace_id, judge_version)
        rows = await asyncio.to_thread(
            self._store.query,
            f"SELECT RequestHash, Answer FROM {TABLE} WHERE TraceId = {{trace:String}}"  # noqa: S608
            " AND JudgeVersion = {version:String} AND Status = 'ok'",
            {"trace": trace_id, "version": judge_version},
        )
        return {row["RequestHash"]: row["Answer"] for row in rows} | waiting

    async def unreadable(self, trace_id: str, judge_version: str) -> Mapping[str, int]:
        """Return the number of answers that could not be read, by the hash of their request.

        Raises:
            StorageError: the database does not answer.
        """
        rows = await asyncio.to_thread(
            self._store.query,
            f"SELECT RequestHash, uniqExact(CallId) AS Number FROM {TABLE}"  # noqa: S608
            " WHERE TraceId = {trace:String} AND JudgeVersion = {version:String} AND Status = 'unreadable'"
            " GROUP BY RequestHash",
            {"trace": trace_id, "version": judge_version},
        )
        return {row["RequestHash"]: int(row["Number"]) for row in rows}

    async def blind_record(self, kind: Kind) -> tuple[int, int]:
        """Return the blind labels of runs of this kind in which the model's step was right, and all of them.

        Raises:
            StorageError: the database does not answer.
        """
        return (await asyncio.to_thread(record_of, self._store, kind)).blind

    def spent_today(self) -> float:
        """Return the US dollars of all calls since midnight UTC.

        Raises:
            StorageError: the database does not answer.
        """
        rows = self._store.query(
            f"SELECT sum(CostUsd) AS Spent FROM {TABLE} FINAL"  # noqa: S608
            " WHERE StartedAt >= toStartOfDay(now64(3, 'UTC'))"
        )
        return float(rows[0]["Spent"])


class LedgerWithoutAnswers:
    """A ledger that keeps calls and their cost, and no answer, nor what an error says of one.

    A row is erased with one run. The answer to a question about several runs may quote each of them, and so may the
    error of a server that rejects the question.

    Args:
        ledger: records the calls.

    Attributes:
        last: the last call; None before the first.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.last: JudgeCall | None = None

    async def record(self, call: JudgeCall) -> None:
        """Write a call without texts."""
        self.last = replace(call, answer="", error=without_texts(call.error))
        await self._ledger.record(self.last)

    async def answers(self, trace_id: str, judge_version: str) -> Mapping[str, str]:  # noqa: ARG002
        """Return nothing: no answer is kept."""
        return {}

    async def unreadable(self, trace_id: str, judge_version: str) -> Mapping[str, int]:
        """Return the number of answers that could not be read, by the hash of their request."""
        return await self._ledger.unreadable(trace_id, judge_version)

    async def blind_record(self, kind: Kind) -> tuple[int, int]:
        """Return the blind labels of runs of this kind in which the model's step was right, and all of them."""
        return await self._ledger.blind_record(kind)

    async def flush(self) -> None:
        """Write calls that could not be written before."""
        await self._ledger.flush()

    def spent_today(self) -> float:
        """Return the US dollars of all calls since midnight UTC."""
        return self._ledger.spent_today()


def _answers(calls: Sequence[JudgeCall], trace_id: str, judge_version: str) -> dict[str, str]:
    return {
        call.request_hash: call.answer
        for call in calls
        if (call.trace_id, call.judge_version) == (trace_id, judge_version) and call.status == "ok"
    }


def _lost(call: JudgeCall, reason: str) -> None:
    _LOG.error(
        "a call of the judge's model about run %s is not in the ledger: %s",
        call.trace_id,
        reason,
        extra={"action": "judge_call_lost"},
    )
