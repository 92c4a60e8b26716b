"""People's labels of runs, which `judge agree` and `judge fit` read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage.removal.tombstones import refuse_erased
from mast_trace_judge.store.records import Columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage.store import Store

TABLE = "mast_human_labels"
OUTCOMES = ("", "success", "failure")
NO_MODES = ("none",)
"""The modes of an annotator who looked for failure modes and saw none; no modes at all means no
opinion.
"""


@dataclass(frozen=True)
class HumanLabel:
    """One person's label of one run; a later one of the same person replaces it.

    Attributes:
        annotator: name of the person.
        outcome: ``success``, ``failure``, or empty for no opinion.
        modes: codes of the failure modes that the run shows; empty for no opinion, `NO_MODES`
            where it shows none.
        decisive_step: index of the decisive step, the first one of several; None for no opinion.
        decisive_agent: its agent.
        decisive_steps: all steps that the person calls decisive, in order; with ``decisive_step``, that one
            alone if not given.
        blind: whether the person gave it without having seen the verdict. The code that stores a label knows it by
            the page or the question that asked for it; no file and no field of a form is taken at its word.
    """

    trace_id: str
    annotator: str
    outcome: str = ""
    modes: tuple[str, ...] = ()
    decisive_step: int | None = None
    decisive_agent: str = ""
    note: str = ""
    project: str = ""
    decisive_steps: tuple[int, ...] = ()
    blind: bool = False

    def __post_init__(self) -> None:
        """Check the fields that can be checked without the run, and make the decisive steps agree.

        Raises:
            ConfigurationError: an unknown outcome or failure mode, or no annotator.
        """
        if not self.annotator.strip():
            raise ConfigurationError("a label needs the name of who gives it")
        if self.outcome not in OUTCOMES:
            raise ConfigurationError(f"an outcome is success or failure, not {self.outcome!r}")
        unknown = sorted(set(self.modes) - FAILURE_MODES.keys())
        if unknown and tuple(self.modes) != NO_MODES:
            raise ConfigurationError(f"MAST has no failure mode {', '.join(unknown)}")
        steps = set(self.decisive_steps)
        if self.decisive_step is not None:
            steps.add(self.decisive_step)
        object.__setattr__(self, "decisive_steps", tuple(sorted(steps)))
        if steps and self.decisive_step is None:
            object.__setattr__(self, "decisive_step", min(steps))


_COLUMNS = Columns(HumanLabel)


def save_labels(store: Store, labels: Sequence[HumanLabel]) -> None:
    """Store labels.

    Raises:
        RunErased: a run was erased.
        StorageError: the database does not accept them.
    """
    refuse_erased(store, [(label.project, label.trace_id) for label in labels])
    now = datetime.now(timezone.utc)
    rows = [{**_COLUMNS.row(_as_stored(label)), "LabelledAt": now} for label in labels]
    if rows:
        store.insert(TABLE, rows)


def labels_of(store: Store, trace_id: str | None = None) -> list[HumanLabel]:
    """Return the latest label of each person, of one run or of all.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"""SELECT * FROM {TABLE} FINAL
        WHERE {{trace:String}} = '' OR TraceId = {{trace:String}}
        ORDER BY TraceId, Annotator""",  # noqa: S608  # made of constants
        {"trace": trace_id or ""},
    )
    return [label_of(row) for row in rows]


def unstored(store: Store, labels: Sequence[HumanLabel]) -> list[HumanLabel]:
    """Return those of some labels that are not the latest of their person in the store, given blind or not.

    Raises:
        StorageError: the database does not answer.
    """
    if not labels:
        return []
    rows = store.query(
        f"SELECT * FROM {TABLE} FINAL WHERE TraceId IN {{traces:Array(String)}}",  # noqa: S608  # a constant
        {"traces": sorted({label.trace_id for label in labels})},
    )
    stored = {replace(label_of(row), blind=False) for row in rows}
    return [label for label in labels if _as_stored(label) not in stored]


def _as_stored(label: HumanLabel) -> HumanLabel:
    return replace(label, annotator=label.annotator.strip(), modes=tuple(sorted(label.modes)))


def label_of(row: Mapping[str, Any]) -> HumanLabel:
    """Return the label that a row of ``mast_human_labels`` holds."""
    return _COLUMNS.record(row)
