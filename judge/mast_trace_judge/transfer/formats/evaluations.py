"""Runs that evaluation harnesses keep: inspect_ai, SWE-agent, tau-bench and ATIF."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.transfer.formats.chat import entries_of, named_within
from mast_trace_judge.transfer.formats.conversation import Entry, Result, transcript_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    Transcript,
    is_record,
    moment_or_zero,
    object_in,
    objects_in,
    usage_of,
    usage_of_models,
    word_in,
)
from mast_trace_judge.transfer.formats.messages import call_of, entry_of, text_of_parts

# -- inspect_ai -----------------------------------------------------------------------------------

_RIGHT, _WRONG = ("C", "correct", True), ("I", "incorrect", False)


def _read_inspect(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    outcome, why = _scored(value.get("scores"))
    asked = value["input"] if isinstance(value["input"], str) else ""
    error = word_in(value.get("error"), "message")
    yield transcript_of(
        entries_of(value["messages"] or []),
        f"{name}/{value['id']}/{value['epoch']}",
        task=asked,
        outcome=outcome,
        outcome_reason=why,
        termination_reason=error or word_in(value.get("limit"), "type"),
        model=word_in(value.get("output"), "model"),
        usage=usage_of_models(value.get("model_usage")),
        begun=value.get("started_at"),
    )


def _scored(scores: Any) -> tuple[str, str]:
    """Return the outcome that all scores state, and the reason of the first; empty where they state none."""
    told = objects(list(scores.values())) if isinstance(scores, dict) else []
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
    record=lambda value: is_record(value, "id", "epoch", "input", "messages"),
)

# -- SWE-agent ------------------------------------------------------------------------------------


_COMMAND = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)
"""A command in a message of mini-swe-agent."""


def _is_swe(value: Any) -> bool:
    told = {"exit_status", "model_stats"} & object_in(value, "info").keys()
    return bool(told and value.keys() & {"history", "messages", "trajectory"})


def _read_swe(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    entries: list[Entry] = []
    asked = ""
    told = objects_in(value, "history") or objects_in(value, "messages")
    for step in objects_in(value, "trajectory") if not told else ():
        told.append({"role": "assistant", "content": step.get("response"), **step})
        told.append({"role": "user", "content": step.get("observation")})
    for number, message in enumerate(told):
        if message.get("is_demo") or message.get("role") == "exit":
            continue
        identities = message.get("tool_call_ids")
        if isinstance(identities, list) and identities:
            message = {**message, "tool_call_id": identities[0]}  # noqa: PLW2901  # as it is read
        entry = entry_of(message)
        if asked and entry.role == "user":  # the output of the last command
            entry = Entry("tool", "tool", results=(Result(entry.text, asked),))
        elif entry.role == "user":  # every message names the agent that has this history
            entry = dataclasses.replace(entry, agent="user")
        asked = ""
        if entry.role == "assistant":
            command = _COMMAND.search(entry.text)
            action = word_in(message, "action").strip() or (command[1].strip() if command else "")
            if action and not entry.calls:
                asked = f"action-{number}"
                call = call_of(action.split()[0], {"command": action}, asked)
                entry = dataclasses.replace(
                    entry, text=word_in(message, "thought") or entry.text, calls=(call,)
                )
            answer = object_in(message.get("extra"), "response")
            entry = dataclasses.replace(
                entry,
                agent=word_in(message, "agent") or "main",
                usage=usage_of(answer.get("usage")),
            )
        entries.append(entry)
    yield transcript_of(
        entries,
        name,
        framework="swe-agent",
        termination_reason=word_in(value["info"], "exit_status"),
        usage=usage_of(value["info"].get("model_stats")),
    )


SWE_AGENT = Format(
    name="swe-agent",
    title="SWE-agent trajectory",
    recognised="`history` (mini-swe-agent: `messages`) and `info` with `exit_status` or `model_stats`",
    read=_read_swe,
    keys=("history", "info", "trajectory"),
    record=_is_swe,
)

# -- tau-bench ------------------------------------------------------------------------------------


def _read_tau(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    reward = value.get("reward", object_in(value, "reward_info").get("reward"))
    outcome = "success" if reward == 1 else "failure" if reward == 0 else ""
    yield transcript_of(
        entries_of(_tau_messages(value.get("traj", value.get("messages")))),
        f"{name}/{value['task_id']}/{value['trial']}",
        outcome=outcome,
        termination_reason=word_in(value, "termination_reason"),
    )


def _tau_messages(listed: Any) -> list[Any]:
    """Return messages, the answers of tools each by itself, whose own id is that of its call."""
    found: list[Any] = []
    for message in listed if isinstance(listed, list) else []:
        for each in objects_in(message, "tool_messages") or [message]:
            if word_in(each, "role") == "tool" and "tool_call_id" not in each:
                each = {**each, "tool_call_id": each.get("id")}  # noqa: PLW2901
            found.append(each)
    return found


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
    yield transcript_of(
        [_atif_entry(step, word_in(agent, "name")) for step in objects_in(value, "steps")],
        named_within(value, name),
        model=word_in(agent, "model_name"),
        usage=usage_of(value.get("final_metrics")),
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
