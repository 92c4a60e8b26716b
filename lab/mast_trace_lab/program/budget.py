"""Trials of an experiment, and the calls and dollars that they may take.

The calls of a replay are reserved before it starts and settled when it has ended. The reservation of a killed process
stays: its calls may have been made.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import BudgetExhausted, ConfigurationError, StorageError
from mast_trace_judge.llm.budget import Price, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import ArmResult, ReplayArm
    from mast_trace_judge.pricing import OwnPrice
    from mast_trace_lab.program.setup import Setup


@dataclass(frozen=True)
class ReplayTrial:
    """One replay that an experiment asks for.

    Attributes:
        arm: its arm.
        phase: ``verify``, ``score``, ``start``, ``screening`` or ``pairs``.
        pair: number of the pair, from 0 over the whole experiment; -1 outside of ``pairs``.
        calls: live model calls that it is expected to make.
        longest: live model calls of a program that begins its work again, which count as expected where it is ended;
            0 for ``calls``.
    """

    arm: ReplayArm
    phase: str
    pair: int = -1
    calls: int = 0
    longest: int = 0


class ResultMismatch(ValueError):
    """A told result does not belong to the trial that the experiment asks for."""


@dataclass(frozen=True)
class Budget:
    """Limits of the replays of one experiment; it goes on where a larger budget is given.

    Attributes:
        max_calls: live model calls.
        max_cost_usd: US dollars; needs prices of the models.
        max_runs: replays.
    """

    max_calls: int | None = None
    max_cost_usd: float | None = None
    max_runs: int | None = None

    def without(self, calls: int, cost_usd: float) -> Budget:
        """Return what is left after live calls and their cost."""
        return replace(
            self,
            max_calls=None if self.max_calls is None else max(0, self.max_calls - calls),
            max_cost_usd=None
            if self.max_cost_usd is None
            else max(0.0, self.max_cost_usd - cost_usd),
        )


_TIMES_MEAN: Final = 4
_MORE_TOKENS: Final = 2000
_MORE_CALLS: Final = 6


def recorded_models(recorded: Trajectory) -> frozenset[str]:
    """Return the names of the models that answered in the recorded run."""
    return frozenset(
        call.model for call in recorded.invocations if call.kind == "model" and call.model
    )


@dataclass(frozen=True)
class CallCost:
    """Cost of one live call in US dollars.

    Attributes:
        mean: of the recorded calls.
        most: assumed of each call in advance: that of four times the mean tokens of a recorded call and
            2,000 tokens more, at the highest of the prices.
    """

    mean: float
    most: float


def call_cost(recorded: Trajectory, prices: Mapping[str, Price]) -> CallCost | None:
    """Return the cost of a live call of a run's program; None if a recorded model has no price."""
    models = recorded_models(recorded)
    if not models or any(model not in prices for model in models):
        return None
    calls = sum(call.kind == "model" for call in recorded.invocations)
    mean = Tokens(recorded.input_tokens // calls, 0, recorded.output_tokens // calls)
    most = Tokens(
        _TIMES_MEAN * mean.input + _MORE_TOKENS, 0, _TIMES_MEAN * mean.output + _MORE_TOKENS
    )
    # Any of the models may be the one that is asked; a stronger one has the highest price.
    return CallCost(
        max(prices[model].of(mean) for model in models),
        max(price.of(most) for price in prices.values()),
    )


def capped_call_cost(recorded: Trajectory, prices: Mapping[str, Price]) -> CallCost:
    """Return the cost of a live call where dollars are limited.

    Raises:
        ConfigurationError: a recorded model has no price.
    """
    cost = call_cost(recorded, prices)
    if cost is None:
        models = ", ".join(sorted(recorded_models(recorded) - prices.keys())) or "the run's model"
        raise ConfigurationError(
            f"a limit in dollars needs the price of {models}: "
            "judge_prices or own_prices in the configuration file have it in US dollars per million tokens"
        )
    return cost


def check_limits(
    recorded: Trajectory,
    setup: Setup,
    budget: Budget,
    *,
    jobs: int = 1,
    capped: bool = False,
) -> CallCost | None:
    """Return the cost of a live call, as far as known, if the limits can be held.

    Args:
        recorded: the run.
        setup: of the replays.
        budget: of the experiment.
        jobs: replays that run at the same time.
        capped: whether dollars are limited besides by the budget.

    Raises:
        ConfigurationError: dollars are limited and a price is unknown, or replays that run at the same
            time would share the state that ``reset`` restores.
    """
    if jobs > 1 and setup.reset:
        raise ConfigurationError(
            "jobs and reset exclude each other: replays that run at the same time would change "
            "the state that the others begin with"
        )
    if budget.max_cost_usd is not None or capped:
        return capped_call_cost(recorded, setup.prices)
    return call_cost(recorded, setup.prices)


def most_calls(trial: ReplayTrial) -> int:
    """Return the live calls after which a replay is ended: some more than expected, none without any."""
    expected = max(trial.calls, trial.longest)
    return 2 * expected + _MORE_CALLS if trial.calls else 0


def cost_of(result: ArmResult, cost: CallCost | None) -> float:
    """Return the cost of a replay in US dollars; where it is unknown, the most that it may have been."""
    if result.cost_usd is not None:
        return result.cost_usd
    return result.live_calls * cost.most if cost else 0.0


@dataclass(frozen=True)
class ReplayAllowance:
    """The limits of one replay.

    Attributes:
        calls: live model calls; the replay is ended before the next one.
        cost_usd: US dollars that are reserved for them; None if a price is unknown.
    """

    calls: int
    cost_usd: float | None


class Exhausted(Exception):
    """The budget does not allow the next replay; the text says which limit.

    Attributes:
        of_day: whether it is that of the day, so that replays go on tomorrow.
    """

    def __init__(self, text: str, *, of_day: bool = False) -> None:
        super().__init__(text)
        self.of_day = of_day


class Account:
    """Adds up what the replays of an experiment have taken and may still take.

    Args:
        budget: the limits.
        cost: of a live call; None if a price is unknown and dollars are not limited.
    """

    def __init__(self, budget: Budget, cost: CallCost | None) -> None:
        self.budget = budget
        self.cost = cost
        self.runs = 0
        self.calls = 0
        self.cost_usd = 0.0

    def add(self, results: Sequence[ArmResult]) -> None:
        """Add replays that have ended. Scores start no program and count as no replay."""
        for result in results:
            self.runs += result.phase != "score"
            self.calls += result.live_calls
            self.cost_usd += cost_of(result, self.cost)

    def allow(self, trial: ReplayTrial, running: Sequence[ReplayAllowance] = ()) -> ReplayAllowance:
        """Return what a replay may take beside those that are running.

        Raises:
            Exhausted: less is left than it is expected to take.
        """
        budget, most = self.budget, most_calls(trial)
        if trial.phase == "score":
            return ReplayAllowance(0, 0.0)
        if budget.max_runs is not None and self.runs + len(running) >= budget.max_runs:
            raise Exhausted(f"{self.runs} of {budget.max_runs} replays are used (budget.runs)")
        if budget.max_calls is not None:
            used = self.calls + sum(each.calls for each in running)
            most = min(most, budget.max_calls - used)
            if most < trial.calls:
                raise Exhausted(
                    f"{used} of {budget.max_calls} live calls are used, and the next replay may take "
                    f"{trial.calls} (--max-calls)"
                )
        if budget.max_cost_usd is not None and self.cost is not None and trial.calls:
            spent = self.cost_usd + sum(each.cost_usd or 0.0 for each in running)
            most = min(most, int((budget.max_cost_usd - spent) / self.cost.most))
            if most < trial.calls:
                raise Exhausted(
                    f"{spent:.4f} of {budget.max_cost_usd:.4f} USD are used, and the next replay may "
                    f"cost {trial.calls * self.cost.most:.4f} (budget.usd)"
                )
        return ReplayAllowance(most, most * self.cost.most if self.cost else None)


_WAIT_SECONDS = 30.0
_TABLE = """
CREATE TABLE IF NOT EXISTS reservations
(id INTEGER PRIMARY KEY, day TEXT NOT NULL, calls INTEGER NOT NULL, cost REAL NOT NULL, replays INTEGER NOT NULL)
"""


@contextmanager
def transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file of SQLite for one transaction, which waits for those of other processes.

    Raises:
        StorageError: the file cannot be read or written.
    """
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_SECONDS)) as connection:
            connection.isolation_level = None
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StorageError(f"{path}: {error}") from error


def _today() -> date:
    return datetime.now(timezone.utc).date()


@dataclass(frozen=True)
class Spent:
    """Calls and dollars of a day, reservations included."""

    calls: int = 0
    cost_usd: float = 0.0


class DailyBudget:
    """Live calls and dollars that the replays of a UTC day may take, in a file that survives restarts.

    SQLite's transactions keep several workers of one machine from reserving the same calls.

    Args:
        path: the file; its folder is made if it is missing.
        max_calls: live model calls of a day.
        max_cost_usd: US dollars of a day; None for any.
        today: returns the day in UTC.
    """

    def __init__(
        self,
        path: Path,
        max_calls: int,
        max_cost_usd: float | None = None,
        today: Callable[[], date] = _today,
    ) -> None:
        self._path = path
        self._max_calls = max_calls
        self._max_cost = max_cost_usd
        self._today = today
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with transaction(self._path) as connection:
            connection.execute(_TABLE)

    @property
    def limits_cost(self) -> bool:
        """True if dollars are limited."""
        return self._max_cost is not None

    def spent(self) -> Spent:
        """Return what the day has taken so far, reservations included.

        Raises:
            StorageError: the file cannot be read.
        """
        with transaction(self._path) as connection:
            return self._spent(connection)

    def reserve(self, calls: int, cost_usd: float = 0.0) -> int:
        """Reserve live calls and dollars for one replay; return the number of the reservation.

        Raises:
            BudgetExhausted: the day has not so much left; nothing was reserved.
            StorageError: the file cannot be written.
        """
        with transaction(self._path) as connection:
            spent = self._spent(connection)
            if spent.calls + calls > self._max_calls:
                raise BudgetExhausted(
                    f"the next replay may take {calls} calls, and {spent.calls} of the day's "
                    f"{self._max_calls} are used or reserved; replays go on at midnight UTC"
                )
            if self._max_cost is not None and spent.cost_usd + cost_usd > self._max_cost:
                raise BudgetExhausted(
                    f"the next replay may cost {cost_usd:.2f} USD, and {spent.cost_usd:.2f} of the "
                    f"day's {self._max_cost:.2f} are used or reserved; replays go on at midnight UTC"
                )
            made = connection.execute(
                "INSERT INTO reservations (day, calls, cost, replays) VALUES (?, ?, ?, 1)",
                (self._today().isoformat(), calls, cost_usd),
            )
            return int(made.lastrowid or 0)

    def settle(self, number: int, calls: int, cost_usd: float | None) -> None:
        """Replace a reservation by what the replay has taken.

        Args:
            number: of the reservation.
            calls: live calls that were made.
            cost_usd: dollars; None, where a price is unknown, keeps those that were reserved.

        Raises:
            StorageError: the file cannot be written.
        """
        with transaction(self._path) as connection:
            connection.execute(
                "UPDATE reservations SET calls = ?, cost = coalesce(?, cost) WHERE id = ?",
                (calls, cost_usd, number),
            )

    def _spent(self, connection: sqlite3.Connection) -> Spent:
        row = connection.execute(
            "SELECT coalesce(sum(calls), 0), coalesce(sum(cost), 0) FROM reservations WHERE day = ?",
            (self._today().isoformat(),),
        ).fetchone()
        return Spent(int(row[0]), float(row[1]))


def known_prices(
    recorded: Trajectory,
    *others: str,
    given: Mapping[str, Price],
    own: Mapping[str, OwnPrice],
) -> dict[str, Price]:
    """Return the prices by model that are known, in US dollars per million tokens.

    Where a model's price depends on the hour or on the length of the input, the highest counts: a
    budget must hold for any call.

    Args:
        recorded: the run; the models that answered in it are looked up.
        others: names of further models that replays ask.
        given: prices that a person has given; they come before all others.
        own: your own prices, by model.
    """
    # A traced program's environment lacks what the server's settings need, which stand beside this table.
    from mast_trace_judge.pricing.prices import bands_of

    found = dict(given)
    today = datetime.now(timezone.utc).date()
    for model in {*recorded_models(recorded), *others} - {""} - given.keys():
        bands = [band for band in bands_of(model, "", own) if band.since <= today]
        if bands:
            found[model] = Price(
                input=float(max(max(each.input, each.cache_write) for each in bands)),
                output=float(max(each.output for each in bands)),
            )
    return found
