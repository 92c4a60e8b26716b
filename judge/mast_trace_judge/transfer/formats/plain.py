"""Runs as published sets keep them: Who&When, MAST, tau-bench, and traces of agents' loops."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.store.labels import NO_MODES, HumanLabel
from mast_trace_judge.study.datasets.mast import from_trace
from mast_trace_judge.study.datasets.who_and_when import from_history
from mast_trace_judge.transfer.formats.chat import entries_of, named_within
from mast_trace_judge.transfer.formats.conversation import steps_of, transcript_of
from mast_trace_judge.transfer.formats.kinds import Format, Transcript, is_record, whole_text
from mast_trace_judge.transfer.formats.messages import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace_judge.study.datasets.labelled import LabelledRun


def labelled(annotator: str, run: LabelledRun) -> Transcript:
    """Return a run of a published set with the labels of people and other judges."""
    known = run.step is not None and 0 <= run.step < len(run.trajectory.steps)
    outcome = {True: "success", False: "failure", None: run.trajectory.outcome}[run.success]
    label = HumanLabel(
        trace_id="",
        annotator=annotator,
        outcome=outcome,
        modes=_modes(run.modes),
        decisive_step=run.step if known else None,
        decisive_agent=run.agent,
    )
    others = (
        HumanLabel("", annotator, modes=_modes(modes))
        for annotator, modes in run.annotators.items()
    )
    return Transcript(run.trajectory, f"{run.subset}/{run.name}", (label, *others))


def _modes(looked_at: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the modes that an annotator saw among those examined; empty where none were examined."""
    shown = tuple(sorted(code for code, shown in looked_at.items() if shown))
    return shown or (NO_MODES if looked_at else ())


def _checked(trajectory: Trajectory) -> Trajectory:
    if not trajectory.steps:
        raise ValueError("it holds no messages")
    return trajectory


# -- Who&When -------------------------------------------------------------------------------------


def _read_who_and_when(record: dict[str, Any], name: str) -> Iterator[Transcript]:
    history = record["history"]
    _check_entries(history)
    trajectory = from_history(history, trace_id=name, task=str(record.get("question") or ""))
    step = None
    if "mistake_step" in record:
        step = _whole_number(record["mistake_step"], "mistake_step")
        if not 0 <= step < len(trajectory.steps):
            raise ValueError(f"mistake_step {step} is no step of its {len(trajectory.steps)}")
    agent = str(record.get("mistake_agent") or "")
    label = HumanLabel("", "Who&When", trajectory.outcome, (), step, agent)
    yield Transcript(_checked(trajectory), name, () if step is None else (label,))


def _whole_number(value: Any, what: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what} is no whole number: {str(value)[:40]!r}") from None


def _check_entries(entries: Any) -> None:
    if not isinstance(entries, list):
        raise ValueError("its history is no list")  # noqa: TRY004  # one error for what is read
    for number, entry in enumerate(entries):
        try:
            _check_entry(entry)
        except ValueError as error:
            raise ValueError(f"entry {number} is no message: {error}") from None


def _check_entry(entry: Any) -> None:
    if not isinstance(entry, dict):
        raise ValueError("expected an object")  # noqa: TRY004  # one error for what is read
    if not isinstance(entry.get("content"), str):
        raise ValueError("its content is no text")  # noqa: TRY004
    if not (entry.get("role") or entry.get("name")):
        raise ValueError("it has neither role nor name")


WHO_AND_WHEN = Format(
    name="who-and-when",
    title="Who&When log",
    recognised="`history`, a list of `name` or `role` and `content`",
    read=_read_who_and_when,
    record=lambda value: is_record(value, "history"),
)


# -- MAST -----------------------------------------------------------------------------------------


def _read_mast(record: dict[str, Any], name: str) -> Iterator[Transcript]:
    try:
        trajectory = _checked(from_trace({"problem_statement": "", **record}, name))
    except (KeyError, TypeError, AttributeError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"it is no trace of MAST: {problem}") from None
    correct = record.get("other_data")
    if isinstance(correct, dict) and isinstance(correct.get("correct"), bool):
        outcome = "success" if correct["correct"] else "failure"
        trajectory = dataclasses.replace(trajectory, outcome=outcome)
    labels: tuple[HumanLabel, ...] = ()
    modes = record.get("modes")
    if isinstance(modes, list) and all(isinstance(mode, str) for mode in modes):
        note = str(record.get("notes") or "")
        labels = (HumanLabel("", "MAST", modes=tuple(modes) or NO_MODES, note=note),)
    yield Transcript(trajectory, named_within(record, name), labels)


def _is_mast(value: Any) -> bool:
    if is_record(value, "trajectory"):
        return isinstance(value["trajectory"], list | str)
    return is_record(value, "content", "prompt") and isinstance(value["content"], str)


MAST = Format(
    name="mast",
    title="MAST trace",
    recognised="`trajectory` with AG2's messages or HyperAgent's log, or `prompt` and MetaGPT's "
    "log under `content`",
    read=_read_mast,
    record=_is_mast,
)


# -- tau-bench ------------------------------------------------------------------------------------


def _read_tau(record: dict[str, Any], name: str) -> Iterator[Transcript]:
    messages = record.get("traj", record.get("messages"))
    if not isinstance(messages, list):
        raise ValueError("its messages are no list")  # noqa: TRY004
    entries = entries_of(messages)
    _, places = steps_of(entries)
    given = record.get("success", record.get("reward"))
    outcome = ""
    if isinstance(given, bool | int | float):
        outcome = "success" if given >= 1 else "failure"
    number = record.get("id", record.get("task_id", ""))
    yield transcript_of(
        entries,
        f"{name}/{number}",
        outcome=outcome,
        labels=_root_cause(record, places, outcome),
    )


def _root_cause(
    record: Mapping[str, Any], places: Sequence[int | None], outcome: str
) -> tuple[HumanLabel, ...]:
    """Return AgentRx' root cause, whose steps are the numbers of messages, from 1."""
    wanted = record.get("root_cause_failure_id")
    for failure in objects(record.get("failures")):
        if wanted is not None and str(failure.get("failure_id")) == str(wanted):
            message = _whole_number(failure.get("step_number"), "step_number") - 1
            if not 0 <= message < len(places):
                raise ValueError(f"step_number {message + 1} is none of its {len(places)} messages")
            agent = str(failure.get("failed_agent") or "")
            return (HumanLabel("", "AgentRx", outcome, (), places[message], agent),)
    return ()


TAU_BENCH = Format(
    name="tau-bench",
    title="tau-bench run",
    recognised="a chat under `traj` with a `reward`, or under `messages` with `expected_actions`",
    read=_read_tau,
    record=lambda value: (
        is_record(value, "traj", "reward") or is_record(value, "messages", "expected_actions")
    ),
)


# -- loops of one agent ---------------------------------------------------------------------------


def _read_loop(record: dict[str, Any], name: str) -> Iterator[Transcript]:
    steps: list[Step] = []
    task = ""
    for turn in objects(record["steps"]):
        task = task or str(turn.get("task") or "")
        events = objects(turn.get("tool_events"))
        for event in events:
            result = whole_text(event.get("result") or "")
            steps.append(
                Step(
                    index=len(steps),
                    kind=StepKind.TOOL,
                    agent="agent",
                    text=result,
                    tool=str(event.get("name") or ""),
                    arguments=whole_text(event.get("args") or {}),
                    call_id=str(event.get("id") or ""),
                    error=(result or "error") if event.get("is_error") is True else None,
                )
            )
        text = whole_text(turn.get("text") or "")
        if text and not events:
            steps.append(
                Step(len(steps), StepKind.MESSAGE, "agent", text, role="assistant"),
            )
    success = record.get("success")
    outcome = (
        {True: "success", False: "failure"}.get(success, "") if success in {True, False} else ""
    )
    trajectory = Trajectory(trace_id=name, steps=tuple(steps), task=task, outcome=outcome)
    yield Transcript(_checked(trajectory), named_within(record, name))


def _is_loop(value: Any) -> bool:
    return (
        is_record(value, "steps")
        and bool(turns := objects(value["steps"]))
        and all("action" in turn and "text" in turn for turn in turns)
    )


LOOPS = Format(
    name="agent-loop",
    title="agent loop",
    recognised="`steps` with `text`, `action` and `tool_events`",
    read=_read_loop,
    record=_is_loop,
)


# -- plain transcripts ----------------------------------------------------------------------------


def _read_plain(value: Any, name: str) -> Iterator[Transcript]:
    _check_entries(value)
    read = from_history(value, trace_id="", task=next(_asked(value), ""))
    steps = tuple(
        dataclasses.replace(step, role=str(entry.get("role") or step.role))
        for step, entry in zip(read.steps, value, strict=True)
    )
    # A plain transcript does not record how it ended.
    yield Transcript(_checked(dataclasses.replace(read, steps=steps, outcome="")), name)


def _asked(entries: Sequence[dict[str, Any]]) -> Iterator[str]:
    return (entry["content"] for entry in entries if entry.get("role") in {"user", "human"})


PLAIN = Format(
    name="transcript",
    title="plain transcript",
    recognised="a list of `name` or `role`, whatever they are called, and `content`",
    read=_read_plain,
    entry=_check_entry,
    message=lambda value: (
        isinstance(value, dict)
        and isinstance(value.get("content"), str)
        and bool(value.get("role") or value.get("name"))
    ),
)
