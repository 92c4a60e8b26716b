"""Reads a request that cannot be stored as it is, item by item: one bad span leaves the others alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from google.protobuf.message import DecodeError

from mast_trace_collector.otlp.checking import Unfit, check, mend

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from mast_trace_collector.otlp.signals import Signal

UNREADABLE = (DecodeError, TypeError, ValueError, OverflowError, RecursionError)
"""Errors by which a parser refuses a value."""
_MOST_CHARACTERS = 200


@dataclass(frozen=True)
class Opened:
    """A message whose inner messages are not parsed yet.

    Attributes:
        own: everything but the inner messages.
        parts: the inner messages of one field.
        broken: some of them are missing, because their bounds cannot be read.
    """

    own: Any
    parts: Sequence[Any] = ()
    broken: bool = False


class Encoding(Protocol):
    """A request in the way in which its sender has written it.

    Attributes:
        raw: all of it.
    """

    raw: Any

    def whole(self) -> Any:
        """Parse all of it, or raise one of `UNREADABLE`."""

    def open(self, raw: Any, descriptor: Descriptor, field: str) -> Opened:
        """Separate the messages of a field from their message, or raise one of `UNREADABLE`."""

    def add(self, messages: Any, own: Any, descriptor: Descriptor) -> bool:
        """Parse a message and append it; return whether bad text in it was replaced.

        If it raises one of `UNREADABLE`, it may leave an unfinished message.
        """


@dataclass
class Salvage:
    """A request of everything that can be stored, and the number of the rest.

    Attributes:
        rejected: items left out, by reason.
        mended: items of which something was replaced, by kind.
        used: something was read item by item.
    """

    encoding: Encoding
    signal: Signal
    most: int
    rejected: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    used: bool = False
    _first: str = ""

    def read(self) -> Any:
        """Return the request.

        Raises:
            TypeError: it is no request at all.
        """
        self.used = True
        signal = self.signal
        request: Any = signal.request()
        path = (signal.resources, signal.scopes, signal.items)
        opened = self.encoding.open(self.encoding.raw, request.DESCRIPTOR, path[0])
        self._add(request, opened, path, mended=False)
        return request

    def _add(self, owner: Any, opened: Opened, path: tuple[str, ...], *, mended: bool) -> None:
        """Append to a message what can be read of its parts."""
        messages, deeper = getattr(owner, path[0]), path[1:]
        kind = owner.DESCRIPTOR.fields_by_name[path[0]].message_type
        for raw in opened.parts:
            count = len(messages)
            try:
                inner = self._open(raw, kind, deeper)
                text = self.encoding.add(messages, inner.own, kind) or mended
                message = messages[-1]
                check(_described(message), self.most)
            except UNREADABLE as error:
                del messages[count:]
                self._reject(error, self._items(raw, kind, deeper))
            else:
                if deeper:
                    self._add(message, inner, deeper, mended=text)
                else:
                    self.mended.update(mend(message) | ({"text"} if text else set()))
        if opened.broken:
            self._reject(ValueError("its bounds cannot be read"), 1)

    def _open(self, raw: Any, kind: Descriptor, path: tuple[str, ...]) -> Opened:
        return self.encoding.open(raw, kind, path[0]) if path else Opened(raw)

    def _items(self, raw: Any, kind: Descriptor, path: tuple[str, ...]) -> int:
        """Count the items in what is left out; one where this cannot be known."""
        if not path:
            return 1
        try:
            opened = self._open(raw, kind, path)
        except UNREADABLE:
            return 1
        inner: Any = kind.fields_by_name[path[0]].message_type
        within = sum(self._items(part, inner, path[1:]) for part in opened.parts)
        return within + opened.broken

    def _reject(self, error: Exception, items: int) -> None:
        if items:
            self._first = self._first or str(error)[:_MOST_CHARACTERS]
            self.rejected[error.reason if isinstance(error, Unfit) else "unreadable"] += items

    def told(self) -> str:
        """Return how many items were left out, and of how many something was replaced, for the sender."""
        items = self.signal.items.replace("_", " ")
        said = [
            f"{items} with a changed {kind}: {self.mended[kind]}" for kind in sorted(self.mended)
        ]
        if self.rejected:
            count = self.rejected.total()
            said.insert(0, f"{items} left out: {count}; reason of the first: {self._first}")
        return "; ".join(said)


def _described(message: Any) -> Any:
    """Return what has the attributes: an item itself, else the resource or the scope of items."""
    for name in ("resource", "scope"):
        if name in message.DESCRIPTOR.fields_by_name:
            return getattr(message, name)
    return message
