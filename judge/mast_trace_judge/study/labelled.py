"""Labelled runs: of the files of a set, and of a store that people have labelled.

A set that `mast-trace dataset build` writes is JSON lines and the same rows as Parquet.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import Trajectory, trajectory_from_dict
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.batch import read_alone
from mast_trace_judge.store.labels import NO_MODES, HumanLabel, labels_of

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

_SUFFIX = re.compile(r"\s*\(.*\)\s*$")


@dataclass(frozen=True)
class LabelledRun:
    """A run with people's labels; missing ones are None or empty.

    Attributes:
        subset: part of the data set, such as ``algorithm-generated``.
        name: of its file in the subset.
        trajectory: the run, its steps numbered as the labels count them.
        group: runs of the same question share it; cross-validation never divides a group.
        step: the decisive step.
        agent: the agent that people blame, in their spelling.
        marked: every step that people marked as a failure.
        modes: whether the run shows a failure mode, by code, for every examined mode.
        success: whether the run solved its task.
        annotators: other judges' answers on the modes, by annotator.
        extra: other fields of the file.
    """

    subset: str
    name: str
    trajectory: Trajectory
    group: str = ""
    step: int | None = None
    agent: str = ""
    marked: frozenset[int] = frozenset()
    modes: Mapping[str, bool] = field(default_factory=dict)
    success: bool | None = None
    annotators: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def same_agent(one: str, other: str) -> bool:
    """Return whether two names are of one agent: suffixes such as ``(thought)`` and case are no part."""
    return plain_name(one).lower() == plain_name(other).lower()


def plain_name(name: str) -> str:
    """Return an agent's name without the suffix in brackets that Magentic-One adds."""
    return _SUFFIX.sub("", name).strip()


_FIRST = 1000
"""Characters of a file's first line, whose first keys tell of a set."""


def labelled_run(shape: Mapping[str, Any]) -> LabelledRun:
    """Return a run of a set from its JSON form; a fault of the environment names no agent.

    Raises:
        KeyError: a field is missing.
        ValueError: the run cannot be read.
        TypeError: its step is no number.
    """
    if not isinstance(shape["step"], int):
        raise TypeError(f"its step is {shape['step']!r}")
    return LabelledRun(
        subset=shape["source"],
        name=shape["id"],
        trajectory=trajectory_from_dict(shape["run"]),
        group=shape["group"],
        step=shape["step"],
        agent=shape["agent"],
        modes={shape["mode"]: True} if shape["mode"] else {},
        success=not shape["failed"],
        extra={key: shape[key] for key in ("operator", "decisive", "split", "framework")},
    )


def operator_of(run: LabelledRun) -> str:
    """Return the operator that planted a run's fault; empty if none did."""
    return str(run.extra.get("operator", ""))


def set_at(path: Path) -> Path | None:
    """Return the folder of the set that a path names, itself or one of its files; None if it names no set.

    Runs that somebody else calls ``runs.jsonl`` are no set.
    """
    folder = path if path.is_dir() else path.parent
    is_named = path.is_dir() or path.name in {RUNS, PARQUET}
    return folder if is_named and is_set(folder) else None


def is_set(folder: Path) -> bool:
    """Return whether a folder holds a set that `mast-trace dataset build` has written."""
    lines = folder / RUNS
    if (folder / CARD).is_file():
        return lines.is_file() or (folder / PARQUET).is_file()
    if not lines.is_file():
        return False
    with lines.open(encoding="utf-8", errors="replace") as file:
        first = file.readline(_FIRST)
    return all(f'"{key}": ' in first for key in ("format", "source", "group", "operator"))


def read_injected(
    folder: Path, *, held_out: bool | None = None, survivors: bool = False
) -> list[LabelledRun]:
    """Read the failures of a set whose step and agent are known.

    Args:
        folder: of the set.
        held_out: only runs of operators that are held out, or only the others; all if absent.
        survivors: whether runs that succeeded although a fault was planted are read as well.

    Raises:
        ConfigurationError: the folder holds no set of this version.
    """
    found = []
    for place, shape in shapes_of(folder):
        try:
            if shape["format"] != FORMAT:
                raise ConfigurationError(
                    f"{place} has format {shape['format']}; this version reads {FORMAT}"
                )
            if not (shape["failed"] or survivors) or (
                held_out is not None and shape["held_out_operator"] != held_out
            ):
                continue
            run = labelled_run(shape)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{place} is no labelled run: {error}") from error
        found.append(run)
    return found


NamedSteps = dict[tuple[str, str], tuple[int, str]]
"""Decisive step and agent by project and trace id."""


def named_steps(labels: Sequence[HumanLabel]) -> NamedSteps:
    """Return the decisive steps that people named; where they differ, what most say counts."""
    by_run: dict[tuple[str, str], Counter[tuple[int, str]]] = defaultdict(Counter)
    for label in labels:
        if label.decisive_step is not None:
            named = (label.decisive_step, label.decisive_agent)
            by_run[label.project, label.trace_id][named] += 1
    return {run: said.most_common(1)[0][0] for run, said in by_run.items()}


def named_modes(labels: Sequence[HumanLabel]) -> dict[tuple[str, str], dict[str, bool]]:
    """Return the failure modes of each run that at least half of those who named any saw in it."""
    by_run: dict[tuple[str, str], list[HumanLabel]] = defaultdict(list)
    for label in labels:
        if label.modes:
            by_run[label.project, label.trace_id].append(label)
    found = {}
    for run, said in by_run.items():
        counts = Counter(code for label in said for code in label.modes if label.modes != NO_MODES)
        found[run] = {code: True for code, count in counts.items() if 2 * count >= len(said)}
    return found


def labelled_runs(
    store: Store,
    named: Mapping[tuple[str, str], tuple[int, str]] | None = None,
    *,
    most: int | None = None,
) -> list[LabelledRun]:
    """Read the runs whose decisive step people named; those without spans are left out.

    Args:
        store: where they are.
        named: their decisive steps; those of all labels if not given.
        most: read no more runs than these, the first by their ids, which are drawn by chance.

    Raises:
        StorageError: the database does not answer.
    """
    labels = labels_of(store) if named is None else []
    named = named_steps(labels) if named is None else named
    modes = named_modes(labels)
    by_id = sorted(named.items(), key=lambda item: item[0][::-1])
    found = (_read(store, *run, *said, modes.get(run, {})) for run, said in by_id)
    return list(islice((run for run in found if run is not None), most))


def _read(
    store: Store, project: str, trace_id: str, step: int, agent: str, modes: Mapping[str, bool]
) -> LabelledRun | None:
    summary = run_summary(store, trace_id, project=project)
    if summary is None or not summary.spans:
        return None
    trajectory = read_alone(store, summary)
    # Runs of one question share a group, so that no fold is scored on what it has learned.
    group = trajectory.task or trace_id
    return LabelledRun("store", trace_id, trajectory, group, step, agent, modes=modes)


FORMAT: Final = 1
RUNS: Final = "runs.jsonl"
PARQUET: Final = "runs.parquet"
CARD: Final = "card.md"
_AT_ONCE: Final = 64
"""Rows of a row group; each holds a whole run."""


def write_set(folder: Path, shapes: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows of a set as JSON lines, and as Parquet where pyarrow is installed.

    In Parquet run and confirmation are JSON texts. Earlier files are replaced when the new ones are complete; without pyarrow an
    earlier Parquet file is removed, because it would hold other rows.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    partly = folder / f"{RUNS}.part"
    with partly.open("w", encoding="utf-8") as file:
        for shape in shapes:
            file.write(json.dumps(shape, ensure_ascii=False) + "\n")
    partly.replace(folder / RUNS)
    if not has_parquet():
        (folder / PARQUET).unlink(missing_ok=True)
        return
    draft = folder / f"{PARQUET}.part"
    _write_parquet(draft, _lines(folder / RUNS))
    draft.replace(folder / PARQUET)


def has_parquet() -> bool:
    """Return whether Parquet can be written and read here."""
    try:
        import pyarrow.parquet  # noqa: F401  # only looked for
    except ImportError:
        return False
    return True


def shapes_of(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a set with the place of each; JSON lines are read where there are both files.

    Raises:
        ConfigurationError: the folder holds no set, or one that cannot be read.
    """
    lines, table = folder / RUNS, folder / PARQUET
    if lines.is_file() or not table.is_file():
        try:
            for number, line in enumerate(_lines(lines), 1):
                yield f"{lines}:{number}", _json(line, f"{lines}:{number}")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{folder} holds no labelled set: {error}") from error
        return
    for number, row in enumerate(_rows(table), 1):
        place = f"{table}, row {number},"
        run = _json(row.pop("run", ""), place)
        told = row.pop("confirmation", None)  # a set of before has none
        yield place, {**row, "run": run, "confirmation": told and _json(told, place)}


def _lines(path: Path) -> Iterator[str]:
    # Texts of agents may hold other line ends, which JSON does not escape.
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n")


def _json(text: Any, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{place} is no labelled run: {error}") from error


def _write_parquet(path: Path, lines: Iterable[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, number = pa.string(), pa.float64()
    schema = pa.schema(
        [
            ("format", pa.int32()),
            *((name, text) for name in ("id", "source", "group", "operator", "mode")),
            ("step", pa.int32()),
            ("agent", text),
            *((name, pa.bool_()) for name in ("decisive", "failed")),
            ("missed_by", pa.list_(text)),
            ("success_after", number),
            ("point_of_no_return", pa.int32()),
            ("e_value", number),
            *((name, text) for name in ("system", "framework", "split")),
            ("held_out_operator", pa.bool_()),
            ("uncertain", text),
            ("run", pa.large_string()),
            ("confirmation", text),
        ]
    )
    waiting: list[dict[str, Any]] = []
    with pq.ParquetWriter(path, schema) as writer:
        for line in lines:
            shape = json.loads(line)
            texts = {name: _text(shape.get(name)) for name in ("run", "confirmation")}
            waiting.append({**shape, **texts})
            if len(waiting) == _AT_ONCE:
                writer.write_table(pa.Table.from_pylist(waiting, schema))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_pylist(waiting, schema))


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ConfigurationError(
            f"{path} is Parquet, and {RUNS} is missing: pip install pyarrow"
        ) from error
    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=_AT_ONCE):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
