"""The option ``--phrasings``: sentences of planted faults that the judge's model writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mast_trace_dashboards.cli.output import console, plain
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_lab.inject.faults import faults_of
from mast_trace_lab.inject.phrasing_calls import PhrasingModel, check_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.config import JudgeConfig
    from mast_trace_judge.store.injections import Injection
    from mast_trace_lab.inject.phrasings import Checked
    from mast_trace_lab.inject.phrasings import Phrasings as Written

Phrasings = Annotated[
    Literal["rules", "model"],
    typer.Option(
        "--phrasings",
        help="Writer of the sentences that a fault makes an agent say: rules, or the judge's model, whose sentences "
        "are checked.",
    ),
]


class PhrasedByModel:
    """Sentences of the judge's model for the faults of some runs.

    Args:
        config: of the judge.
        seed: of the injection.

    Raises:
        ConfigurationError: no model is set up.
    """

    def __init__(self, config: JudgeConfig, seed: int) -> None:
        check_model(config)
        self._config = config
        self._seed = seed
        self._checked: dict[str, Checked] = {}

    def for_run(
        self,
        store: Store,
        run: RunSummary,
        recorded: Trajectory,
        only: Sequence[str],
        live_tools: Sequence[str] = (),
    ) -> Written:
        """Return the sentences for those operators that apply to a run; the model is asked for what is missing.

        Raises:
            NotReplayable: the record lacks data that a replay needs.
            JudgeError: the model cannot be asked.
            StorageError: the database does not answer.
        """
        model = PhrasingModel(self._config, StoreLedger(store), run.project, self._seed)
        faults = faults_of(recorded, self._seed, only, live_tools=live_tools)
        written = model.ask({each.operator for each in faults})
        self._checked.update(written.checked)
        return written

    def report(self, injections: Iterable[Injection]) -> None:
        """Print, on standard error, how many sentences passed their checks and how many faults use a rule's."""
        planted = list(injections)
        for name, each in self._checked.items():
            number = len(each.accepted) + sum(each.refused.values())
            said = (
                f"{name}: {len(each.accepted)} of {number} sentences of the model passed the checks"
            )
            if each.refused:
                reasons = (f"{count} {reason}" for reason, count in sorted(each.refused.items()))
                said += f" (refused: {', '.join(reasons)})"
            own = [one for one in planted if one.operator == name]
            by_rules = sum(not one.change.get("phrased_by") for one in own)
            told = f"{said}; {by_rules} of {len(own)} faults use a rule's sentence."
            console(stderr=True).print(plain(told))
