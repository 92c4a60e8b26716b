"""Finds the instrumentations that are installed and turns them on, without importing frameworks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mast_trace._settings import DISABLED_VARIABLE
from mast_trace.exceptions import ConfigurationError, InstrumentationError, UnsupportedVersion

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from mast_trace.content import ContentPolicy

Status = Literal["on", "unsupported", "not installed", "switched off", "broken"]

logger = logging.getLogger("mast_trace")
ENTRY_POINT_GROUP = "mast_trace_instrumentor"


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


class _State(Protocol):
    version: str
    patched: list[str]
    missing: list[str]
    waiting: list[str]


class FrameworkInstrumentor(Protocol):
    """The interface of an entry point of the group; `mast_trace_instrumentations` has the base class."""

    distributions: tuple[str, ...]
    state: _State

    def present(self) -> bool:
        """Return whether the framework is installed."""
        ...

    def installed_version(self) -> str:
        """The installed version, or an empty string."""
        ...

    def instrument(
        self, tracer_provider: TracerProvider | None = None, content: ContentPolicy | None = None
    ) -> Any:
        """Install the patches."""
        ...

    def uninstrument(self) -> None:
        """Remove the patches."""
        ...


class Frameworks:
    """The frameworks that have an instrumentation, with the status of each."""

    def __init__(self) -> None:
        self._known = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
        self._active: dict[str, FrameworkInstrumentor] = {}
        self._inactive: dict[str, FrameworkReport] = {}

    def instrument(
        self,
        wanted: Sequence[str] | None,
        disabled: Sequence[str],
        provider: TracerProvider,
        content: ContentPolicy,
    ) -> None:
        """Turn frameworks on, all that are installed or those in ``wanted``.

        Args:
            wanted: names; a problem with one of these is an error. None: all that are found; a
                problem with one of these is a warning, and the others work.
            disabled: names of entry points that the environment switches off.
            provider: creates and exports the spans.
            content: decides how much of the texts is recorded.

        Raises:
            ConfigurationError: a name in ``wanted`` is not known.
            InstrumentationError: a framework in ``wanted`` is absent or cannot be instrumented.
        """
        if wanted is None and not self._known:
            logger.warning(
                "mast-trace records no framework: this program has no metadata of the package "
                "mast-trace, by which instrumentations are found. A frozen program has to bring it "
                "(PyInstaller: --copy-metadata mast-trace --collect-submodules "
                "mast_trace_instrumentations)."
            )
        unknown = [name for name in wanted or () if name not in self._known]
        if unknown:
            raise ConfigurationError(
                f"No instrumentation is called {', '.join(map(repr, unknown))}; "
                f"known: {', '.join(sorted(self._known))}."
            )
        turned_on: list[str] = []
        for name in self._known if wanted is None else dict.fromkeys(wanted):
            if name in self._active:
                continue
            try:
                self._instrument(name, disabled, provider, content, explicit=wanted is not None)
            except InstrumentationError:
                for other in turned_on:
                    self._active.pop(other).uninstrument()
                raise
            if name in self._active:
                turned_on.append(name)

    def uninstrument(self) -> None:
        """Turn everything off."""
        while self._active:
            _, instrumentor = self._active.popitem()
            instrumentor.uninstrument()
        self._inactive.clear()

    def pause(self) -> None:
        """Remove the patches until `resume`."""
        for instrumentor in self._active.values():
            instrumentor.uninstrument()

    def resume(self, provider: TracerProvider, content: ContentPolicy) -> None:
        """Install the patches again that `pause` removed."""
        for instrumentor in self._active.values():
            instrumentor.instrument(tracer_provider=provider, content=content)

    def report(self) -> tuple[FrameworkReport, ...]:
        """Return the present status of each framework."""
        return tuple(self._report(name) for name in sorted(self._known))

    def is_optional(self, name: str, module: str) -> bool:
        """Return whether the framework ``name`` works without ``module``."""
        instrumentor = self._active.get(name)
        check = getattr(instrumentor, "is_optional", None)
        return bool(check and check(module))

    def checking(self, name: str) -> AbstractContextManager[object]:
        """Return a context manager in which the framework ``name`` can be imported for inspection."""
        instrumentor = self._active.get(name)
        prepared = getattr(instrumentor, "checking", nullcontext)
        block: AbstractContextManager[object] = prepared()
        return block

    def _report(self, name: str) -> FrameworkReport:
        if name not in self._active:
            reason = "not asked for"
            return self._inactive.get(name, FrameworkReport(name, "switched off", reason=reason))
        state = self._active[name].state
        return FrameworkReport(
            name,
            "on",
            state.version,
            tuple(state.patched),
            tuple(state.waiting),
            tuple(state.missing),
        )

    def _instrument(
        self,
        name: str,
        disabled: Sequence[str],
        provider: TracerProvider,
        content: ContentPolicy,
        *,
        explicit: bool,
    ) -> None:
        # Other tools register under "crewai" alone; switching theirs off must not switch ours off.
        if "*" in disabled or f"mast_trace_{name}" in disabled:
            self._inactive[name] = FrameworkReport(name, "switched off", reason=DISABLED_VARIABLE)
            return
        version = ""
        try:
            instrumentor: FrameworkInstrumentor = self._known[name].load()()
            if not instrumentor.present():
                self._absent(name, instrumentor, explicit=explicit)
                return
            version = instrumentor.installed_version()
            _instrument_or_undo(instrumentor, provider, content)
        except InstrumentationError as error:
            if explicit:
                raise
            status: Status = "unsupported" if isinstance(error, UnsupportedVersion) else "broken"
            self._inactive[name] = FrameworkReport(name, status, version, reason=str(error))
            logger.warning("mast-trace does not record %s: %s", name, error)
        except Exception as error:
            # A defect in one instrumentation, or in the framework that it inspects, must neither
            # keep the program from starting nor keep other frameworks from being recorded.
            reason = f"{type(error).__name__}: {error}"
            if explicit:
                raise InstrumentationError(
                    f"{name} {version} cannot be instrumented ({reason}). Drop it from frameworks=, "
                    "or report this to mast-trace."
                ) from error
            self._inactive[name] = FrameworkReport(name, "broken", version, reason=reason)
            logger.warning("mast-trace does not record %s (%s)", name, reason, exc_info=True)
        else:
            self._inactive.pop(name, None)
            self._active[name] = instrumentor

    def _absent(self, name: str, instrumentor: FrameworkInstrumentor, *, explicit: bool) -> None:
        if explicit:
            raise InstrumentationError(
                f"{name} is not installed. Install it (pip install "
                f"{instrumentor.distributions[0]}), or drop it from frameworks=."
            )
        self._inactive[name] = FrameworkReport(name, "not installed")


def _instrument_or_undo(
    instrumentor: FrameworkInstrumentor, provider: TracerProvider, content: ContentPolicy
) -> None:
    try:
        instrumentor.instrument(tracer_provider=provider, content=content)
    except Exception:
        instrumentor.uninstrument()
        raise
