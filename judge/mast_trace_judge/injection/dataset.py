"""Builds a labelled set from a store: planted faults, and real failures whose decisive error was proved.

These are the two ways of AgenTracer (arXiv 2509.03312): injection into successes, and replay of failures.
A set is a folder with ``runs.jsonl`` (one labelled run a line) and ``card.md``.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from mast_trace.trajectory import to_dict
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.injection.operators import OPERATORS
from mast_trace_judge.store.confirmations import confirmation_of
from mast_trace_judge.store.injections import injections
from mast_trace_judge.store.runs import read_alone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mast_trace_collector.storage import Store
    from mast_trace_judge.store.injections import Injection

FORMAT: Final = 1
RUNS: Final = "runs.jsonl"
CARD: Final = "card.md"
_LABELLED: Final = {"kept", "survived"}
_PROVED: Final = """
SELECT Project, TraceId FROM mast_confirmations FINAL
WHERE OriginStep IS NOT NULL AND ({project:String} = '' OR Project = {project:String})
ORDER BY Project, TraceId
"""


@dataclass(frozen=True)
class Labelled:
    """One labelled run of a set.

    Attributes:
        id: of the run in the set.
        source: ``injection`` or ``replay``.
        group: original run; runs of a group are never divided by a split.
        operator: name of the operator; empty for ``replay``.
        mode: the planted failure mode; empty if none is known.
        step: the labelled step.
        agent: its agent; empty where no agent is to blame.
        decisive: whether the step is decisive; otherwise it is the origin, or the run succeeded.
        failed: whether the run failed. One that succeeded is a negative for the failure, and a positive
            for the mode's rule: the fault is in it.
        missed_by: agents that acted after the step.
        success_after: success rate after the fault; None if unknown.
        e_value: evidence that the fault is the cause.
        system: service of the program.
        framework: its framework.
        split: ``train``, ``validation`` or ``test``, by group.
        held_out_operator: whether the operator is one of those that no fit should see.
        run: the run as JSON types.
    """

    id: str
    source: str
    group: str
    operator: str
    mode: str
    step: int
    agent: str
    decisive: bool
    failed: bool
    missed_by: tuple[str, ...]
    success_after: float | None
    e_value: float | None
    system: str
    framework: str
    split: str
    held_out_operator: bool
    run: dict[str, Any]


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
        folder: of the set; it is made, and earlier files of a set are replaced.
        project: only this project's runs.
        licence: name of the licence, for the card.

    Raises:
        StorageError: the database does not answer.
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    partly, written = folder / f"{RUNS}.part", []
    with partly.open("w", encoding="utf-8") as file:
        for each in labelled(store, project=project):
            file.write(json.dumps(_plain(each), ensure_ascii=False) + "\n")
            written.append(_without_texts(each))
    partly.replace(folder / RUNS)
    (folder / CARD).write_text(card(written, licence), "utf-8")
    return written


def card(runs: Sequence[Labelled], licence: str) -> str:
    """Return the card of a set: systems, operators, counts, shares kept, versions and licence."""
    failed = [each for each in runs if each.failed]
    built = f"Built by mast-trace {version('mast-trace')}, format {FORMAT}."
    terms = f"Licence: {licence or 'not stated; ask whoever recorded the runs'}."
    sizes = (
        f"{len(runs)} runs: {len(failed)} failures and {len(runs) - len(failed)} runs that succeeded although a "
        "fault was planted. Groups are original runs; no split divides a group."
    )
    lines = ["# A labelled set of failures", "", f"{built} {terms}", "", sizes, ""]
    lines += [
        "| system | framework | source | runs | failures | decisive |",
        "|---|---|---|---|---|---|",
    ]
    by_system = Counter((each.system, each.framework, each.source) for each in runs)
    for key, count in sorted(by_system.items()):
        own = [each for each in runs if (each.system, each.framework, each.source) == key]
        shown = (sum(each.failed for each in own), sum(each.decisive for each in own))
        lines.append(f"| {' | '.join(map(_cell, key))} | {count} | {shown[0]} | {shown[1]} |")
    lines += [
        "",
        "| operator | mode | runs | failures | decisive | held out | certain because |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, operator in OPERATORS.items():
        own = [each for each in runs if each.operator == name]
        if own:
            kept, decisive = sum(each.failed for each in own), sum(each.decisive for each in own)
            held = "yes" if own[0].held_out_operator else "no"
            mode = operator.mode or "none"
            lines.append(
                f"| {name} | {mode} | {len(own)} | {kept} | {decisive} | {held} | {operator.certain} |"
            )
    splits = Counter(each.split for each in runs)
    lines += [
        "",
        "Splits by group: " + ", ".join(f"{n} {s}" for s, n in sorted(splits.items())) + ".",
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ") or "unknown"


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
        e_value=each.e_value,
        system=each.service,
        framework=each.framework,
        split=_split(each.original),
        held_out_operator=_held_out(each.operator),
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
        e_value=contrast.e_value if contrast else None,
        system=summary.service,
        framework=run.framework,
        split=_split(trace_id),
        held_out_operator=False,
        run=to_dict(run),
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
    return Labelled(**{**vars(each), "run": {}})
