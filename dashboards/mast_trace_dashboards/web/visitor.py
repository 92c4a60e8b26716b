"""A visitor of the web view, and what a page may show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from starlette.exceptions import HTTPException

from mast_trace_collector.rights import Right

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import Scope

    from mast_trace_collector.rights import Grant

_KEY = "mast_trace.visitor"
_ALL = frozenset({Right.READ, Right.LABEL})


@dataclass(frozen=True)
class Visitor:
    """Somebody who was let in.

    Attributes:
        project: the one that is shown; None means all.
        rights: what may be done.
        user: name that a trusted proxy gives; empty if there is none.
        has_session: whether signing out means anything.
    """

    project: str | None
    rights: frozenset[Right] = _ALL
    user: str = ""
    has_session: bool = False

    @classmethod
    def of_grant(cls, grant: Grant, *, has_session: bool = False) -> Visitor:
        """Return the holder of a project's key."""
        return cls(grant.project, grant.rights, has_session=has_session)

    @property
    def labels(self) -> bool:
        """Whether labels may be given."""
        return Right.LABEL in self.rights

    def demand(self, right: Right) -> None:
        """Return if the visitor has the right.

        Raises:
            HTTPException: 403, with words that say which right is missing.
        """
        if right in self.rights:
            return
        hint = "" if self.project is None else f" `mast-trace collect key {self.project}`"
        raise HTTPException(
            403,
            f"You lack the right to {right.value} here. Ask the operator for a key that has it:"
            f"{hint or ' `mast-trace collect key PROJECT`'} with --right read --right {right.value}.",
        )


OPERATOR = Visitor(None)
"""Sees all projects, without a session."""


def admit(scope: Scope, visitor: Visitor) -> None:
    """Remember who asks."""
    scope[_KEY] = visitor


def visitor_of(connection: HTTPConnection) -> Visitor:
    """Return who asks; only for what `admit` was called for."""
    return cast("Visitor", connection.scope[_KEY])


def visitor_or_none(connection: HTTPConnection) -> Visitor | None:
    """Return who asks; None for whoever was not let in."""
    return cast("Visitor | None", connection.scope.get(_KEY))
