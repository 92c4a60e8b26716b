"""What became of `instrument()`, framework by framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["on", "unsupported", "not installed", "switched off", "broken"]


@dataclass(frozen=True)
class FrameworkReport:
    """One framework.

    Attributes:
        name: as `instrument(frameworks=[...])` knows it.
        status: ``on``, or why it is not.
        version: the installed one; empty if there is none.
        patched: what is wrapped now.
        waiting: modules that are wrapped when the program imports them.
        missing: what this version of the framework lacks; it is absent from traces.
        reason: why the framework is not on, and what to do.
    """

    name: str
    status: Status
    version: str = ""
    patched: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        title = f"{self.name} {self.version}".rstrip()
        if self.status != "on":
            return f"{title}: {self.status}{f' ({self.reason})' if self.reason else ''}"
        facts = [f"{len(self.patched)} patched"]
        if self.waiting:
            facts.append(f"{len(self.waiting)} modules not imported yet")
        if self.missing:
            facts.append(f"MISSING {', '.join(self.missing)}")
        return f"{title}: on, {', '.join(facts)}"


@dataclass(frozen=True)
class InstrumentReport:
    """What `mast_trace.instrument()` did. Printing it shows it to people.

    Attributes:
        frameworks: every framework that mast-trace knows, installed or not.
        endpoint: where spans go; empty if they go through the application's own provider.
        service_name: under which the spans appear.
        disabled: why nothing was done at all; empty if something was.
    """

    frameworks: tuple[FrameworkReport, ...] = ()
    endpoint: str = ""
    service_name: str = ""
    disabled: str = ""

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the frameworks that are recorded."""
        return tuple(framework.name for framework in self.frameworks if framework.status == "on")

    def __str__(self) -> str:
        if self.disabled:
            return f"mast-trace is off: {self.disabled}"
        target = self.endpoint or "the application's tracer provider"
        lines = [f"mast-trace records {self.service_name or 'this program'} to {target}"]
        lines += [f"  {framework}" for framework in self.frameworks]
        return "\n".join(lines)
