"""Rights of a key, and the line of the keys file that grants them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from mast_trace.exceptions import CollectorError, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINE = re.compile(
    r"(?P<project>[\w.-]{1,64})\s+sha256:(?P<hash>[0-9a-f]{64})(?:\s+(?P<rights>\S.*))?"
)


class Right(str, Enum):
    """A right that a key gives its holder, always within the key's project.

    `METRICS` alone exceeds the project: a collector's numbers are of all projects.
    """

    WRITE = "write"
    READ = "read"
    LABEL = "label"
    METRICS = "metrics"


_NAMES = ", ".join(right.value for right in Right)
FORMER_RIGHTS = frozenset({Right.WRITE, Right.READ, Right.METRICS})
"""The rights of a line that names none, until `FORMER_UNTIL`."""
FORMER_UNTIL = "0.2"
"""Version from which on a line that names no rights grants `WRITE` alone."""


class MissingRight(CollectorError):
    """The key is known, but lacks the right."""


@dataclass(frozen=True)
class Grant:
    """The grant of a key: a line of the keys file.

    Attributes:
        project: the one that the key belongs to.
        rights: those that the key has.
        hash: of the key, in hexadecimal digits.
        explicit: whether the line names the rights.
    """

    project: str
    rights: frozenset[Right]
    hash: str
    explicit: bool = True

    def demand(self, right: Right) -> None:
        """Return if the key has the right.

        Raises:
            MissingRight: it lacks the right; the text names it, and the command that makes a key
                with it.
        """
        if right not in self.rights:
            raise MissingRight(
                f"this key of project {self.project!r} lacks the right to {right.value} (it has "
                f"{spelled(self.rights)}): ask for a key with it, `mast-trace collect key "
                f"{self.project} --right {right.value}`"
            )


def read_line(text: str) -> Grant | None:
    """Read ``project sha256:<hex> [rights]``; None if it is no such line.

    Raises:
        ConfigurationError: it names an unknown right.
    """
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    if match["rights"] is None:
        return Grant(match["project"], FORMER_RIGHTS, match["hash"], explicit=False)
    return Grant(match["project"], read_rights([match["rights"]]), match["hash"])


def line_of(grant: Grant) -> str:
    """Return the line of the keys file for a grant.

    Raises:
        ConfigurationError: the project's name has characters that cannot stand in the file.
    """
    line = f"{grant.project} sha256:{grant.hash} {spelled(grant.rights)}"
    if _LINE.fullmatch(line) is None:
        raise ConfigurationError(
            f"{grant.project!r} is no project name: up to 64 letters, digits, '.', '_' and '-'"
        )
    return line


def read_rights(texts: Iterable[str]) -> frozenset[Right]:
    """Read names of rights, with commas or spaces between.

    Raises:
        ConfigurationError: an unknown name, or none at all.
    """
    names = [name for text in texts for name in re.split(r"[,\s]+", text.strip()) if name]
    if unknown := [name for name in names if name not in {right.value for right in Right}]:
        raise ConfigurationError(f"{unknown[0]!r} is no right of a key: there are {_NAMES}")
    if not names:
        raise ConfigurationError(f"a key needs a right: there are {_NAMES}")
    return frozenset(map(Right, names))


def spelled(rights: frozenset[Right]) -> str:
    """Return rights as they are written in the keys file."""
    return ",".join(right.value for right in Right if right in rights)
