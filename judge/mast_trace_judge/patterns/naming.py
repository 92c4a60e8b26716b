"""Names patterns in a sentence of the judge's model, one after the other; see `PatternNamer.name`."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final, Literal

from mast_trace.exceptions import (
    BudgetExhausted,
    EndpointUnavailable,
    JudgeError,
    RunTokensExhausted,
    VerdictUnreadable,
)
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.patterns.name_check import Name, PatternName, checked
from mast_trace_judge.patterns.name_question import name_question
from mast_trace_judge.patterns.name_record import RUNS, name_record, readable
from mast_trace_judge.patterns.name_rows import save
from mast_trace_judge.patterns.unnamed import STAGE
from mast_trace_judge.store.ledger import JudgeCall, LedgerWithoutAnswers
from mast_trace_judge.store.runs import read_alone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.judge import Judge
    from mast_trace_judge.patterns.name_record import NameRecord, ReadRun
    from mast_trace_judge.patterns.unnamed import Unnamed

_QUESTIONS: Final = 3300
"""Tokens of both attempts at an answer beside the record: instructions, question, answers."""
_LEAST_RECORD: Final = 300
_LOG = logging.getLogger(__name__)

Result = Literal["named", "refused", "put off", "away"]
"""A name was stored; the model gave none that holds; the pattern cannot be asked about now; nor can any other."""


@dataclass(frozen=True)
class PatternNamer:
    """Asks the judge's first model for names.

    Attributes:
        store: of all projects.
        judge: its endpoint, its budget of the day and its ledger are used.
        tokens: that one name may take.
    """

    store: Store
    judge: Judge
    tokens: int

    @property
    def model(self) -> str:
        """The model that is asked; empty if there is none."""
        return self.judge.config.models[0] if self.judge.uses_model else ""

    async def name(self, pattern: Unnamed) -> Result:
        """Ask for the name of a pattern, and store it if it holds.

        Where it does not, a row without a sentence is stored, so that the model is not asked again at once.

        Raises:
            StorageError: the database does not answer.
        """
        runs = await asyncio.to_thread(self._read, pattern)
        if not runs:
            return "put off"
        room = max(_LEAST_RECORD, (self.tokens - _QUESTIONS) // 2)
        record = await asyncio.to_thread(name_record, pattern, runs, self.judge.version, room)
        ledger = LedgerWithoutAnswers(self.judge.ledger)
        trace_id = runs[0].run.trace_id
        name: Name | str
        try:
            interview = self.judge.interview(
                record.text,
                project=pattern.project,
                trace_id=trace_id,
                tokens=self.tokens,
                ledger=ledger,
            )
            answer = await interview.ask(STAGE, name_question(pattern.code, record), PatternName)
            name = await asyncio.to_thread(checked, answer, record)
        except VerdictUnreadable as error:
            name = str(error)
        except JudgeError as error:
            _LOG.warning(
                "patterns are not named: %s", error, extra={"action": "patterns_not_named"}
            )
            if _concerns_one(error, asked=ledger.last is not None):
                return "put off"
            if ledger.last is None:
                await ledger.record(self._not_made(pattern, trace_id, str(error)))
            return "away"
        return await asyncio.to_thread(self._save, pattern, record, name)

    def _read(self, pattern: Unnamed) -> Sequence[ReadRun]:
        """Read runs until there are enough with texts."""
        found: list[ReadRun] = []
        for run in pattern.runs:
            summary = run_summary(self.store, run.trace_id, project=pattern.project)
            read = readable(run, read_alone(self.store, summary)) if summary else None
            if read is not None:
                found.append(read)
            if len(found) == RUNS:
                break
        return found

    def _save(self, pattern: Unnamed, record: NameRecord, name: Name | str) -> Result:
        if isinstance(name, str):
            _LOG.warning(
                "the sentence of %s on pattern %s is dropped: %s",
                self.model,
                pattern.pattern,
                name,
                extra={"action": "pattern_name_dropped"},
            )
        held = name if isinstance(name, Name) else None
        if not save(self.store, pattern, record, held, model=self.model):
            return "put off"
        return "named" if held else "refused"

    def _not_made(self, pattern: Unnamed, trace_id: str, reason: str) -> JudgeCall:
        """Return the ledger's row of a call that was not even tried, for people to read the reason."""
        return JudgeCall(
            project=pattern.project,
            trace_id=trace_id,
            judge_version=self.judge.version,
            stage=STAGE,
            model=self.model,
            started_at=_now(),
            duration_ms=0,
            status="error",
            error=reason[:1000],
        )


def _concerns_one(error: JudgeError, *, asked: bool) -> bool:
    """Return whether an error says nothing about other patterns.

    The budget of one name, or the server, refuses this one alone; the day's cap and a dead endpoint stop all.
    """
    if isinstance(error, BudgetExhausted):
        return isinstance(error, RunTokensExhausted)
    return asked and not isinstance(error, EndpointUnavailable)


def _now() -> datetime:
    return datetime.now(timezone.utc)
