"""A visitor of the web view, with its rights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from starlette.exceptions import HTTPException

from mast_trace_collector.security import Grant, Right

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import Scope


_KEY = "mast_trace.visitor"
_ALL = frozenset({Right.READ, Right.LABEL})


@dataclass(frozen=True)
class Visitor:
    """An admitted visitor.

    Attributes:
        project: the visible project; None means all.
        rights: of the visitor.
        user: name that a trusted proxy gives; empty if there is none.
        has_session: whether there is a session to sign out of.
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
        """True if the visitor may give labels."""
        return Right.LABEL in self.rights

    def demand(self, right: Right) -> None:
        """Return if the visitor has the right.

        Raises:
            HTTPException: 403; the text names the missing right.
        """
        if right in self.rights:
            return
        rights = dict.fromkeys(f"--right {each.value}" for each in (Right.READ, right))
        hint = "" if self.project is None else f" `mast-trace collect key {self.project}`"
        raise HTTPException(
            403,
            f"You lack the right to {right.value} here. Ask the operator for a key that has it:"
            f"{hint or ' `mast-trace collect key PROJECT`'} with {' '.join(rights)}.",
        )


OPERATOR = Visitor(None)
"""The visitor who sees all projects, without a session."""


def admit(scope: Scope, visitor: Visitor) -> None:
    """Keep the visitor of a request."""
    scope[_KEY] = visitor


def visitor_of(connection: HTTPConnection) -> Visitor:
    """Return the visitor; only for requests that `admit` was called for."""
    return cast("Visitor", connection.scope[_KEY])


def visitor_or_none(connection: HTTPConnection) -> Visitor | None:
    """Return the visitor; None for a request that was not admitted."""
    return cast("Visitor | None", connection.scope.get(_KEY))
