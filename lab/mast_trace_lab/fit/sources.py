"""Reads labelled runs by source: from a store, and from a set that `mast-trace dataset build` has written."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.study.datasets.injected import labelled_run, read_injected
from mast_trace_judge.study.model_calibration import labelled_runs
from mast_trace_lab.fit.labels import INJECTION, PERSON, REPLAY, SOURCES
from mast_trace_lab.inject.dataset import labelled

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from mast_trace_collector.storage import Store
    from mast_trace_judge.study.datasets.labelled import LabelledRun


def parse_sources(text: str) -> tuple[str, ...]:
    """Read names of sources with commas between them, in the order of `SOURCES`.

    Raises:
        ConfigurationError: there is no such source, or none is named.
    """
    given = {part.strip() for part in text.split(",")} - {""}
    if unknown := sorted(given - set(SOURCES)):
        raise ConfigurationError(
            f"there are no labels of {', '.join(unknown)}; sources are {', '.join(SOURCES)}"
        )
    if not given:
        raise ConfigurationError(f"name at least one source: {', '.join(SOURCES)}")
    return tuple(source for source in SOURCES if source in given)


def stored(store: Store, sources: Collection[str]) -> list[LabelledRun]:
    """Read the labelled failures of a store.

    A run that both a person and a replay have labelled counts once, by the person's label, so that no fold learns from
    one of them what it is asked of the other.

    Args:
        store: the database.
        sources: some of `SOURCES`.

    Raises:
        StorageError: the database does not answer.
    """
    found = labelled_runs(store) if PERSON in sources else []
    known = {run.name for run in found}
    if {REPLAY, INJECTION} & set(sources):
        found += [
            labelled_run(asdict(each))
            for each in labelled(store)
            if each.source in sources and each.failed and each.id not in known
        ]
    return found


def from_set(folder: Path, sources: Collection[str]) -> tuple[list[LabelledRun], list[LabelledRun]]:
    """Read the failures of a set: those to learn from, and those of operators that no fit should see.

    Raises:
        ConfigurationError: the folder holds no set of this version.
    """

    def wanted(runs: Sequence[LabelledRun]) -> list[LabelledRun]:
        return [run for run in runs if run.subset in sources]

    return (
        wanted(read_injected(folder, held_out=False)),
        wanted(read_injected(folder, held_out=True)),
    )
