"""Who&When (arXiv 2505.00212): failed runs with the decisive agent and step, and AgentRx' labels.

AgentRx labelled the hand-crafted runs a second time: every failure with its step, and the root
cause. Its files know runs by the hash of the question, Who&When's by a name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace.untrusted_json import read_json
from mast_trace_judge.local.texts import says_failed
from mast_trace_judge.study.datasets.labelled import LabelledRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SUBSETS = ("algorithm-generated", "hand-crafted")
_FRAMEWORKS = {"algorithm-generated": "ag2", "hand-crafted": "magentic-one"}
_SUFFIX = re.compile(r"\s*\(.*\)\s*$")
_RECIPIENT = re.compile(r"\(->\s*(.*?)\s*\)")
_EXECUTORS = frozenset({"computer_terminal", "computerterminal"})
"""Agents that run the code of the message before them and write nothing of their own."""


def read_who_and_when(data: Path, subset: str) -> list[LabelledRun]:
    """Read a subset, in the order of its file names' numbers; empty where the folder lacks it.

    The folder may be the parent of ``who-and-when`` or of the published ``Who&When``, or hold the
    subsets itself.

    Raises:
        ValueError: a file is no labelled run; the text names it.
    """
    files = sorted(_files(data, subset), key=lambda path: (len(path.stem), path.stem))
    return [_read(path, subset) for path in files]


def _read(path: Path, subset: str) -> LabelledRun:
    try:
        return _labelled(read_json(path.read_text(encoding="utf-8")), subset, path.stem)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path.name} is no labelled run: {problem}") from error


def _files(data: Path, subset: str) -> list[Path]:
    for parent in (data / "who-and-when", data / "Who&When", data):
        for folder in (parent / subset, parent / subset.title()):
            if folder.is_dir():
                return list(folder.glob("*.json"))
    return []


def same_agent(one: str, other: str) -> bool:
    """Return whether two names are of one agent: suffixes such as ``(thought)`` and case are no part."""
    return plain_name(one).lower() == plain_name(other).lower()


def plain_name(name: str) -> str:
    """Return an agent's name without the suffix in brackets that Magentic-One adds."""
    return _SUFFIX.sub("", name).strip()


def recipient_of(name: str) -> str:
    """Return the addressee that Magentic-One adds to an agent's name; empty where there is none."""
    found = _RECIPIENT.search(name)
    return found[1] if found else ""


def _labelled(record: Mapping[str, Any], subset: str, name: str) -> LabelledRun:
    return LabelledRun(
        subset=subset,
        name=name,
        trajectory=from_history(
            record["history"],
            trace_id=f"{subset}/{name}",
            task=str(record.get("question", "")),
            framework=_FRAMEWORKS[subset],
        ),
        group=str(record.get("question_ID", name)),
        step=int(record["mistake_step"]),
        agent=str(record["mistake_agent"]),
        success=False,
        extra={"ground_truth": record.get("ground_truth", "")},
    )


def from_history(
    history: Sequence[Mapping[str, Any]], *, trace_id: str, task: str, framework: str = ""
) -> Trajectory:
    """Read a list of ``name``, ``role`` and ``content`` as the steps of a failed run.

    Step numbers are positions in the list. The agent is in ``name``, and in ``role`` where no name
    is given. Executors' entries become tool steps.
    """
    names = [str(entry.get("name") or entry.get("role") or "") for entry in history]
    return Trajectory(
        trace_id=trace_id,
        steps=tuple(
            _step(index, name, str(entry.get("content") or ""))
            for index, (name, entry) in enumerate(zip(names, history, strict=True))
        ),
        framework=framework,
        task=task,
        outcome="failure",
    )


def _step(index: int, name: str, text: str) -> Step:
    agent = plain_name(name)
    recipient = recipient_of(name)
    runs = agent.lower() in _EXECUTORS
    failed = says_failed(text) if runs else None
    return Step(
        index=index,
        kind=StepKind.TOOL if runs else StepKind.MESSAGE,
        agent=agent,
        text=text,
        role="user" if agent == "human" else "assistant",
        recipients=(recipient,) if recipient else (),
        tool=agent if runs else "",
        error=failed[0] if failed else None,
    )
