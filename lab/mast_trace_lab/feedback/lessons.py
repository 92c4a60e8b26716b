"""Lessons of one run, and of the runs in a store, the latest first: proved, exact or labelled findings, each with words that the run holds.

Nothing else becomes a lesson: neither a guess nor a model's reading. A lesson never holds a right answer
that its run did not know before the step, and no text that speaks to its reader.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict

from mast_trace.experiment.marks import task_hash
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.batch import read_alone
from mast_trace_judge.local.addressing.recognition import addresses_reader, clean
from mast_trace_judge.local.figures import figures, known_values
from mast_trace_judge.store.labels import labels_of
from mast_trace_judge.store.records import utc
from mast_trace_judge.store.verdicts import load_latest
from mast_trace_judge.verdict import Evidence, ModeFinding, Verdict
from mast_trace_lab.confirm.leaks import known_before, leaked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.store.labels import HumanLabel

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "1.1": "Before answering, compare the result with every constraint of the task.",
        "1.2": "Do the work of your own role only, and leave the rest to the agent whose role it is.",
        "1.3": "Do not repeat a step that is done; use its result, or change what you ask.",
        "1.4": "Restate what is already known from earlier messages before going on.",
        "1.5": "Stop as soon as the goal is met, and say so in the agreed way.",
        "2.1": "Go on from the progress made so far; do not start the dialogue again.",
        "2.2": "Ask when data are missing or unclear; do not assume them.",
        "2.3": "Check that the next step serves the task before taking it.",
        "2.4": "Pass on every fact that the next agent needs, in full.",
        "2.5": "Use what the other agents have reported, and say where you disagree.",
        "2.6": "Do what you announced, and copy figures from tool results as they stand.",
        "3.1": "Do not finish before every part of the task has its result.",
        "3.2": "Check the result with a tool or a calculation before handing it on.",
        "3.3": "When checking, compute the result again instead of reading it over.",
    }
)
"""A sentence for each code of `mast_trace.taxonomy.FAILURE_MODES`."""

WITHOUT_MODE: Final = (
    "Check such a step against what was read before it, and do not hand it on unchecked."
)
"""The sentence for a step whose failure mode is not known."""

GENERAL: Final = (
    "Work carefully and in order.",
    "Read the task again before you begin.",
    "Keep every answer short, clear and complete.",
    "Take the time that the work needs.",
    "Think before each step, and explain your reasons.",
    "Work well together with the other agents.",
    "Write in a friendly and precise tone.",
    "Try to give the best answer that you can.",
    "Pay attention to detail.",
    "Structure longer answers.",
    "Avoid needless words.",
    "Be thorough.",
)
"""Sentences that say nothing about any run, for the placebo."""

LessonEvidence = Literal["confirmed", "labelled", "exact"]
"""The kind of evidence, the strongest first: ``confirmed`` by replays, ``labelled`` by people, ``exact`` where the
record shows a slip whose figure reaches the answer."""

LONGEST_QUOTE: Final = 160
LONGEST_NAME: Final = 60
MASK: Final = "[...]"
"""The mask in a quote for a link, for figures, and for words that only the right answer holds."""
_MOST_MASKS: Final = 5
_SPACE: Final = re.compile(r"\s+")
# Control characters, characters that reorder or hide text, and the marks of a quote and of a fence.
_UNSAFE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u00ab\u00bb<>`{}]"
    r"|[\U000e0000-\U000e007f]"
)

_COMMAND: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:above|previous|prior|earlier|instructions?|rules?)\b"
    r"|\byou (?:must|should|shall|are) now\b|\bfrom now on\b|\bsystem prompt\b|\bnew instructions?\b"
    r"|(?:^|[\s\"'])(?:system|assistant|developer|user)\s*:",
    re.IGNORECASE,
)
"""Words of texts that give orders to their reader. Many orders have none of them: the fence is the rest."""
_LINK: Final = re.compile(r"\b(?:https?|ftp|data|javascript):\S*", re.IGNORECASE)


class RunLesson(BaseModel):
    """A lesson of a run.

    Attributes:
        run: its trace id.
        agent: the agent that erred; untrusted text, cut to 60 characters.
        step: index of the step.
        mode: code of the failure mode; empty if none is known.
        quote: words of the step, at most 160 characters in one line; untrusted text.
        advice: what to do, one sentence of `mast_trace_lab.feedback.lessons`.
        evidence: the kind of evidence.
        task: hash of the run's task (`mast_trace.experiment.marks.task_hash`); empty if it has none.
        task_key: key of its task in an experiment; empty outside of experiments.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    agent: str
    step: int
    mode: str
    quote: str
    advice: str
    evidence: LessonEvidence
    task: str = ""
    task_key: str = ""


def lessons_of(
    run: Trajectory,
    verdict: Verdict | None,
    labels: Sequence[HumanLabel] = (),
    *,
    trace_id: str,
    answers: Sequence[str] = (),
) -> list[RunLesson]:
    """Return the lessons of a run, the best proved first; none of a run that succeeded.

    Args:
        run: the run, with its recorded outcome.
        verdict: on the run as it is, with what replays have shown.
        labels: people's labels of the run.
        trace_id: of the run.
        answers: right answers, as far as known, beside the reason and the answer given with the outcome.
    """
    said = {label.outcome for label in labels} - {""}
    if run.outcome == "success" or "success" in said:
        return []
    if verdict is not None and verdict.outcome == "success":
        return []
    reference = [text for text in (*answers, run.outcome_reason, run.expected) if text]
    found: dict[int, RunLesson] = {}
    for step, mode, quotes, evidence in _findings(verdict, labels):
        if step in found or not 0 <= step < len(run.steps):
            continue
        if quote := _quote(run, run.steps[step], quotes, reference):
            found[step] = RunLesson(
                run=trace_id,
                agent=one_line(run.steps[step].agent, LONGEST_NAME),
                step=step,
                mode=mode,
                quote=quote,
                advice=ADVICE.get(mode, WITHOUT_MODE),
                evidence=evidence,
                task=task_hash(run.task),
            )
    return list(found.values())


def one_line(text: str, limit: int) -> str:
    """Return an untrusted text as one line without characters that could end its quotation; it ends at a word."""
    return cut(_SPACE.sub(" ", _UNSAFE.sub(" ", text)).strip(), limit)


def cut(line: str, limit: int) -> str:
    """Return the words of a line that fit; a word that is longer than that is cut."""
    if len(line) <= limit:
        return line
    return (line[: limit + 1].rpartition(" ")[0] or line[:limit]).rstrip()


def _findings(
    verdict: Verdict | None, labels: Sequence[HumanLabel]
) -> Iterator[tuple[int, str, tuple[str, ...], LessonEvidence]]:
    """Yield step, mode and quotes of each finding that may be taught."""
    shown = () if verdict is None else verdict.shown
    if verdict is not None and verdict.rank == "confirmed by replay" and verdict.decisive:
        step = verdict.decisive.step
        yield step, _mode_at(shown, step), _quotes_at(shown, step), "confirmed"
    steps = {label.decisive_step for label in labels if label.decisive_step is not None}
    if len(steps) == 1:  # people who disagree have decided nothing
        (step,) = steps
        named = {label.modes for label in labels if label.decisive_step == step}
        modes = next(iter(named)) if len(named) == 1 else ()
        mode = modes[0] if len(modes) == 1 and modes[0] in ADVICE else _mode_at(shown, step)
        yield step, mode, _quotes_at(shown, step), "labelled"
    for place in () if verdict is None else verdict.look_first:
        if place.basis == "record" and place.reaches_answer:
            # Other findings of the step do not explain the place.
            own = (each.code for each in shown if each.reason == place.why)
            yield place.step, next(own, "") or _mode_at(shown, place.step), place.quotes, "exact"


def _mode_at(shown: Sequence[ModeFinding], step: int) -> str:
    """Return the mode that an exact finding gives to a step; empty if there is none, or several."""
    codes = {each.code for each in shown if each.evidence is Evidence.EXACT and step in each.steps}
    return codes.pop() if len(codes) == 1 else ""


def _quotes_at(shown: Sequence[ModeFinding], step: int) -> tuple[str, ...]:
    exact = (each for each in shown if each.evidence is Evidence.EXACT and step in each.steps)
    return tuple(quote for each in exact for quote in each.quotes)


def _quote(run: Trajectory, step: Step, quotes: Sequence[str], reference: Sequence[str]) -> str:
    """Return words of a step that may be shown; empty if there are none.

    Quotes that stand in the step come first, then its beginning; of a tool call the arguments, not the
    result, which the agent has not written. Figures that the task does not hold are masked, for any may be
    the right answer, and so are words that only the right answer holds.
    """
    of_call = step.kind is StepKind.TOOL
    shown_of = (step.arguments, step.tool) if of_call else (step.text, step.arguments)
    texts = [text for text in shown_of if text.strip()]
    if any(map(_gives_orders, texts)):
        return ""
    known = known_before(run, step.index, step.span_id)
    whole = [_SPACE.sub(" ", text) for text in texts]
    for quote in (*quotes, *texts):
        words = _SPACE.sub(" ", quote).strip()
        if not words or not any(words in text for text in whole):
            continue
        line = one_line(_without_figures(_LINK.sub(MASK, words), run.task), LONGEST_QUOTE)
        shown = _masked(line, reference, known)
        if shown and not _gives_orders(shown):
            return shown
    return ""


def _without_figures(quote: str, task: str) -> str:
    """Return a quote with a mask in place of each figure that the task does not hold."""
    known = known_values([task])
    for figure in figures(quote):
        if not figure.readings & known:
            quote = re.sub(rf"(?<![\d.]){re.escape(figure.literal)}(?![\d])", MASK, quote)
    return quote


def _gives_orders(text: str) -> bool:
    """Return whether a text speaks to the model that reads it."""
    return addresses_reader(clean(text)) or bool(_COMMAND.search(clean(text)))


def _masked(quote: str, reference: Sequence[str], known: Sequence[str]) -> str:
    """Return a quote without what only the right answers hold; empty if that cannot be taken out."""
    for _ in range(_MOST_MASKS):
        found = leaked(quote, reference, known)
        if not found:
            return quote if quote.replace(MASK, "").strip(" .,;:") else ""
        masked = re.sub(re.escape(found), MASK, quote, flags=re.IGNORECASE)
        if masked == quote:
            return ""
        quote = masked
    return ""


MOST_RUNS: Final = 50
"""Runs that are read for lessons, the latest ones."""

_CANDIDATES = """
SELECT Project, TraceId, max(RunEnd) AS Ended FROM mast_findings
WHERE Outcome != 'success' AND Kind = '' AND Method != 'provisional' AND ({workflow:String} = '' OR Name = {workflow:String})
    AND ({run:String} = '' OR TraceId = {run:String})
    AND (isNull({project:Nullable(String)}) OR Project = {project:Nullable(String)})
    AND (has(LookFirst.Basis, 'record')
        OR (Project, TraceId) GLOBAL IN (SELECT Project, TraceId FROM mast_confirmations WHERE isNotNull(OriginStep))
        OR (Project, TraceId) GLOBAL IN (SELECT Project, TraceId FROM mast_human_labels WHERE isNotNull(DecisiveStep)))
    AND (NOT {untouched:Bool} OR (Project, TraceId) GLOBAL NOT IN
        (SELECT Project, TraceId FROM mast_experiment_runs
         WHERE FeedbackId != '' OR (Experiment != '' AND Arm != 'none')))
GROUP BY Project, TraceId
ORDER BY Ended DESC, TraceId
LIMIT {limit:UInt32}
"""
_TASK = """
SELECT max(Task) AS Task FROM mast_experiment_runs
WHERE Project = {project:String} AND TraceId = {run:String}
"""


@dataclass(frozen=True)
class Taught:
    """A lesson with the run that it comes from.

    Attributes:
        lesson: the lesson.
        project: of the run.
        run_end: end of the run, whose retention a stored lesson follows.
    """

    lesson: RunLesson
    project: str
    run_end: datetime


def taught(
    store: Store,
    *,
    project: str | None = None,
    run: str = "",
    workflow: str = "",
    agent: str = "",
    untouched: bool = False,
    most_runs: int = MOST_RUNS,
    seconds: float = math.inf,
) -> Iterator[Taught]:
    """Yield the lessons of the latest failed runs; of equal agent and failure mode the first alone.

    Args:
        store: the database.
        project: only this project's runs.
        run: trace id of the only run to learn from.
        workflow: only runs of this workflow.
        agent: only lessons about this agent.
        untouched: leaves out runs that were given lessons or a placebo, and all arms but ``none``.
        most_runs: runs that are read at most.
        seconds: time after which no further run is read.

    Raises:
        StorageError: the database does not answer.
    """
    until = time.monotonic() + seconds
    rows = store.query(
        _CANDIDATES,
        {
            "project": project,
            "run": run,
            "workflow": workflow,
            "untouched": untouched,
            "limit": most_runs,
        },
    )
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if time.monotonic() > until:
            return
        for lesson in _of_run(store, row["Project"], row["TraceId"]):
            kind = (lesson.agent, lesson.mode or lesson.quote)
            if kind in seen or (agent and lesson.agent != agent):
                continue
            seen.add(kind)
            yield Taught(lesson, row["Project"], utc(row["Ended"]))


def _of_run(store: Store, project: str, trace_id: str) -> list[RunLesson]:
    summary = run_summary(store, trace_id, project=project)
    if summary is None or not summary.spans or summary.kind:
        return []
    verdict = load_latest(store, trace_id, project=project)
    if verdict is not None and verdict.fingerprint != summary.fingerprint:
        return []  # the run has changed: its steps may be others until it is judged again
    labels = [each for each in labels_of(store, trace_id) if each.project == project]
    found = lessons_of(
        read_alone(store, summary),
        verdict,
        labels,
        trace_id=trace_id,
        answers=(summary.outcome_reason, *(label.note for label in labels)),
    )
    if not found:
        return []
    (task,) = store.query(_TASK, {"project": project, "run": trace_id})
    return [each.model_copy(update={"task_key": task["Task"]}) for each in found]
