"""Who&When (arXiv 2505.00212): failed runs with the decisive agent and step, and AgentRx' labels.

AgentRx labelled the hand-crafted runs a second time: every failure with its step, and the root
cause. Its files know runs by the hash of the question, Who&When's by a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import Trajectory
from mast_trace.untrusted_json import read_json
from mast_trace_judge.study.labelled import LabelledRun
from mast_trace_judge.transfer.formats.chat import plain_steps

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SUBSETS = ("algorithm-generated", "hand-crafted")
_FRAMEWORKS = {"algorithm-generated": "ag2", "hand-crafted": "magentic-one"}


def read_who_and_when(data: Path, subset: str) -> list[LabelledRun]:
    """Read a subset, in the order of its file names' numbers; empty where the folder lacks it.

    The folder may be the parent of ``who-and-when`` or of the published ``Who&When``, or hold the
    subsets itself.
    """
    files = sorted(_files(data, subset), key=lambda path: (len(path.stem), path.stem))
    return [
        _labelled(read_json(path.read_text(encoding="utf-8")), subset, path.stem) for path in files
    ]


def _files(data: Path, subset: str) -> list[Path]:
    for parent in (data / "who-and-when", data / "Who&When", data):
        for folder in (parent / subset, parent / subset.title()):
            if folder.is_dir():
                return list(folder.glob("*.json"))
    return []


def _labelled(record: Mapping[str, Any], subset: str, name: str) -> LabelledRun:
    return LabelledRun(
        subset=subset,
        name=name,
        trajectory=Trajectory(
            trace_id=f"{subset}/{name}",
            steps=plain_steps(record["history"]),
            framework=_FRAMEWORKS[subset],
            task=str(record.get("question", "")),
            outcome="failure",
        ),
        group=str(record.get("question_ID", name)),
        step=int(record["mistake_step"]),
        agent=str(record["mistake_agent"]),
        success=False,
        extra={"ground_truth": record.get("ground_truth", "")},
    )
