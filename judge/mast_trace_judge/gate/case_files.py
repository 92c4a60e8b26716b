"""Failures kept as cases: one compressed file each, which a test replays or runs again."""

from __future__ import annotations

import gzip
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import MastTraceError
from mast_trace.replay.run_files import lines_of, run_of
from mast_trace_judge.verdict import SHOWN_FROM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace.trajectory import Trajectory

SUFFIX: Final = ".json.gz"
FOLDER: Final = Path("cases")
"""Folder of cases, beside the tests that use them."""
_KEY: Final = "case"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class CaseRefused(MastTraceError):
    """A run cannot become a case, or a case of that name cannot be written or removed."""


@dataclass(frozen=True)
class Case:
    """A recorded failure.

    Attributes:
        name: of the case: its file's, without the suffix.
        path: of its file.
        trajectory: the run.
        verdict: on it when it was added; None if it was not judged.
        modes: codes of the failure modes that it showed then.
        note: of the person who added it.
        added: time of adding, ISO 8601 in UTC.
        earlier: interrupted runs that it continues, the first one first.
    """

    name: str
    path: Path
    trajectory: Trajectory
    verdict: Mapping[str, Any] | None
    modes: tuple[str, ...]
    note: str = ""
    added: str = ""
    earlier: tuple[Trajectory, ...] = ()

    @property
    def task(self) -> str:
        """The task of the run."""
        return self.trajectory.task

    @property
    def run(self) -> str:
        """Id of the run."""
        return self.trajectory.trace_id

    @property
    def outcome(self) -> str:
        """The outcome: that which was recorded, else that of the verdict; empty if unknown."""
        judged = (self.verdict or {}).get("outcome")
        return self.trajectory.outcome or (judged if judged in {"success", "failure"} else "")

    @property
    def decisive(self) -> tuple[int, str] | None:
        """Number and agent of the decisive step, if the verdict names one."""
        found = (self.verdict or {}).get("decisive")
        if not isinstance(found, dict) or not isinstance(found.get("step"), int):
            return None
        return found["step"], str(found.get("agent") or "")


def load_case(path: str | Path) -> Case:
    """Read a case.

    Raises:
        ValueError: the file is no case; the message names it.
        OSError: it cannot be read.
    """
    path = Path(path)
    shapes = lines_of(path)
    last = [shape for shape in shapes if isinstance(shape.get(_KEY), dict)]
    if len(last) != 1:
        raise ValueError(f"{path} is no case: write it by `mast-trace cases add RUN`")
    about, shape = last[0][_KEY], last[0]
    verdict = shape.get("verdict")
    verdict = verdict if isinstance(verdict, dict) else None
    return Case(
        name=path.name.removesuffix(SUFFIX),
        path=path,
        trajectory=run_of(shape, path),
        verdict=verdict,
        modes=_shown(verdict),
        note=str(about.get("note") or ""),
        added=str(about.get("added") or ""),
        earlier=tuple(run_of(each, path) for each in shapes if each is not shape),
    )


def load_cases(folder: str | Path = FOLDER) -> list[Case]:
    """Return all cases of a folder by name; a folder that is not there has none.

    Raises:
        ValueError: a file is no case.
        OSError: one cannot be read.
    """
    return [load_case(path) for path in case_paths(folder)]


def case_paths(folder: str | Path = FOLDER) -> list[Path]:
    """Return the files of a folder that are named as cases."""
    return sorted(Path(folder).glob(f"*{SUFFIX}"))


def path_of(folder: Path, name: str) -> Path:
    """Return the path of a case.

    Raises:
        CaseRefused: the name is no plain file name.
    """
    if not _NAME.fullmatch(name) or ".." in name:
        raise CaseRefused(
            f"{name!r} cannot name a case: use up to 100 letters, digits, dots, dashes and underscores"
        )
    return folder / f"{name.removesuffix(SUFFIX)}{SUFFIX}"


def name_for(run: Trajectory) -> str:
    """Return a name for the case of a run: the run's name and the beginning of its id."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", run.name).strip("-").lower()[:40].strip("-")
    return f"{words or 'run'}-{run.trace_id[:8]}"


def write_case(
    path: Path, runs: Sequence[Mapping[str, Any]], *, added: str, note: str, replace: bool = False
) -> None:
    """Write a case; equal contents give equal bytes. The file appears whole or not at all.

    Args:
        path: of the file.
        runs: exported runs: the interrupted ones that the run continues, and last the run itself.
        added: the time, ISO 8601 in UTC.
        note: a person's words on it; may be empty.
        replace: whether an earlier file is replaced.

    Raises:
        CaseRefused: there is such a file, and ``replace`` is false.
        OSError: it cannot be written.
    """
    if path.exists() and not replace:
        raise CaseRefused(f"there is a case {path} already: choose another --name, or --replace it")
    about = {"format": 1, "added": added, "note": note}
    lines = [*map(dict, runs[:-1]), {**runs[-1], _KEY: about}]
    data = "".join(f"{json.dumps(each, ensure_ascii=True)}\n" for each in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        # Neither a name nor a time in the header: the same case is the same file in a repository.
        draft.write_bytes(gzip.compress(data, mtime=0))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def remove_case(path: Path) -> None:
    """Remove a case.

    Raises:
        CaseRefused: there is no such case.
        OSError: it cannot be removed.
    """
    try:
        path.unlink()
    except FileNotFoundError:
        raise CaseRefused(f"there is no case {path}; `mast-trace cases list` lists them") from None


def same_failures(cases: Iterable[Case], run: Trajectory, modes: Sequence[str]) -> list[Case]:
    """Return the cases with the task of a run and the same failure modes, or of the same run."""
    return [
        case
        for case in cases
        if case.run == run.trace_id
        or (bool(run.task) and case.task == run.task and set(case.modes) == set(modes))
    ]


def _shown(verdict: Mapping[str, Any] | None) -> tuple[str, ...]:
    found = (verdict or {}).get("modes")
    return tuple(
        str(mode["code"])
        for mode in (found if isinstance(found, list) else ())
        if isinstance(mode, dict)
        and isinstance(mode.get("probability"), int | float)
        and mode["probability"] >= SHOWN_FROM
        and "code" in mode
    )
