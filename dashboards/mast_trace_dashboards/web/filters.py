"""What the list of runs is narrowed to, as it stands in the page's address."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from mast_trace_dashboards.web.numbers import whole

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Filters:
    """The chosen values; an empty one means all.

    Attributes:
        text: must occur in what was said.
        before: cursor: only runs that started before, in nanoseconds since the epoch.
        before_run: of those that started just then, the ones with a lesser id.
        project: of an operator, to whom all are shown; the whole page is then of this one.
    """

    project: str = ""
    framework: str = ""
    service: str = ""
    agent: str = ""
    outcome: str = ""
    mode: str = ""
    text: str = ""
    before: str = ""
    before_run: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filters:
        """Read them from an address; others are none of ours."""
        return cls(**{name: query.get(name, "").strip() for name in cls.__dataclass_fields__})

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the query `runs`."""
        given: dict[str, Any] = {
            "frameworks": [self.framework] if self.framework else [],
            "services": [self.service] if self.service else [],
            "agents": [self.agent] if self.agent else [],
            "outcomes": [self.outcome] if self.outcome else [],
            "modes": [self.mode] if self.mode else [],
        }
        before = whole(self.before)
        if before is not None:
            given.update(before=min(before, 2**63 - 1), before_run=self.before_run)
        return given

    def after(self, row: Mapping[str, Any]) -> str:
        """Return the address of the page that goes on after a row."""
        return replace(self, before=str(row["StartNs"]), before_run=row["TraceId"]).query()

    def query(self) -> str:
        """Return them as the query of an address."""
        chosen = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return "?" + urlencode({name: value for name, value in chosen.items() if value})

    @property
    def chosen(self) -> bool:
        """Whether anything is narrowed."""
        return any(
            (
                *(self.project, self.framework, self.service, self.agent),
                *(self.outcome, self.mode, self.text),
            )
        )
