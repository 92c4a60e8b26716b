"""The report of `instrument()`, framework by framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["on", "unsupported", "not installed", "switched off", "broken"]


@dataclass(frozen=True)
class FrameworkReport:
    """The status of one framework.

    Attributes:
        name: as given to `instrument(frameworks=[...])`.
        status: ``on``, or why it is not.
        version: the installed one; empty if there is none.
        patched: functions that are wrapped now.
        waiting: modules that are wrapped when the program imports them.
        missing: functions that this version of the framework lacks; traces lack them too.
        reason: the cause if the framework is not on, with the remedy.
        absent: optional modules that are not installed; nothing of them can be missing.
    """

    name: str
    status: Status
    version: str = ""
    patched: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reason: str = ""
    absent: tuple[str, ...] = ()

    def __str__(self) -> str:
        title = f"{self.name} {self.version}".rstrip()
        if self.status != "on":
            return f"{title}: {self.status}{f' ({self.reason})' if self.reason else ''}"
        facts = [f"{len(self.patched)} patched"]
        if self.waiting:
            facts.append(f"{len(self.waiting)} modules not imported yet")
        if self.absent:
            facts.append(f"without {', '.join(self.absent)} (optional, not installed)")
        if self.missing:
            facts.append(f"MISSING {', '.join(self.missing)}")
        return f"{title}: on, {', '.join(facts)}"


@dataclass(frozen=True)
class InstrumentReport:
    """The result of `mast_trace.instrument()`. Printing it gives a summary for people.

    Attributes:
        frameworks: every framework that mast-trace knows, installed or not.
        endpoint: address of the collector; empty if the application's own provider exports.
        service_name: name under which the spans appear.
        disabled: the cause if recording is switched off altogether; else empty.
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
