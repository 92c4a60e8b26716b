"""Builds a labelled set from a store: planted faults, and real failures whose decisive error was proved.

These are the two ways of AgenTracer (arXiv 2509.03312): injection into successes, and replay of failures.
A set is a folder with ``runs.jsonl``, ``runs.parquet`` where pyarrow is installed, and ``card.md``.
"""

from __future__ import annotations

import hashlib
import platform
from collections import Counter
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import to_dict
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.printable import counted
from mast_trace_judge.batch import read_alone
from mast_trace_judge.store.confirmations import confirmation_of
from mast_trace_judge.store.injections import Injection, injections
from mast_trace_judge.study.labelled import CARD, FORMAT, write_set
from mast_trace_lab.inject.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from mast_trace_collector.storage import Store

Source = Literal["person", "replay", "injection"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
"""The sources of labels; where two have labelled one run, the first of them counts."""
_LABELLED: Final = {"kept", "survived"}
_PROVED: Final = """
SELECT Project, TraceId FROM mast_confirmations FINAL
WHERE OriginStep IS NOT NULL AND ({project:String} = '' OR Project = {project:String})
ORDER BY Project, TraceId
"""
_DECIDED: Final = """
SELECT Operator, Verdict FROM mast_injections FINAL
WHERE Verdict != 'open' AND ({project:String} = '' OR Project = {project:String})
    AND ({service:String} = '' OR ServiceName = {service:String})
"""
_VERSIONS: Final = """
SELECT DISTINCT SpanAttributes['mast.framework'] AS Framework,
    SpanAttributes['mast.framework.version'] AS Version
FROM otel_traces
WHERE TraceId IN {runs:Array(String)} AND ({project:String} = '' OR Project = {project:String}) AND Version != ''
ORDER BY Framework, Version
"""


def sources_of(text: str) -> tuple[Source, ...]:
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


def card(
    runs: Sequence[Labelled],
    licence: str,
    decided: Mapping[tuple[str, str], int],
    frameworks: Sequence[tuple[str, str]],
) -> str:
    """Return the card of a set, in Markdown.

    Args:
        runs: of the set.
        licence: its name; empty if it is not known.
        decided: number of planted faults by operator and decision, those outside the set included.
        frameworks: names and versions of the programs' frameworks.
    """
    failed = [each for each in runs if each.failed]
    versions = ", ".join(f"{name} {number}" for name, number in frameworks)
    built = (
        f"Built by mast-trace {version('mast-trace')} on Python {platform.python_version()}, format {FORMAT}. "
        f"Versions of the frameworks: {versions or 'not recorded'}."
    )
    terms = f"Licence: {licence or 'not stated; ask whoever recorded the runs'}."
    sizes = (
        f"{counted(len(runs), 'run')}: {counted(len(failed), 'failure')} and {counted(len(runs) - len(failed), 'run')} that succeeded although a "
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
        "| operator | mode | planted | kept | share kept | decisive | survived | held out | uncertain | certain because |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, operator in OPERATORS.items():
        own = [each for each in runs if each.operator == name]
        planted = sum(count for (of, _), count in decided.items() if of == name)
        if planted:
            kept = sum(each.failed for each in own)
            cells = (
                name,
                operator.mode or "none",
                str(planted),
                str(kept),
                f"{100 * kept / planted:.0f} %",
                str(sum(each.decisive for each in own)),
                str(len(own) - kept),
                "yes" if any(each.held_out_operator for each in own) else "no",
                "uncertain" if operator.uncertain else "no",
                operator.certain,
            )
            lines.append(f"| {' | '.join(cells)} |")
    for reason in dict.fromkeys(filter(None, (each.uncertain for each in runs))):
        own = [each for each in runs if each.uncertain == reason]
        names = ", ".join(sorted({each.operator for each in own}))
        lines += ["", f"{len(own)} labels are uncertain, those of {names}: {reason}"]
    known = sum(each.point_of_no_return is not None for each in failed)
    point = (
        f"The point of no return is known in {known} of {len(failed)} failures (`point_of_no_return`): the step after which "
        "runs hardly ever succeed if all up to it is kept. After a planted fault it is known only where the step is decisive."
    )
    lines += ["", point]
    splits = Counter(each.split for each in runs)
    lines += [
        "",
        "Splits by group: " + ", ".join(f"{n} {s}" for s, n in sorted(splits.items())) + ".",
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ") or "unknown"


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
        missed_by: agents that acted after the step, if the run failed; without the one to blame.
        success_after: success rate after the fault; None if unknown.
        point_of_no_return: step after which runs hardly ever succeed if all up to it is kept; None if not known.
        e_value: evidence that the fault is the cause.
        system: service of the program.
        framework: its framework.
        split: ``train``, ``validation`` or ``test``, by group.
        held_out_operator: whether the operator is one of those that no fit should see.
        uncertain: the reason for which the operator's labels are uncertain; empty if they are not.
        run: the run as JSON types.
        confirmation: what replays have shown of a real failure, as JSON types; None for ``injection``.
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
    point_of_no_return: int | None
    e_value: float | None
    system: str
    framework: str
    split: str
    held_out_operator: bool
    uncertain: str
    run: dict[str, Any]
    confirmation: dict[str, Any] | None = None


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
    store: Store,
    folder: Path,
    *,
    project: str | None = None,
    service: str = "",
    licence: str = "",
) -> list[Labelled]:
    """Write a set; return its runs without their texts.

    Args:
        store: the database.
        folder: of the set; it is made, and earlier files of a set are replaced. It gets Parquet as well
            where pyarrow is installed.
        project: only this project's runs.
        service: only this service's runs; all if empty.
        licence: name of the licence, for the card.

    Raises:
        StorageError: the database does not answer.
        OSError: the folder cannot be written.
    """
    written: list[Labelled] = []

    def shapes() -> Iterator[dict[str, Any]]:
        for each in labelled(store, project=project):
            if service in {"", each.system}:
                written.append(replace(each, run={}, confirmation=None))
                yield {"format": FORMAT, **vars(each), "missed_by": list(each.missed_by)}

    write_set(folder, shapes())
    of = {"project": project or ""}
    decided = Counter(
        (row["Operator"], row["Verdict"])
        for row in store.query(_DECIDED, {**of, "service": service})
    )
    runs = sorted({each.group for each in written})
    frameworks = [
        (row["Framework"], row["Version"]) for row in store.query(_VERSIONS, {**of, "runs": runs})
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
