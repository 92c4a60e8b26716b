"""The daily budget is never exceeded: by several processes, over restarts, after a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import TYPE_CHECKING

import pytest
from judge.store.invented_replays import run

from mast_trace.exceptions import BudgetExhausted, StorageError
from mast_trace_lab.confirm.work import HandledRuns
from mast_trace_lab.program.budget import DailyBudget, Spent
from mast_trace_lab.program.conducting import locked_run

if TYPE_CHECKING:
    from pathlib import Path


def test_reserved_calls_count_until_they_are_settled(tmp_path: Path) -> None:
    budget = DailyBudget(tmp_path / "new" / "days", 10, 1.0)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    number = budget.reserve(8, 0.5)
    with pytest.raises(BudgetExhausted, match="may take 3 calls, and 8 of the day's 10"):
        budget.reserve(3)
    with pytest.raises(BudgetExhausted, match=r"may cost 0\.60 USD, and 0\.50 of the day's 1\.00"):
        budget.reserve(1, 0.6)
    beside = budget.reserve(2, 0.25)
    budget.settle(number, 2, 0.1)
    assert budget.spent() == Spent(4, 0.35), "another reservation stays"
    budget.settle(beside, 0, 0.0)
    assert budget.spent() == Spent(2, 0.1)
    other = budget.reserve(8, 0.9)
    budget.settle(other, 3, None)
    assert budget.spent() == Spent(5, 1.0)


def test_a_restart_and_another_day(tmp_path: Path) -> None:
    """The reservation of a former process counts for its day, and not for the next."""
    days = [date(2026, 3, 1)]
    DailyBudget(tmp_path / "days", 10, today=lambda: days[0]).reserve(9)
    again = DailyBudget(tmp_path / "days", 10, today=lambda: days[0])
    with pytest.raises(BudgetExhausted):
        again.reserve(2)
    days[0] = date(2026, 3, 2)
    again.reserve(10)


def test_many_at_once_reserve_no_call_twice(tmp_path: Path) -> None:
    def one(_number: int) -> bool:
        try:
            DailyBudget(tmp_path / "days", 10).reserve(3)
        except BudgetExhausted:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(24))) == 3
    assert DailyBudget(tmp_path / "days", 10).spent().calls == 9


def test_a_killed_process_keeps_its_reservation_and_loses_its_lock(tmp_path: Path) -> None:
    code = f"""
import sys, time
from pathlib import Path
from mast_trace_lab.program.budget import DailyBudget
from mast_trace_lab.program.conducting import locked_run
DailyBudget(Path({str(tmp_path / "days")!r}), 10).reserve(7)
with locked_run(Path({str(tmp_path / "locks")!r}), "p", "../../etc") as mine:
    print(mine, flush=True)
    time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    with locked_run(tmp_path / "locks", "p", "../../etc") as mine:
        assert not mine
    with locked_run(tmp_path / "locks", "q", "../../etc") as mine:
        assert mine
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with locked_run(tmp_path / "locks", "p", "../../etc") as mine:
        assert mine
    assert DailyBudget(tmp_path / "days", 10).spent().calls == 7
    assert {path.parent for path in tmp_path.rglob("*.lock")} == {tmp_path / "locks"}


def test_a_file_that_is_no_ledger_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "days").write_text("not a database, but a text that is long enough to be seen")
    with pytest.raises(StorageError, match="days"):
        DailyBudget(tmp_path / "days", 10)


def test_a_run_is_dealt_with_once_as_it_is(tmp_path: Path) -> None:
    """After a restart, too; another project's run of the same id, and one that has changed since, are looked at."""
    HandledRuns(tmp_path / "runs").add(run(), "confirmed")
    again = HandledRuns(tmp_path / "runs")
    assert again.holds(run())
    for other in ({"project": "else"}, {"trace_id": "2" * 32}, {"fingerprint": "f2"}):
        assert not again.holds(run(**other))
