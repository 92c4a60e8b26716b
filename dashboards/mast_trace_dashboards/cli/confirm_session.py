"""One confirmation at a terminal: the estimate, the question, the progress bar, the conclusion."""

from __future__ import annotations

import dataclasses
import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.cli.output import console, plain, warn
from mast_trace_dashboards.cli.render_confirmation import confirmation_view
from mast_trace_dashboards.found_run import find_run
from mast_trace_dashboards.run_names import NotFound
from mast_trace_judge.replay.bounds import call_cost
from mast_trace_judge.replay.checks import check
from mast_trace_judge.replay.conduct import check_limits, confirming
from mast_trace_judge.replay.preparation import (
    expected_calls,
    limits_of,
    new_experiment,
    stored_experiment,
)
from mast_trace_judge.store.runs import read_alone
from mast_trace_judge.store.verdicts import load_judged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.llm.budget import Price
    from mast_trace_judge.replay.conducting import Progress as State
    from mast_trace_judge.replay.confirm import Stopped
    from mast_trace_judge.replay.preparation import Prepared
    from mast_trace_judge.replay.setup import Budget, Setup
    from mast_trace_judge.verdict import Verdict

INTERRUPTED = 130
"""Exit status after Ctrl-C or SIGTERM."""
GOES_ON = "The results so far are stored; the same command goes on after them."


@dataclass(frozen=True)
class Session:
    """A run that is to be confirmed, and the choices of the person.

    Attributes:
        store: the database.
        run: the run's row.
        recorded: the run.
        verdict: the judge's newest; None without one.
        setup: of the replays.
        budget: of the experiment.
        prices: of models, by name.
        jobs: replays at the same time.
    """

    store: Store
    run: RunSummary
    recorded: Trajectory
    verdict: Verdict | None
    setup: Setup
    budget: Budget
    prices: Mapping[str, Price] = field(default_factory=dict)
    jobs: int = 1

    @classmethod
    def of_run(
        cls, store: Store, trace_id: str, project: str | None, setup: Setup, budget: Budget
    ) -> Session:
        """Read a run and its verdict.

        Raises:
            NotFound: there is no such run.
            StorageError: the database does not answer.
        """
        found = find_run(store, trace_id, project)
        summary = run_summary(store, trace_id, project=found.row["Project"]) if found else None
        if found is None or summary is None:
            raise NotFound(f"there is no run {trace_id}")
        recorded = read_alone(store, summary)
        verdict = load_judged(store, trace_id, project=summary.project)
        return cls(store, summary, recorded, verdict, setup, budget)


def conduct(session: Session, *, yes: bool) -> tuple[Stopped, Prepared]:
    """Confirm a run: tell the estimate, ask, run the replays with a progress bar.

    Raises:
        NotConfirmable: the run cannot be confirmed.
        ConfigurationError: the choices cannot be used, or nobody can be asked.
        StorageError: the database does not answer.
        typer.Exit: the person has interrupted it; the results so far are stored.
    """
    points = check(session.recorded, session.setup)
    check_limits(session.recorded, session.setup, session.budget, session.prices, jobs=session.jobs)
    known = stored_experiment(session.store, session.run, session.recorded, points, session.setup)
    expected = (
        expected_calls(points, session.setup)
        if known is None
        else known.experiment.expected_calls()
    )
    if not yes:
        _ask(session, expected)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        prepared = known or new_experiment(
            session.store,
            session.run,
            session.recorded,
            points,
            session.verdict,
            session.setup,
            limits=limits_of(session.setup, session.budget.max_calls),
        )
        _explain(prepared)
        with _bar(expected) as changed:
            work = confirming(
                session.store,
                prepared,
                session.setup,
                session.budget,
                prices=session.prices,
                jobs=session.jobs,
                changed=changed,
            )
            work.resume()
            return work.run(), prepared
    except OSError as error:
        command = session.setup.command[0]
        raise ConfigurationError(f"cannot start {command}: {error.strerror or error}") from error
    except KeyboardInterrupt:
        warn(f"Interrupted. {GOES_ON}")
        raise typer.Exit(INTERRUPTED) from None
    except StorageError as error:
        raise StorageError(f"{error}. {GOES_ON}") from error


def _ask(session: Session, expected: int) -> None:
    """Tell what will run and what it may cost, and ask.

    Raises:
        ConfigurationError: standard input is no terminal, so that nobody can be asked.
    """
    text = f"{_estimate(session, expected)} {_warning(session.setup)}"
    if not sys.stdin.isatty():
        raise ConfigurationError(f"{text} Add --yes to run it.")
    warn(text)
    typer.confirm("Run it?", abort=True, err=True)


def _estimate(session: Session, expected: int) -> str:
    cost, budget = call_cost(session.recorded, session.prices), session.budget
    calls = expected if budget.max_calls is None else min(expected, budget.max_calls)
    money = f"about {calls * cost.mean:.2f} USD" if cost else "at a cost that is unknown here"
    limits = [
        f"{budget.max_calls} calls" if budget.max_calls is not None else "",
        f"{budget.max_cost_usd:g} USD" if budget.max_cost_usd is not None else "",
        f"{budget.max_runs} replays" if budget.max_runs is not None else "",
    ]
    named = " and ".join(filter(None, limits))
    most = f"It ends at {named}." if named else "No budget is set (--max-calls, --max-cost)."
    return f"About {calls} live model calls, {money}. {most}"


def _warning(setup: Setup) -> str:
    restored = (
        f"`{' '.join(setup.reset)}` restores them before each replay"
        if setup.reset
        else "nothing restores them between replays"
    )
    return (
        f"This runs `{' '.join(setup.command)}` again and again. Recorded tools are answered from the "
        f"record; files, databases and whatever else its own code touches are real, and {restored}."
    )


def _explain(prepared: Prepared) -> None:
    for each in prepared.refused:
        warn(f"Not tried: the fix of step {each.step} from {each.source}. {each.reason}")
    if prepared.number > 1:
        warn(
            f"This is experiment {prepared.number} of this run. More evidence is needed than in the "
            "first, because trying again makes a chance result likelier."
        )


@contextmanager
def _bar(expected: int) -> Iterator[Callable[[State], None]]:
    """Show live calls, replays and cost while replays run; yield what updates them."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[spent]}"),
        TimeElapsedColumn(),
    )
    errors = console(stderr=True)
    with Progress(
        *columns, console=errors, transient=True, disable=not errors.is_terminal
    ) as progress:
        task = progress.add_task("Starting", total=max(1, expected), spent="")

        def changed(state: State) -> None:
            place = f"step {state.step}" if state.step >= 0 else "whole program"
            progress.update(
                task,
                description=f"{state.phase}, {place}" if state.phase else "Concluding",
                completed=state.live_calls,
                total=max(1, expected, state.live_calls),
                spent=f"{state.live_calls} live calls, {state.replays} replays, "
                f"{state.cost_usd:.4f} USD",
            )

        yield changed


def show(stopped: Stopped) -> None:
    """Print the conclusion for people."""
    out = console()
    for part in confirmation_view(stopped.confirmation):
        out.print(part)
    if stopped.reason:
        out.print(plain(f"Stopped: {stopped.reason}. A larger budget goes on from here.", "yellow"))


def as_dict(stopped: Stopped, prepared: Prepared) -> dict[str, object]:
    """Return the conclusion for other programs."""
    return {
        "trace_id": prepared.plan.trace_id,
        "experiment": prepared.number,
        "confirmation": stopped.confirmation.model_dump(mode="json"),
        "stopped": stopped.reason,
        "refused_fixes": [dataclasses.asdict(each) for each in prepared.refused],
    }
