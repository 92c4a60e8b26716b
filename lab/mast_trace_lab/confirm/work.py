"""Confirms failed runs of some services one after the other, under the budget of a day."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pydantic import Field, PositiveFloat, PositiveInt

from mast_trace.exceptions import ConfigurationError, MastTraceError, StorageError
from mast_trace.replay.recording import NotReplayable
from mast_trace_collector.storage.runs import RunSummary, summary_of
from mast_trace_dashboards.programs import (
    FILE,
    Program,
    ProgramTable,
    program_of,
    programs_of,
    read_file,
    validated,
)
from mast_trace_judge.batch import read_alone
from mast_trace_judge.verdict_writer import key_of
from mast_trace_lab.confirm.confirm import confirming
from mast_trace_lab.confirm.preparation import FailedRun, check, limits_of
from mast_trace_lab.program.budget import DailyBudget, transaction
from mast_trace_lab.program.conducting import locked_run
from mast_trace_lab.program.forking import parent_of
from mast_trace_lab.replay.changes import NotConfirmable
from mast_trace_lab.replay.options import PriceTable, budget_of, price_table
from mast_trace_lab.replay.replaying import names_of, setup_of_run

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from mast_trace_collector.storage import Store


class WorkConfig(ProgramTable):
    """The table ``[confirm]`` of the configuration file, and its programs.

    Attributes:
        max_calls_per_day: live model calls of all replays of a UTC day.
        max_usd_per_day: their US dollars; needs prices.
        poll_seconds: pause between looks for failed runs.
        lookback_days: runs that ended earlier are left alone.
        programs: by their names; runs of other programs are left alone.
    """

    max_calls_per_day: PositiveInt
    max_usd_per_day: PositiveFloat | None = None
    poll_seconds: PositiveFloat = 60.0
    lookback_days: PositiveInt = 7
    programs: dict[str, Program] = Field(min_length=1)


def load_work_config(file: Path | None) -> WorkConfig:
    """Read the configuration.

    Raises:
        ConfigurationError: there is no file, it cannot be read, holds an unknown or unusable key, or can be
            changed by every user of the machine.
    """
    if file is None:
        raise ConfigurationError(
            f"name your programs and the budget of a day in {FILE}, or by --config"
        )
    written, programs = read_file(file), programs_of(file)
    if not programs or "confirm" not in written:
        raise ConfigurationError(f"{file}: the worker needs [programs.NAME] and [confirm]")
    found = {name: program_of(programs, [name]) for name in programs}
    return validated(WorkConfig, {**written["confirm"], "programs": found}, "confirm")


_TABLE = """
CREATE TABLE IF NOT EXISTS handled
(project TEXT, trace_id TEXT, fingerprint TEXT, ending TEXT NOT NULL,
 PRIMARY KEY (project, trace_id, fingerprint))
"""

_LOG = logging.getLogger(__name__)
_QUIET_SECONDS: Final = 60
"""Seconds without a new span after which a run is looked at, so that the judge comes first."""
_PAUSE_SECONDS: Final = 3600.0
"""Seconds until a run is tried again whose program, oracle or reset could not be started."""
_MOST: Final = 500
_FAILED: Final = """
SELECT * FROM mast_runs
WHERE (ServiceName IN {names:Array(String)} OR Name IN {names:Array(String)}) AND Kind = ''
  AND (Outcome = 'failure' OR (Outcome = '' AND (ServiceName IN {judged:Array(String)} OR Name IN {judged:Array(String)})))
  AND LastSeen >= now64(3) - toIntervalDay({days:UInt32})
  AND LastSeen < now64(3) - toIntervalSecond({quiet:UInt32})
ORDER BY LastSeen DESC
LIMIT {most:UInt32}
"""


class HandledRuns:
    """Runs whose confirmation has ended, or that cannot be confirmed.

    A run that changes, such as by a corrected outcome, has another fingerprint and is looked at again.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._do(_TABLE)

    def holds(self, run: RunSummary) -> bool:
        """Return whether a run was dealt with.

        Raises:
            StorageError: the file cannot be read.
        """
        sql = "SELECT 1 FROM handled WHERE project = ? AND trace_id = ? AND fingerprint = ?"
        return bool(self._do(sql, *key_of(run)))

    def add(self, run: RunSummary, ending: str) -> None:
        """Note the ending of a run: a word of a conclusion, or the reason of a refusal.

        Raises:
            StorageError: the file cannot be written.
        """
        self._do("INSERT OR REPLACE INTO handled VALUES (?, ?, ?, ?)", *key_of(run), ending)

    def _do(self, sql: str, *values: str) -> list[tuple[object, ...]]:
        with transaction(self._path) as connection:
            return connection.execute(sql, values).fetchall()


@dataclass(frozen=True)
class Handled:
    """A run that the worker has dealt with.

    Attributes:
        trace_id: of the run.
        service: of the run.
        ending: a word of a conclusion, or the reason why there is none.
        stopped: the limit or the error that ended it for now; empty if it is finished.
        of_day: whether that is the budget of the day.
    """

    trace_id: str
    service: str
    ending: str
    stopped: str = ""
    of_day: bool = False


class ConfirmWorker:
    """Confirms failed runs of a store.

    Args:
        store: the database.
        config: the programs, and the budget of a day.
        folder: for the budget of the day, the runs that are finished, and the locks; workers of one
            machine share it.
        quiet: seconds without a new span after which a run is looked at.
        told: called with each run that was dealt with.
        priced: looks up the prices of a run's models; those that are known without a file if absent.
    """

    def __init__(
        self,
        store: Store,
        config: WorkConfig,
        folder: Path,
        *,
        quiet: float = _QUIET_SECONDS,
        told: Callable[[Handled], None] = lambda _handled: None,
        priced: PriceTable | None = None,
    ) -> None:
        self._store, self._config, self._folder = store, config, folder
        self._quiet, self._told = quiet, told
        self._priced = priced or price_table(None)
        self._day = DailyBudget(
            folder / "work.sqlite", config.max_calls_per_day, config.max_usd_per_day
        )
        self._handled = HandledRuns(folder / "work.sqlite")
        self._later: dict[tuple[str, str], float] = {}

    def run(self, stop: threading.Event) -> None:
        """Confirm runs until ``stop``; the database may go down and come back meanwhile."""
        while not stop.is_set():
            try:
                self.run_once(stop)
            except StorageError as error:
                _LOG.warning(
                    "database unavailable, next try in %.0f s: %s",
                    self._config.poll_seconds,
                    error,
                    extra={"action": "confirm_worker_waits_for_database"},
                )
            stop.wait(self._config.poll_seconds)

    def run_once(self, stop: threading.Event | None = None) -> int:
        """Confirm the failed runs of now, newest first; return the number of those dealt with.

        It ends early where the budget of the day does.

        Raises:
            StorageError: the database does not answer.
        """
        count = 0
        for run in self._failed():
            if stop is not None and stop.is_set():
                break
            with locked_run(self._folder, run.project, run.trace_id) as mine:
                # Another worker may have finished it since the list was read.
                if not mine or self._handled.holds(run):
                    continue
                done = self._one(run)
            self._told(done)
            count += 1
            if done.of_day:
                break
        return count

    def _failed(self) -> list[RunSummary]:
        programs = self._config.programs
        rows = self._store.query(
            _FAILED,
            {
                "names": [*programs],
                "judged": [name for name, each in programs.items() if each.oracle],
                "days": self._config.lookback_days,
                "quiet": round(self._quiet),
                "most": _MOST,
            },
        )
        now = time.monotonic()
        return [
            run
            for run in map(summary_of, rows)
            if self._later.get((run.project, run.trace_id), now) <= now
            and not self._handled.holds(run)
        ]

    def _one(self, run: RunSummary) -> Handled:
        try:
            done = self._confirm(run)
        except StorageError:
            raise
        except (NotConfirmable, NotReplayable, ConfigurationError) as error:
            done = Handled(run.trace_id, run.service, str(error))
        except (MastTraceError, OSError) as error:
            # The program, its oracle or its reset cannot be started now; later it may.
            _LOG.warning("run %s of %s: %s", run.trace_id, run.service, error)
            self._later[run.project, run.trace_id] = time.monotonic() + _PAUSE_SECONDS
            return Handled(run.trace_id, run.service, "", str(error))
        if not done.stopped:
            self._handled.add(run, done.ending)
        return done

    def _confirm(self, run: RunSummary) -> Handled:
        programs = self._config.programs
        program = next(programs[name] for name in names_of(run) if name in programs)
        budget = budget_of(program, None)
        recorded = read_alone(self._store, run)
        prices = self._priced(recorded, program.stronger_model)
        setup = setup_of_run(self._store, run, recorded, program, prices=prices)
        points = check(recorded, setup)
        # A process for each run: the next one finds the modules as they are then.
        with parent_of(program, recorded.framework, _LOG.warning) as parent:
            failed = FailedRun(self._store, run, recorded, replace(setup, parent=parent), points)
            experiment = failed.stored() or failed.plan(limits_of(setup, budget.max_calls))
            work = confirming(failed, experiment, budget, day=self._day)
            work.resume()
            done = work.run()
        status = done.confirmation.status
        if done.of_day or not done.reason:
            return Handled(run.trace_id, run.service, status, done.reason, done.of_day)
        return Handled(run.trace_id, run.service, f"{status}; {done.reason}")
