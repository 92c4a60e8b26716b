"""States that people give patterns: acknowledged, resolved in a version, open again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage.store import Store

TABLE: Final = "mast_pattern_states"
STATES: Final = ("open", "acknowledged", "resolved")
"""The states that people give. A resolved pattern that is seen again is shown as reopened."""
_LONGEST_NOTE: Final = 2000


@dataclass(frozen=True)
class PatternState:
    """One word of a person on a pattern; the latest one counts.

    Attributes:
        project: of the pattern.
        pattern: its id.
        state: one of `STATES`.
        author: name of the person.
        version: of the service, in which it is resolved; empty: in all runs from now on.
        note: free text, at most 2,000 characters.
    """

    project: str
    pattern: str
    state: str
    author: str
    version: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        """Check what can be checked without the store.

        Raises:
            ConfigurationError: an unknown state, no author, or a version of a state without one.
        """
        if self.state not in STATES:
            raise ConfigurationError(f"a state is {', '.join(STATES)}, not {self.state!r}")
        if not self.author.strip():
            raise ConfigurationError("a state needs the name of who gives it")
        if self.version and self.state != "resolved":
            raise ConfigurationError(
                f"only a resolved pattern has a version, not an {self.state} one"
            )
        if len(self.note) > _LONGEST_NOTE:
            raise ConfigurationError(f"a note has at most {_LONGEST_NOTE:,} characters")


def save_state(store: Store, state: PatternState) -> None:
    """Store a state.

    With a version, the versions that came before it are kept: their runs go on and reopen nothing. A version that was not seen yet comes after all known ones.

    Raises:
        StorageError: the database does not accept it.
    """
    row: dict[str, Any] = {
        "Project": state.project,
        "PatternId": state.pattern,
        "ChangedAt": datetime.now(timezone.utc),
        "State": state.state,
        "Version": state.version,
        "OldVersions": _before(store, state.project, state.version) if state.version else [],
        "Author": state.author.strip(),
        "Note": state.note,
    }
    store.insert(TABLE, [row])


def _before(store: Store, project: str, version: str) -> Sequence[str]:
    """Return the versions of a project's runs that were first seen before a version."""
    rows = store.query(
        "SELECT toString(Version) AS Name, min(RunStart) AS First FROM mast_pattern_runs "
        "WHERE Project = {project:String} GROUP BY Name ORDER BY First, Name",
        {"project": project},
    )
    names = [row["Name"] for row in rows]
    return names[: names.index(version)] if version in names else names
