"""MAST's first annotated traces (AG2, HyperAgent, MetaGPT) and AG2 conversations with outcomes.

The labels follow the first draft of the taxonomy; thirteen of its columns are mapped to MAST-14 by
name, unofficially. Humans agreed on them with kappa 0.24 in the first round: weak evidence.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace.untrusted_json import read_json
from mast_trace_judge.study.labelled import LabelledRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_HYPERAGENT_LINE = re.compile(r"^HyperAgent_\S+ - \w+ - ", re.MULTILINE)
_HYPERAGENT_SPEAKER = re.compile(r"^(?:([\w-]+)'s Response|([\w-]+)->([\w-]+)): ?")
_METAGPT_LINE = re.compile(
    r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \|[^|\n]*\| [^\n]*? - ", re.MULTILINE
)
_METAGPT_SPEAKER = re.compile(r"^(\w+)\((\w+)\): ")
_PROXIES = frozenset({"mathproxyagent"})
"""Programs that stand in for the user: they run code and say "continue"."""


def read_mast_v0(data: Path) -> list[LabelledRun]:
    """Read the labelled traces of the first draft, with the answers of two models as annotators."""
    folder = data / "mast-v0"
    columns: dict[str, str] = json.loads((folder / "v0_to_mast14.json").read_text("utf-8"))
    rows = (folder / "labels.jsonl").read_text("utf-8").splitlines()
    return [_labelled(folder, read_json(row), columns) for row in rows if row.strip()]


def read_mathchat(data: Path) -> list[LabelledRun]:
    """Read the AG2 conversations on mathematics with a recorded correctness of the answer."""
    runs = []
    for path in sorted((data / "ag2-mathchat").glob("*/*.json")):
        record = read_json(path.read_text("utf-8"))
        correct = bool(record["other_data"]["correct"])
        runs.append(
            LabelledRun(
                subset=path.parent.name,
                name=path.stem,
                trajectory=_from_ag2(record, f"{path.parent.name}/{path.stem}"),
                group=str(record["other_data"].get("seed_question") or path.stem),
                success=correct,
            )
        )
    return runs


def read_ag2_coding(data: Path) -> list[LabelledRun]:
    """Read AG2's group chats of a planner, a coder and a tester, labelled with today's 14 modes.

    One annotator, who revised some labels after a model's answers; nobody runs tools there.
    """
    rows = (data / "ag2-coding" / "runs.jsonl").read_text("utf-8").splitlines()
    return [_coding(read_json(row)) for row in rows if row.strip()]


def _coding(record: Mapping[str, Any]) -> LabelledRun:
    shown = {str(code) for code in record["modes"]}
    return LabelledRun(
        subset="ag2-coding",
        name=str(record["id"]),
        trajectory=_from_ag2(record, f"ag2-coding/{record['id']}"),
        group=str(record["id"]),
        modes={code: code in shown for code in FAILURE_MODES},
    )


def _from_trace(record: Mapping[str, Any], trace_id: str) -> Trajectory:
    """Read one trace file of MAST's, whose shape tells the framework."""
    if "trajectory" not in record:
        return _from_metagpt(record, trace_id)
    log = record["trajectory"]
    of_ag2 = isinstance(log, list) and bool(log) and isinstance(log[0], dict)
    return (_from_ag2 if of_ag2 else _from_hyperagent)(record, trace_id)


def _labelled(folder: Path, row: Mapping[str, Any], columns: Mapping[str, str]) -> LabelledRun:
    framework = str(row["framework"])
    record = read_json((folder / row["trace_file"]).read_text("utf-8"))
    given = row["v0_labels"]
    return LabelledRun(
        subset=framework,
        name=str(row["task_id"]),
        trajectory=_from_trace(record, f"{framework}/{row['task_id']}"),
        group=str(row["task_id"]),
        modes={code: bool(given[column]) for column, code in columns.items() if column in given},
        success=str(row["solved"]).upper() == "TRUE",
        annotators={
            "o1, few examples": _annotators(row.get("o1_v1")),
            "Claude 3.7": _annotators(row.get("claude37_v1")),
        },
    )


def _annotators(answers: Mapping[str, bool] | None) -> dict[str, bool]:
    """Return the answers on modes that the taxonomy kept; two of the draft's modes were dropped."""
    return {code: bool(answer) for code, answer in (answers or {}).items() if code in FAILURE_MODES}


def _from_ag2(record: Mapping[str, Any], trace_id: str) -> Trajectory:
    entries = (
        (str(entry.get("name") or entry.get("role") or ""), _joined(entry["content"]))
        for entry in record["trajectory"]
    )
    steps = []
    for index, (name, text) in enumerate(entries):
        proxy = name in _PROXIES
        steps.append(
            Step(
                index=index,
                kind=StepKind.MESSAGE,
                agent=name,
                text=text,
                role="user" if proxy and index == 0 else "assistant",
                # The proxy's text is a fixed one of the framework, or a program's output.
                synthetic=proxy,
            )
        )
    return Trajectory(
        trace_id=trace_id,
        steps=tuple(steps),
        framework="ag2",
        task=_joined(record["problem_statement"]),
    )


def _from_hyperagent(record: Mapping[str, Any], trace_id: str) -> Trajectory:
    text = _joined(record["trajectory"])
    entries = []
    for entry in _entries(text, _HYPERAGENT_LINE):
        speaker = _HYPERAGENT_SPEAKER.match(entry)
        if speaker is None:
            entries.append(("HyperAgent", "", entry))
        else:
            entries.append((speaker[1] or speaker[2], speaker[3] or "", entry[speaker.end() :]))
    return Trajectory(
        trace_id=trace_id,
        steps=_steps(entries),
        framework="hyperagent",
        task=_joined(record["problem_statement"]),
    )


def _from_metagpt(record: Mapping[str, Any], trace_id: str) -> Trajectory:
    entries = []
    for entry in _entries(str(record["content"]), _METAGPT_LINE):
        speaker = _METAGPT_SPEAKER.match(entry)
        entries.append((speaker[1], "", entry[speaker.end() :]) if speaker else ("", "", entry))
    return Trajectory(
        trace_id=trace_id,
        steps=_steps(entries),
        framework="metagpt",
        task=str(record.get("prompt", "")),
    )


def _entries(text: str, line: re.Pattern[str]) -> Iterator[str]:
    """Yield a log's entries without their heads.

    An entry that comes twice in a row counts once: these logs were written through several handlers
    when a run was started again.
    """
    heads = list(line.finditer(text))
    previous = None
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        entry = text[head.end() : following.start() if following else len(text)].strip()
        if entry != previous:
            yield entry
        previous = entry


def _steps(entries: Iterable[tuple[str, str, str]]) -> tuple[Step, ...]:
    return tuple(
        Step(
            index=index,
            kind=StepKind.MESSAGE,
            agent=agent,
            text=text,
            role="assistant",
            recipients=(recipient,) if recipient else (),
        )
        for index, (agent, recipient, text) in enumerate(entries)
    )


def _joined(content: str | Iterable[str]) -> str:
    return content if isinstance(content, str) else "\n".join(str(line) for line in content)
