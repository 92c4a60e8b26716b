"""One confirmation at a terminal: the estimate, the question, the progress bar, the conclusion."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.cli.output import console, plain, warn
from mast_trace_dashboards.cli.render_confirmation import confirmation_view
from mast_trace_dashboards.found_run import find_run
from mast_trace_dashboards.run_names import NotFound
from mast_trace_judge.store.runs import read_alone
from mast_trace_judge.store.verdicts import load_judged
from mast_trace_lab.confirm.confirm import check_limits, confirming
from mast_trace_lab.confirm.preparation import (
    check,
    expected_calls,
    limits_of,
    new_experiment,
    stored_experiment,
)
from mast_trace_lab.program.budget import call_cost
from mast_trace_lab.replay.replaying import ask, continued, going_on, progress_bar, warning

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.verdict import Verdict
    from mast_trace_lab.confirm.confirm import Stopped
    from mast_trace_lab.confirm.preparation import Prepared
    from mast_trace_lab.program.budget import Budget
    from mast_trace_lab.program.setup import Setup


@dataclass(frozen=True)
class ConfirmSession:
    """A run that is to be confirmed, and the choices of the person.

    Attributes:
        store: the database.
        run: the run's row.
        recorded: the run.
        verdict: the judge's newest; None without one.
        setup: of the replays.
        budget: of the experiment.
        jobs: replays at the same time.
    """

    store: Store
    run: RunSummary
    recorded: Trajectory
    verdict: Verdict | None
    setup: Setup
    budget: Budget
    jobs: int = 1

    @classmethod
    def of_run(
        cls, store: Store, trace_id: str, project: str | None, setup: Setup, budget: Budget
    ) -> ConfirmSession:
        """Read a run, its verdict and the interrupted runs that it continues.

        Raises:
            NotFound: there is no such run.
            NotConfirmable: an interrupted run is not stored.
            StorageError: the database does not answer.
        """
        found = find_run(store, trace_id, project)
        summary = run_summary(store, trace_id, project=found.row["Project"]) if found else None
        if found is None or summary is None:
            raise NotFound(f"there is no run {trace_id}")
        recorded = read_alone(store, summary)
        verdict = load_judged(store, trace_id, project=summary.project)
        whole = dataclasses.replace(setup, earlier=continued(store, summary, recorded))
        return cls(store, summary, recorded, verdict, whole, budget)


def conduct(session: ConfirmSession, *, yes: bool) -> tuple[Stopped, Prepared]:
    """Confirm a run: tell the estimate, ask, run the replays with a progress bar.

    Raises:
        NotConfirmable: the run cannot be confirmed.
        ConfigurationError: the choices cannot be used, or nobody can be asked.
        StorageError: the database does not answer.
        typer.Exit: the person has interrupted it; the results so far are stored.
    """
    points = check(session.recorded, session.setup)
    check_limits(session.recorded, session.setup, session.budget, jobs=session.jobs)
    known = stored_experiment(session.store, session.run, session.recorded, points, session.setup)
    expected = (
        expected_calls(points, session.setup)
        if known is None
        else known.experiment.expected_calls()
    )
    command, reset = session.setup.command, session.setup.reset
    ask(f"{_estimate(session, expected)} {warning(command, reset)}", yes=yes)
    with going_on(command):
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
        with progress_bar(expected) as changed:
            work = confirming(
                session.store,
                prepared,
                session.setup,
                session.budget,
                jobs=session.jobs,
                changed=changed,
            )
            work.resume()
            return work.run(), prepared


def _estimate(session: ConfirmSession, expected: int) -> str:
    cost, budget = call_cost(session.recorded, session.setup.prices), session.budget
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


def _explain(prepared: Prepared) -> None:
    for each in prepared.refused:
        warn(f"Not tried: the fix of step {each.step} from {each.source}. {each.reason}")
    if prepared.number > 1:
        warn(
            f"This is experiment {prepared.number} of this run. More evidence is needed than in the "
            "first, because trying again makes a chance result likelier."
        )


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
