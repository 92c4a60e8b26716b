"""Gemini's ``generateContent``, as its API and the streaming of it spell it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scripted_protocols.server import Request, ScriptedAnswer, pieces_of, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

THOUGHTS = 5
"""Tokens that each answer with thoughts takes beside its candidates."""


class Gemini:
    """The provider."""

    @staticmethod
    def streams(path: str, request: Request) -> bool:
        """By the path."""
        return ":streamGenerateContent" in path

    @classmethod
    def whole(
        cls, path: str, request: Request, answer: ScriptedAnswer, number: int
    ) -> dict[str, Any]:
        """A response, or a count of tokens."""
        if ":countTokens" in path:
            return {"totalTokens": 7}
        return cls._response(request, answer, number, _parts(answer), "STOP")

    @classmethod
    def events(
        cls, path: str, request: Request, answer: ScriptedAnswer, number: int
    ) -> Iterator[bytes]:
        """The parts in pieces; the last piece has the reason to stop."""
        pieces: list[dict[str, Any]] = []
        for part in _parts(answer):
            if "text" in part:
                pieces += [{**part, "text": piece} for piece in pieces_of(part["text"])]
            else:
                pieces.append(part)
        for place, piece in enumerate(pieces, 1):
            reason = "STOP" if place == len(pieces) else None
            response = cls._response(request, answer, number, [piece], reason)
            yield f"data: {json.dumps(response)}\r\n\r\n".encode()

    @staticmethod
    def _response(
        request: Request, answer: ScriptedAnswer, number: int, parts: list[Any], reason: str | None
    ) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if reason:
            candidate["finishReason"] = reason
        usage = {
            "promptTokenCount": size_of(request["contents"]) + answer.cached,
            "candidatesTokenCount": size_of(_parts(answer)),
        }
        if answer.cached:
            usage["cachedContentTokenCount"] = answer.cached
        if answer.thinking:
            usage["thoughtsTokenCount"] = THOUGHTS
        return {
            "candidates": [candidate],
            "usageMetadata": {**usage, "totalTokenCount": sum(usage.values())},
            "modelVersion": "scripted-1",
            "responseId": f"response_{number}",
        }

    @staticmethod
    def error(status: int, text: str) -> dict[str, Any]:
        """An error."""
        return {"error": {"code": status, "message": text, "status": "SCRIPTED"}}


def as_chat(request: Request) -> dict[str, Any]:
    """The messages of a request in the words of Chat Completions, for comparison."""
    shown: list[dict[str, Any]] = []
    if "systemInstruction" in request:
        shown.append({"role": "system", "content": _text(request["systemInstruction"]["parts"])})
    for content in request["contents"]:
        parts = content["parts"]
        for part in parts:
            if "functionResponse" in part:
                (result,) = part["functionResponse"]["response"].values()
                text = result if isinstance(result, str) else json.dumps(result)
                answered = part["functionResponse"].get("id")
                shown.append({"role": "tool", "tool_call_id": answered, "content": text})
        calls = [
            {"id": c.get("id"), "function": {"name": c["name"], "arguments": json.dumps(c["args"])}}
            for c in (part["functionCall"] for part in parts if "functionCall" in part)
        ]
        text = _text(parts)
        if text or calls:
            role = {"model": "assistant"}.get(content["role"], content["role"])
            shown.append({"role": role, "content": text, "tool_calls": calls})
    return {"messages": shown}


def _text(parts: list[dict[str, Any]]) -> str:
    return "".join(part.get("text", "") for part in parts if not part.get("thought"))


def _parts(answer: ScriptedAnswer) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if answer.thinking:
        parts.append({"text": answer.thinking, "thought": True})
    if answer.text:
        parts.append({"text": answer.text})
    for call in answer.calls:
        named = {"id": call.id} if call.id else {}
        parts.append({"functionCall": {**named, "name": call.name, "args": call.arguments}})
    return parts
