"""The worker that confirms failed runs: its selection, its budget, restarts, several workers."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from confirmations import REPORT, SERVICE, Failed, failed_shop, spent

from mast_trace_dashboards.programs import Program
from mast_trace_judge.store.confirmations import confirmation_of
from mast_trace_lab.confirm.work import ConfirmWorker, Handled, WorkConfig
from mast_trace_lab.program.conducting import locked_run
from mast_trace_lab.program.forking import PreparedParent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fixture_types import Logs, Patch

    from mast_trace_collector.storage import Store

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failed]:
    """A stored failure of the shop."""
    with failed_shop(tmp_path_factory.mktemp("shop")) as made:
        yield made


def worker(failed: Failed, store: Store, folder: str, **config) -> tuple[ConfirmWorker, list]:
    """Return a worker and the list of runs that it deals with."""
    told: list[Handled] = []
    given = {"command": failed.command, "budget": {"calls": 100}, **config.pop("service", {})}
    programs = {config.pop("name", SERVICE): Program(**given)}
    settings = WorkConfig(**{"max_calls_per_day": 1000, "programs": programs, **config})
    place = failed.folder / folder
    return ConfirmWorker(store, settings, place, quiet=0.0, told=told.append), told


def test_runs_of_other_services_are_left_alone(failed: Failed) -> None:
    with failed.store() as store:
        work, told = worker(failed, store, "others", name="another")
        assert work.run_once() == 0
        assert told == []


def test_a_run_that_another_worker_has_is_left_alone(failed: Failed) -> None:
    with (
        failed.store() as store,
        locked_run(failed.folder / "locked", "default", failed.recorded.trace_id),
    ):
        (project,) = {row["Project"] for row in store.query("SELECT Project FROM mast_runs")}
        with locked_run(failed.folder / "locked", project, failed.recorded.trace_id):
            work, told = worker(failed, store, "locked")
            assert work.run_once() == 0
            assert told == []


def test_a_program_that_is_another_is_refused_once(failed: Failed, caplog: Logs) -> None:
    """Its replay is not identical, so no model is asked; it is not tried again.

    Nor can it be forked: this is logged, and it runs in a process of its own.
    """
    before = len(failed.server.requests)
    with failed.store() as store:
        other = {"command": (sys.executable, "-c", "pass"), "preload": ("json",)}
        work, told = worker(failed, store, "refused", service=other)
        assert work.run_once() == 1
        assert "is not identical" in told[0].ending
        assert "is not of the form `python FILE ...`" in caplog.text
        again, _ = worker(failed, store, "refused")
        assert again.run_once() == 0
        assert spent(store)[0] == 0
    assert len(failed.server.requests) == before


def test_a_command_that_cannot_be_started_is_tried_later(failed: Failed) -> None:
    with failed.store() as store:
        work, told = worker(failed, store, "none", service={"command": ("/no-such-program",)})
        assert work.run_once() == 1
        assert "no-such-program" in told[0].stopped
        assert work.run_once() == 0


def test_the_day_ends_it_and_the_next_worker_goes_on(failed: Failed, monkeypatch: Patch) -> None:
    """The budget of the day is never exceeded; in the end the planted error is confirmed.

    The worker that goes on forks its replays from a process with their imports.
    """
    before = len(failed.server.requests)
    with failed.store() as store:
        work, told = worker(failed, store, "days", max_calls_per_day=25)
        assert work.run_once() == 1
        assert "midnight UTC" in told[0].stopped
        calls = len(failed.server.requests) - before
        assert 0 < calls <= 25
        stopped = threading.Event()
        stopped.set()
        assert work.run_once(stopped) == 0
        assert work.run_once() == 1
        assert len(failed.server.requests) - before == calls

        done = spent(store)[0]
        parents: list[PreparedParent] = []
        fork = PreparedParent.run

        def counted(parent: PreparedParent, *arguments: Any) -> int | None:
            parents.append(parent)
            return fork(parent, *arguments)

        monkeypatch.setattr(PreparedParent, "run", counted)
        preloaded = {"preload": ("openai",)}
        more, told = worker(failed, store, "days", service=preloaded, max_calls_per_day=1000)
        assert more.run_once() == 1
        assert told[0].ending == "confirmed"
        assert len(parents) == spent(store)[0] - done > 0
        assert len(set(parents)) == 1
        assert more.run_once() == 0
        (row,) = store.query("SELECT Project FROM mast_runs")
        found = confirmation_of(store, row["Project"], failed.recorded.trace_id)
        assert found is not None
        assert found.origin == REPORT
        assert found.live_calls == len(failed.server.requests) - before
