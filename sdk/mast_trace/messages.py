"""One message, as agents, models and tools exchange it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mast_trace.content import as_text, content_hash
from mast_trace.untrusted_json import read_json


@dataclass(frozen=True)
class ToolCall:
    """A model's request to call a tool; ``arguments`` is JSON text or a mapping, as it came."""

    name: str
    arguments: Any = None
    id: str | None = None


@dataclass(frozen=True)
class Message:
    """A message in the shape that all frameworks can be read into.

    Attributes:
        content: the text; other content (images, structures) as JSON text.
        role: ``system``, ``user``, ``assistant`` or ``tool``, as the model sees it.
        name: the speaker, where the framework names one.
        id: the framework's own id of the message, if it has one.
        tool_calls: the calls that the message asks for.
        tool_call_id: on a tool's answer, the call that it answers.
    """

    content: str
    role: str = "assistant"
    name: str | None = None
    id: str | None = None
    tool_calls: tuple[ToolCall, ...] = field(default=())
    tool_call_id: str | None = None

    @property
    def key(self) -> str:
        """Equal for equal text and tool calls, whatever the role under which it is shown."""
        if not self.tool_calls:
            return content_hash(self.content)
        known: str | None = self.__dict__.get("_key")
        if known is None:
            calls = [f"\x1f{call.name}\x1e{as_text(call.arguments)}" for call in self.tool_calls]
            known = self.__dict__["_key"] = content_hash(self.content + "".join(calls))
        return known

    @property
    def calls(self) -> str:
        """Ids of the tool calls that it asks for or answers: what tells equal texts apart."""
        if self.tool_calls:
            return ",".join(call.id or "" for call in self.tool_calls)
        return self.tool_call_id or ""

    def to_genai(self, content: str | None = None) -> dict[str, Any]:
        """Return the message in the JSON shape of the GenAI conventions.

        Args:
            content: stands in for the text, where it was redacted or cut.
        """
        text = self.content if content is None else content
        parts: list[dict[str, Any]] = []
        if self.role == "tool":
            parts.append({"type": "tool_call_response", "id": self.tool_call_id, "response": text})
        elif text:
            parts.append({"type": "text", "content": text})
        parts.extend(
            {"type": "tool_call", "id": c.id, "name": c.name, "arguments": parsed(c.arguments)}
            for c in self.tool_calls
        )
        shape: dict[str, Any] = {"role": self.role, "parts": parts}
        if self.name:
            shape["name"] = self.name
        if self.id:
            shape["id"] = self.id
        return shape


def parsed(arguments: Any) -> Any:
    """Return a tool call's arguments as the object that they spell, if they are JSON text."""
    if isinstance(arguments, str):
        try:
            return read_json(arguments)
        except ValueError:
            return arguments
    return arguments
