"""Messages, as agents, models and tools exchange them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mast_trace.content import RENDERING_LIMIT, as_text, content_hash, is_a
from mast_trace.untrusted_json import read_json


class _computed_once:  # noqa: N801  # a decorator
    """Computes a text at first use; from then on it is a plain attribute.

    `functools.cached_property` before Python 3.12 holds a lock while it computes, and computing may
    run the user's own `__str__`.
    """

    def __init__(self, compute: Callable[[Any], str]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, _class: type | None = None) -> str:
        if owner is None:
            return self  # type: ignore[return-value]  # accessed on the class, as documentation tools do
        text = owner.__dict__[self._name] = self._compute(owner)
        return text


@dataclass(frozen=True)
class ToolCall:
    """A model's request to call a tool; ``arguments`` is JSON text or a mapping, as it came."""

    name: str
    arguments: Any = None
    id: str | None = None

    @_computed_once
    def text(self) -> str:
        """The arguments as text, rendered up to `content.RENDERING_LIMIT`."""
        return as_text(self.arguments)

    def text_within(self, limit: int, on_cut: Callable[[], None] | None = None) -> str:
        """Return the arguments as text, rendered up to ``limit`` characters.

        ``on_cut`` is called if that is not the whole value.
        """
        # A text far below both limits is the same under both, and rendering is expensive.
        if 2 * len(self.text) < min(limit, RENDERING_LIMIT):
            return self.text
        return as_text(self.arguments, limit, on_cut=on_cut)


@dataclass(frozen=True, init=False)
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
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    def __init__(
        self,
        content: str,
        role: str = "assistant",
        name: str | None = None,
        id: str | None = None,  # noqa: A002  # the field's name
        tool_calls: tuple[ToolCall, ...] = (),
        tool_call_id: str | None = None,
    ) -> None:
        # Histories are read again for each call of a model, and the initialiser of a frozen dataclass
        # takes several times as long.
        self.__dict__.update(
            content=content,
            role=role,
            name=name,
            id=id,
            tool_calls=tool_calls,
            tool_call_id=tool_call_id,
        )

    # Histories are shown to models repeatedly, so both properties are read many times and cached.

    @_computed_once
    def key(self) -> str:
        """Key that is equal for equal text and tool calls, whatever the role under which it is shown."""
        if not self.tool_calls:
            return content_hash(self.content)
        calls = [f"\x1f{call.name}\x1e{call.text}" for call in self.tool_calls]
        return content_hash(self.content + "".join(calls))

    @_computed_once
    def calls(self) -> str:
        """Ids of the tool calls that the message asks for or answers; they distinguish equal texts.

        Empty where none of them has one.
        """
        if self.tool_calls:
            ids = ",".join([call.id or "" for call in self.tool_calls])
            return ids if ids.strip(",") else ""
        given = self.tool_call_id or ""
        return given if given.strip(",") else ""

    def with_id(self, identity: str) -> Message:
        """Return the same message under another id."""
        # `dataclasses.replace` would lose the cached texts, which are true of the copy as well.
        message = object.__new__(type(self))
        message.__dict__.update(self.__dict__, id=identity)
        return message

    def to_genai(self, content: str | None = None) -> dict[str, Any]:
        """Return the message in the JSON shape of the GenAI conventions.

        Args:
            content: replaces the text, where it was redacted or cut.
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
    if is_a(arguments, str):
        try:
            return read_json(arguments)
        except ValueError:
            return arguments
    return arguments
