"""Builds a labelled set from a store: planted faults, and real failures whose decisive error was proved.

These are the two ways of AgenTracer (arXiv 2509.03312): injection into successes, and replay of failures.
A set is a folder with ``runs.jsonl``, ``runs.parquet`` where pyarrow is installed, and ``card.md``.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from mast_trace.trajectory import to_dict
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.store.confirmations import confirmation_of
from mast_trace_judge.store.injections import injections
from mast_trace_judge.store.runs import read_alone
from mast_trace_judge.study.datasets.set_files import CARD, FORMAT, write_set
from mast_trace_lab.inject.card import card
from mast_trace_lab.inject.labelled import Labelled
from mast_trace_lab.inject.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace_collector.storage import Store
    from mast_trace_judge.store.injections import Injection

_LABELLED: Final = {"kept", "survived"}
_PROVED: Final = """
SELECT Project, TraceId FROM mast_confirmations FINAL
WHERE OriginStep IS NOT NULL AND ({project:String} = '' OR Project = {project:String})
ORDER BY Project, TraceId
"""
_DECIDED: Final = """
SELECT Operator, Verdict FROM mast_injections FINAL
WHERE Verdict != 'open' AND ({project:String} = '' OR Project = {project:String})
"""
_VERSIONS: Final = """
SELECT DISTINCT SpanAttributes['mast.framework'] AS Framework,
    SpanAttributes['mast.framework.version'] AS Version
FROM otel_traces WHERE TraceId IN {runs:Array(String)} AND Version != ''
ORDER BY Framework, Version
"""


def labelled(store: Store, *, project: str | None = None) -> Iterator[Labelled]:
    """Yield the labelled runs of a store.

    Raises:
        StorageError: the database does not answer.
    """
    for each in injections(store, project=project):
        if each.verdict in _LABELLED and each.run is not None:
            yield _injected(each)
    for row in store.query(_PROVED, {"project": project or ""}):
        if (found := _replayed(store, row["Project"], row["TraceId"])) is not None:
            yield found


def build(
    store: Store, folder: Path, *, project: str | None = None, licence: str = ""
) -> list[Labelled]:
    """Write a set; return its runs without their texts.

    Args:
        store: the database.
        folder: of the set; it is made, and earlier files of a set are replaced. It gets Parquet as well
            where pyarrow is installed.
        project: only this project's runs.
        licence: name of the licence, for the card.

    Raises:
        StorageError: the database does not answer.
        OSError: the folder cannot be written.
    """
    written: list[Labelled] = []

    def shapes() -> Iterator[dict[str, Any]]:
        for each in labelled(store, project=project):
            written.append(_without_texts(each))
            yield _plain(each)

    write_set(folder, shapes())
    decided = Counter(
        (row["Operator"], row["Verdict"])
        for row in store.query(_DECIDED, {"project": project or ""})
    )
    groups = sorted({each.group for each in written})
    frameworks = [
        (row["Framework"], row["Version"]) for row in store.query(_VERSIONS, {"runs": groups})
    ]
    (folder / CARD).write_text(card(written, licence, decided, frameworks), "utf-8")
    return written


def _injected(each: Injection) -> Labelled:
    assert each.run is not None
    failed = each.verdict == "kept"
    return Labelled(
        id=each.fault_id,
        source="injection",
        group=each.original,
        operator=each.operator,
        mode=each.mode,
        step=each.step,
        agent=each.agent if each.mode else "",
        decisive=each.decisive,
        failed=failed,
        missed_by=each.missed_by,
        success_after=each.success_after,
        point_of_no_return=each.point_of_no_return,
        e_value=each.e_value,
        system=each.service,
        framework=each.framework,
        split=_split(each.original),
        held_out_operator=_held_out(each.operator),
        uncertain=OPERATORS[each.operator].uncertain if each.operator in OPERATORS else "",
        run=to_dict(each.run),
    )


def _replayed(store: Store, project: str, trace_id: str) -> Labelled | None:
    """Return a real failure whose origin was proved; None if it has changed or is gone."""
    summary = run_summary(store, trace_id, project=project)
    if summary is None or not summary.spans:
        return None
    told = confirmation_of(store, project, trace_id, fingerprint=summary.fingerprint)
    if told is None or told.origin is None:
        return None
    run = read_alone(store, summary)
    contrast = max(
        (each for each in told.contrasts if each.steps == (told.origin,)),
        key=lambda each: each.e_value,
        default=None,
    )
    return Labelled(
        id=trace_id,
        source="replay",
        group=trace_id,
        operator="",
        mode="",
        step=told.origin,
        agent=told.origin_agent,
        decisive=told.status == "confirmed",
        failed=True,
        missed_by=(),
        success_after=None,
        point_of_no_return=told.point_of_no_return,
        e_value=contrast.e_value if contrast else None,
        system=summary.service,
        framework=run.framework,
        split=_split(trace_id),
        held_out_operator=False,
        uncertain="",
        run=to_dict(run),
        confirmation=told.model_dump(mode="json"),
    )


def _split(group: str) -> str:
    place = int(hashlib.sha256(group.encode()).hexdigest()[:8], 16) % 10
    return "train" if place < 6 else "validation" if place < 8 else "test"


def _held_out(operator: str) -> bool:
    """Return whether an operator belongs to the quarter that no fit should see."""
    return int(hashlib.sha256(operator.encode()).hexdigest()[:8], 16) % 4 == 0


def _plain(each: Labelled) -> dict[str, Any]:
    return {"format": FORMAT, **vars(each), "missed_by": list(each.missed_by)}


def _without_texts(each: Labelled) -> Labelled:
    return Labelled(**{**vars(each), "run": {}, "confirmation": None})
