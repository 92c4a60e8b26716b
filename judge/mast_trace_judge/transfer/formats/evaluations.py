"""Runs that evaluation harnesses keep: inspect_ai, SWE-agent, tau-bench and ATIF."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from mast_trace_judge.transfer.formats.chat import entries_of
from mast_trace_judge.transfer.formats.conversation import Entry, Result, transcript_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    Transcript,
    is_record,
    moment_or_zero,
    objects_in,
    usage_of,
    word_in,
)
from mast_trace_judge.transfer.formats.messages import (
    call_of,
    entry_of,
    objects,
    text_of_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def _spent(entries: Sequence[Entry], usage: tuple[int, int] | None) -> list[Entry]:
    """Return the entries of a run; the first of the model has the tokens of the run as a whole."""
    found = list(entries)
    place = next((n for n, entry in enumerate(found) if entry.role == "assistant"), None)
    if usage and place is not None:
        found[place] = dataclasses.replace(found[place], usage=usage)
    return found


# -- inspect_ai -----------------------------------------------------------------------------------

_RIGHT, _WRONG = ("C", "correct", True), ("I", "incorrect", False)


def _is_sample(value: Any) -> bool:
    return is_record(value, "id", "epoch", "input", "messages")


def _is_inspect(value: Any) -> bool:
    return _is_sample(value) or (is_record(value, "eval", "status") and "samples" in value)


def _read_inspect(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    if not _is_sample(value):
        samples = objects_in(value, "samples")
        if not samples:
            raise ValueError("it holds no samples")
        for sample in samples:
            yield from _read_inspect(sample, name)
        return
    models = value.get("model_usage")
    used = [
        spent
        for each in (models.values() if isinstance(models, dict) else ())
        if (spent := usage_of(each)) is not None
    ]
    total = (sum(spent for spent, _ in used), sum(made for _, made in used)) if used else None
    outcome, why = _scored(value.get("scores"))
    asked = value["input"] if isinstance(value["input"], str) else ""
    error = word_in(value.get("error"), "message")
    yield transcript_of(
        _spent(entries_of(value["messages"] or [], _inspect_entry), total),
        f"{name}/{value['id']}/{value['epoch']}",
        task=asked,
        outcome=outcome,
        outcome_reason=why,
        termination_reason=error or word_in(value.get("limit"), "type"),
        model=word_in(value.get("output"), "model"),
    )


def _inspect_entry(message: Any) -> Entry:
    entry = entry_of(message)
    failed = message.get("error") if isinstance(message, dict) else None
    if entry.role != "tool" or not isinstance(failed, dict):
        return entry
    results = tuple(
        dataclasses.replace(each, error=word_in(failed, "message") or "error")
        for each in entry.results
    )
    return dataclasses.replace(entry, results=results)


def _scored(scores: Any) -> tuple[str, str]:
    """Return the outcome that all scores state, and the reason of the first; empty where they state none."""
    told = (
        [each for each in scores.values() if isinstance(each, dict)]
        if isinstance(scores, dict)
        else []
    )
    values = [each.get("value") for each in told]
    right = [any(value is each or value == each for each in (*_RIGHT, 1)) for value in values]
    wrong = [any(value is each or value == each for each in (*_WRONG, 0)) for value in values]
    outcome = "success" if values and all(right) else "failure" if values and all(wrong) else ""
    return outcome, word_in(told[0], "explanation") if outcome else ""


INSPECT = Format(
    name="inspect",
    title="inspect_ai log",
    recognised="`eval`, `status` and `samples`, or a sample with `epoch` and `messages`; `.eval` files as well",
    read=_read_inspect,
    keys=("eval", "status", "samples"),
    record=_is_inspect,
)

# -- SWE-agent ------------------------------------------------------------------------------------


def _is_swe(value: Any) -> bool:
    return (
        is_record(value, "history", "info")
        and isinstance(value["info"], dict)
        and bool(value["info"].keys() & {"exit_status", "model_stats"})
    )


def _read_swe(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    entries: list[Entry] = []
    asked = ""
    for number, message in enumerate(objects_in(value, "history")):
        if message.get("is_demo"):
            continue
        identities = message.get("tool_call_ids")
        if isinstance(identities, list) and identities:
            message = {**message, "tool_call_id": identities[0]}  # noqa: PLW2901  # as it is read
        entry = entry_of(message)
        if asked and entry.role == "user":  # the output of the last command
            entry = Entry("tool", "tool", results=(Result(entry.text, asked),))
        asked = ""
        if entry.role == "assistant":
            action = word_in(message, "action").strip()
            if action and not entry.calls:
                asked = f"action-{number}"
                call = call_of(action.split()[0], {"command": action}, asked)
                entry = dataclasses.replace(
                    entry, text=word_in(message, "thought") or entry.text, calls=(call,)
                )
            name_of_agent = word_in(message, "agent") or "main"
            entry = dataclasses.replace(entry, agent=name_of_agent)
        entries.append(entry)
    info = value["info"]
    yield transcript_of(
        _spent(entries, usage_of(info.get("model_stats"))),
        name,
        framework="swe-agent",
        termination_reason=word_in(info, "exit_status"),
    )


SWE_AGENT = Format(
    name="swe-agent",
    title="SWE-agent trajectory",
    recognised="`history` and `info` with `exit_status` or `model_stats`",
    read=_read_swe,
    keys=("history", "info", "trajectory"),
    record=_is_swe,
)

# -- tau-bench ------------------------------------------------------------------------------------


def _read_tau(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    messages = value.get("traj", value.get("messages"))
    told = value.get("reward_info")
    reward = value.get("reward", told.get("reward") if isinstance(told, dict) else None)
    outcome = "success" if reward == 1 else "failure" if reward == 0 else ""
    yield transcript_of(
        entries_of(messages if isinstance(messages, list) else []),
        f"{name}/{value['task_id']}/{value['trial']}",
        outcome=outcome,
        termination_reason=word_in(value, "termination_reason"),
    )


TAU_BENCH = Format(
    name="tau-bench",
    title="tau-bench results",
    recognised="`task_id`, `trial` and `traj` or `messages`; also under `simulations`",
    read=_read_tau,
    keys=("task_id", "trial", "traj"),
    record=lambda value: (
        is_record(value, "task_id", "trial") and bool(value.keys() & {"traj", "messages"})
    ),
)

# -- ATIF -----------------------------------------------------------------------------------------


def _is_atif(value: Any) -> bool:
    return is_record(value, "schema_version", "steps") and str(value["schema_version"]).startswith(
        "ATIF"
    )


def _read_atif(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    agent = value.get("agent")
    entries = [_atif_entry(step, word_in(agent, "name")) for step in objects_in(value, "steps")]
    if not any(entry.usage for entry in entries):
        entries = _spent(entries, usage_of(value.get("final_metrics")))
    identity = word_in(value, "session_id")
    yield transcript_of(
        entries, f"{name}/{identity}" if identity else name, model=word_in(agent, "model_name")
    )


def _atif_entry(step: Mapping[str, Any], agent: str) -> Entry:
    source = word_in(step, "source")
    return Entry(
        role={"agent": "assistant"}.get(source, source),
        agent=agent if source == "agent" else source,
        text=text_of_parts(step.get("message")),
        calls=tuple(
            call_of(call.get("function_name"), call.get("arguments"), call.get("tool_call_id"))
            for call in objects(step.get("tool_calls"))
        ),
        results=tuple(
            Result(text_of_parts(each.get("content")), word_in(each, "source_call_id"))
            for each in objects_in(step.get("observation"), "results")
        ),
        time=moment_or_zero(step.get("timestamp")),
        usage=usage_of(step.get("metrics")),
    )


ATIF = Format(
    name="atif",
    title="ATIF trajectory",
    recognised="`steps` and a `schema_version` that begins with `ATIF`",
    read=_read_atif,
    keys=("schema_version", "steps", "agent"),
    record=_is_atif,
)
