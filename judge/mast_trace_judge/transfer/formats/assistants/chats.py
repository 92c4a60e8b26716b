"""Chats of ChatGPT's data export, and the history of an agent of browser-use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mast_trace_judge.transfer.formats.conversation import Entry, Result, transcript_of
from mast_trace_judge.transfer.formats.foreign_spans import at
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    Transcript,
    is_record,
    moment_or_zero,
    object_in,
    objects_in,
    usage_of,
    word_in,
)
from mast_trace_judge.transfer.formats.messages import ROLES, call_of, text_of_parts

# -- ChatGPT --------------------------------------------------------------------------------------

_UNSEEN = frozenset(
    {"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"}
)


def _shown(tree: Mapping[str, Any], last: Any) -> list[Mapping[str, Any]]:
    """Return the messages on the way from the first to the last: other branches were edited away."""
    found: list[Mapping[str, Any]] = []
    passed: set[str] = set()
    while isinstance(last, str) and last not in passed and isinstance(tree.get(last), dict):
        passed.add(last)
        if isinstance(tree[last].get("message"), dict):
            found.append(tree[last]["message"])
        last = tree[last].get("parent")
    return found[::-1]


def _chatgpt_entry(message: Mapping[str, Any]) -> Entry | None:
    content, role = message.get("content"), ROLES.get(str(at(message, "author.role")), "")
    hidden = at(message, "metadata.is_visually_hidden_from_conversation")
    if (
        not role
        or not isinstance(content, dict)
        or hidden
        or content.get("content_type") in _UNSEEN
    ):
        return None
    parts = content.get("parts")
    text = text_of_parts(
        parts if isinstance(parts, list) else content.get("text", content.get("result"))
    )
    time, to = moment_or_zero(message.get("create_time")), message.get("recipient") or "all"
    named = str(at(message, "author.name") or role)
    if role == "tool":
        return Entry(role, role, results=(Result(text, tool=named),), time=time)
    if role == "assistant" and to != "all":
        return Entry(role, role, calls=(call_of(to, text, None),), time=time)
    return Entry(role, named, text, time=time) if text else None


def _read_chatgpt(value: Mapping[str, Any], name: str) -> Iterator[Transcript]:
    tree = value["mapping"]
    last = value.get("current_node") or next(reversed(tree), None)
    messages = _shown(tree, last)
    models = (at(message, "metadata.model_slug") for message in messages)
    identity = value.get("conversation_id") or value.get("id") or value.get("title")
    yield transcript_of(
        [entry for message in messages if (entry := _chatgpt_entry(message))],
        f"{name}/{identity}" if identity else name,
        model=str(next(filter(None, models), "")),
    )


CHATGPT = Format(
    name="chatgpt",
    title="ChatGPT data export",
    recognised="`mapping` with `message` and `parent`, as `conversations.json` of its data export has them",
    read=_read_chatgpt,
    keys=("mapping", "current_node", "conversation_id"),
    record=lambda value: (
        is_record(value, "mapping")
        and isinstance(value["mapping"], dict)
        and any(is_record(each, "message", "parent") for each in value["mapping"].values())
    ),
)

# -- browser-use ----------------------------------------------------------------------------------


def _browser_entry(place: int, step: Mapping[str, Any]) -> Entry:
    told = step.get("model_output")
    done, results = objects_in(step, "result"), []
    calls, texts = [], [at(told, "next_goal") or at(told, "current_state.next_goal") or ""]
    for number, action in enumerate(objects_in(told, "action")):
        tool, given = next(((k, v) for k, v in action.items() if v is not None), ("", None))
        result = done[number] if number < len(done) else {}
        if tool == "done":
            texts.append(word_in(given, "text") or word_in(result, "extracted_content"))
            continue
        identity, error = f"{place}.{number}", result.get("error")
        calls.append(call_of(tool, given, identity))
        if result:
            said = result.get("extracted_content") or error or ""
            results.append(Result(str(said), identity, error=str(error) if error else None))
    metadata = object_in(step, "metadata")
    return Entry(
        "assistant",
        "browser-use",
        "\n".join(str(text) for text in texts if text),
        calls=tuple(calls),
        results=tuple(results),
        time=moment_or_zero(metadata.get("step_start_time")),
        usage=usage_of(metadata),
    )


def _read_browser(value: Mapping[str, Any], name: str) -> Iterator[Transcript]:
    entries = [_browser_entry(*each) for each in enumerate(objects_in(value, "history"))]
    said = [each for each in entries if each.text or each.calls]
    yield transcript_of(said, name, framework="browser-use")


BROWSER_USE = Format(
    name="browser-use",
    title="browser-use history",
    recognised="`history` whose steps have `model_output`, `result` and `state`",
    read=_read_browser,
    record=lambda value: any(
        is_record(step, "model_output", "result", "state")
        for step in objects_in(value, "history")[:200]
    ),
)
