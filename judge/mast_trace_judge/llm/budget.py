"""Budgets of a run and of a day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timezone

from pydantic import BaseModel, ConfigDict, NonNegativeFloat

from mast_trace.exceptions import BudgetExhausted, RunTokensExhausted


class Price(BaseModel):
    """US dollars per million tokens; ``cached`` is the input price if not given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached: NonNegativeFloat | None = None

    def of(self, tokens: Tokens) -> float:
        """Return the cost of these tokens."""
        cached = self.input if self.cached is None else self.cached
        fresh = tokens.input - tokens.cached
        return (fresh * self.input + tokens.cached * cached + tokens.output * self.output) / 1e6


@dataclass(frozen=True)
class Tokens:
    """Tokens of one or several calls; ``cached`` ones are among ``input``."""

    input: int = 0
    cached: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input + self.output


@dataclass(frozen=True)
class Usage:
    """The usage of judging a run so far."""

    calls: int = 0
    tokens: Tokens = Tokens()
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        mine, theirs = self.tokens, other.tokens
        return Usage(
            self.calls + other.calls,
            Tokens(
                mine.input + theirs.input,
                mine.cached + theirs.cached,
                mine.output + theirs.output,
            ),
            self.cost_usd + other.cost_usd,
        )


@dataclass
class UsageMeter:
    """Adds up the usage of judging a run, also where it ends in an error."""

    total: Usage = Usage()

    def add(self, tokens: Tokens, cost_usd: float) -> None:
        """Add one call."""
        self.total += Usage(1, tokens, cost_usd)


@dataclass
class RunBudget:
    """The token budget of judging one run.

    Calls run in parallel, so each reserves the tokens that it may need and returns the rest.
    """

    limit: int
    used: int = 0
    reserved: int = 0

    @property
    def left(self) -> int:
        """Tokens that no call has used or reserved."""
        return self.limit - self.used - self.reserved

    def reserve(self, tokens: int) -> None:
        """Reserve tokens for a call.

        Raises:
            RunTokensExhausted: too few are left.
        """
        if tokens > self.left:
            raise RunTokensExhausted(
                f"the next call needs about {tokens} tokens, and {max(0, self.left)} of the run's "
                f"{self.limit} are left"
            )
        self.reserved += tokens

    def settle(self, reserved: int, used: int) -> None:
        """Release a call's reservation, and add the tokens that it used."""
        self.reserved -= reserved
        self.used += used


class DailyCap:
    """The budget of a day (UTC) in US dollars, over all runs.

    A call that is under way when the cap is reached is finished, so that a day may exceed it by
    the calls in flight.
    """

    def __init__(
        self,
        limit_usd: float | None,
        *,
        spent_today: Callable[[], float] = lambda: 0.0,
        today: Callable[[], date] = lambda: datetime.now(timezone.utc).date(),
    ) -> None:
        self.limit_usd = limit_usd
        self._spent_today = spent_today
        self._today = today
        self._day: date | None = None
        self._spent = 0.0

    def check(self) -> None:
        """Check that the day's cap is not reached.

        Raises:
            BudgetExhausted: the day's cap is reached.
        """
        if self.limit_usd is None:
            return
        self._turn_day()
        if self._spent >= self.limit_usd:
            raise BudgetExhausted(
                f"the day's cap of {self.limit_usd:.2f} USD is reached; model calls go on at "
                "midnight UTC"
            )

    def add(self, cost_usd: float) -> None:
        """Add the cost of a call."""
        if self.limit_usd is None:
            return
        self._turn_day()
        self._spent += cost_usd

    def _turn_day(self) -> None:
        today = self._today()
        if today != self._day:
            # The first call reads from the ledger the spending of other processes, and of this one
            # before a restart; at midnight all start again from zero.
            self._spent = self._spent_today() if self._day is None else 0.0
            self._day = today
