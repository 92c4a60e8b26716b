"""Diagnoses an installation: recorded frameworks, effective settings, and the collector's answer.

::

    mast-trace doctor            # or, with the SDK alone: python -m mast_trace doctor
    mast-trace doctor --endpoint http://collector:4318 --json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from mast_trace import running_up
from mast_trace._settings import SDKSettings
from mast_trace.environment import EffectiveSetting
from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import masked

if TYPE_CHECKING:
    from mast_trace._frameworks import FrameworkReport, Frameworks
    from mast_trace.delivery.encoding import Delivered
    from mast_trace.delivery.transport import ExportResult

_DISTRIBUTIONS = (
    "mast-trace",
    "opentelemetry-api",
    "opentelemetry-sdk",
    "opentelemetry-exporter-otlp-proto-common",
    "protobuf",
    "requests",
    "wrapt",
    "grpcio",
)


@dataclass(frozen=True)
class CollectorReachability:
    """The collector's answer to a request without spans.

    Attributes:
        address: URL to which spans are sent.
        accepted: whether the collector accepts spans.
        detail: the reason why it does not.
        advice: a remedy, for people.
    """

    address: str
    accepted: bool
    detail: str = ""
    advice: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """The findings of `examine`. Printing them gives a summary for people.

    Attributes:
        versions: of Python and of the packages that mast-trace needs; empty where one is missing.
        frameworks: those that `instrument()` would record; those being recorded, if it is on.
        settings: the effective settings.
        endpoint: the collector's answer.
        delivered: delivery counts of this process; None if it is not instrumented.
        problems: each problem with its remedy.
    """

    versions: Mapping[str, str]
    frameworks: tuple[FrameworkReport, ...]
    settings: tuple[EffectiveSetting, ...]
    endpoint: CollectorReachability
    delivered: Delivered | None
    problems: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """True if there are no problems."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {**dataclasses.asdict(self), "healthy": self.healthy}

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield "Versions"
    for name, number in diagnosis.versions.items():
        yield f"  {name:40} {number or 'not installed'}"
    yield "Frameworks"
    for framework in diagnosis.frameworks:
        yield f"  {framework}"
    yield "SDKSettings"
    for setting in diagnosis.settings:
        yield f"  {setting.name:26} {setting.value or '-':40} {setting.origin}"
    yield "Collector"
    endpoint = diagnosis.endpoint
    yield f"  {endpoint.address}: {'takes spans' if endpoint.accepted else endpoint.detail}"
    if diagnosis.delivered:
        counts = dataclasses.asdict(diagnosis.delivered)
        yield "  " + ", ".join(
            f"{count} {name}" for name, count in counts.items() if name != "error"
        )
    yield "Problems" if diagnosis.problems else "No problems found."
    for problem in diagnosis.problems:
        yield f"  - {problem}"


def examine(
    *,
    endpoint: str | None = None,
    headers: Mapping[str, str] | None = None,
    load_frameworks: bool = False,
    timeout: float = 5.0,
) -> Diagnosis:
    """Examine everything that recording depends on, and ask the collector.

    Args:
        endpoint: as for `mast_trace.instrument`.
        headers: likewise.
        load_frameworks: import the frameworks, so that targets missing from their version are
            found. Importing takes seconds; do it in a process of its own.
        timeout: seconds to wait for the collector.

    Raises:
        ConfigurationError: a setting cannot be used.
    """
    from mast_trace._session import current_session

    session = current_session()
    settings = SDKSettings.resolve(endpoint=endpoint, headers=headers)
    if session and endpoint is None and headers is None:
        settings = session.settings
    frameworks = (
        session.frameworks.report() if session else _frameworks(settings, load=load_frameworks)
    )
    asked = _ask(settings, timeout)
    delivered = session.queue.delivered() if session and session.queue else None
    return Diagnosis(
        versions={"Python": platform.python_version(), **dict(map(_version, _DISTRIBUTIONS))},
        frameworks=frameworks,
        settings=tuple(_effective(settings)),
        endpoint=asked,
        delivered=delivered,
        problems=tuple(_problems(settings, frameworks, asked, delivered)),
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    made = argparse.ArgumentParser(
        prog="mast-trace doctor",
        description="Check which frameworks mast-trace records here, and whether the collector accepts spans.",
    )
    made.add_argument("--endpoint", help="address of the collector")
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument(
        "--quick", action="store_true", help="do not import the frameworks to check each target"
    )
    return made


def main(argv: Sequence[str] | None = None, *, more: Callable[[], Iterable[str]] = tuple) -> int:
    """Run the command; return 0 if all is well, 1 if something is not, 2 on a bad setting.

    Args:
        argv: the command's arguments; by default those of the process.
        more: finds problems beside the SDK's own.
    """
    given = parser().parse_args(argv)
    try:
        diagnosis = examine(endpoint=given.endpoint, load_frameworks=not given.quick)
        diagnosis = dataclasses.replace(diagnosis, problems=(*diagnosis.problems, *more()))
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    shown = json.dumps(diagnosis.to_dict(), indent=2) if given.json else str(diagnosis)
    sys.stdout.write(f"{shown}\n")
    return 0 if diagnosis.healthy else 1


def _version(distribution: str) -> tuple[str, str]:
    try:
        return distribution, version(distribution)
    except PackageNotFoundError:
        return distribution, ""


def _frameworks(settings: SDKSettings, *, load: bool) -> tuple[FrameworkReport, ...]:
    """Install the patches for a moment, to see which of them fit."""
    from opentelemetry.trace import NoOpTracerProvider

    from mast_trace._frameworks import Frameworks

    frameworks = Frameworks()
    disabled = settings.disabled_instrumentations.value
    frameworks.instrument(None, disabled, NoOpTracerProvider(), settings.content)
    try:
        found = frameworks.report()
        if not load:
            return found
        loaded = {}
        for report in found:
            with frameworks.checking(report.name):
                loaded[report.name] = _load(frameworks, report)
        return tuple(
            dataclasses.replace(
                report,
                reason=loaded[report.name][0],
                absent=loaded[report.name][1],
                waiting=tuple(m for m in report.waiting if m not in loaded[report.name][1]),
            )
            for report in frameworks.report()
        )
    finally:
        frameworks.uninstrument()


def _load(frameworks: Frameworks, report: FrameworkReport) -> tuple[str, tuple[str, ...]]:
    """Import the modules that a framework's instrumentation waits for.

    Returns:
        The reason why a module could not be imported, empty if all could; and the optional modules
        that are not installed, which is no problem.
    """
    reason, absent = "", []
    for module in report.waiting:
        try:
            import_module(module)
        except Exception as error:  # noqa: BLE001  # whatever a framework's import provokes
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing == module.partition(".")[0] and frameworks.is_optional(report.name, module):
                absent.append(module)
            elif not reason:
                reason = f"{module} cannot be imported: {type(error).__name__}: {error}"
    return reason, tuple(absent)


def _ask(settings: SDKSettings, timeout: float) -> CollectorReachability:
    """Send a request without spans: it stores nothing, and tests path, key and protocol."""
    from mast_trace.delivery.transport import Fate, open_transport

    transport = open_transport(settings)
    try:
        answer = transport.send(b"", timeout)
    finally:
        transport.close()
    accepted = answer.fate is Fate.ACCEPTED
    return CollectorReachability(
        masked(settings.endpoint.value),
        accepted,
        "" if accepted else _detail(answer),
        "" if accepted or _explains_itself(answer) else answer.advice,
    )


def _explains_itself(answer: ExportResult) -> bool:
    """Return whether a collector that takes nothing now gives the reason."""
    return bool(answer.reason) and answer.fate.value == "later"


def _detail(answer: ExportResult) -> str:
    told = f"{answer.fate.value}: {answer.detail}" if answer.detail else answer.fate.value
    return told if answer.reason in told else f"{told}: {answer.reason}"


def _effective(settings: SDKSettings) -> Iterator[EffectiveSetting]:
    for field in dataclasses.fields(settings):
        setting = getattr(settings, field.name)
        value = setting.value
        if field.name == "headers":
            shown = ", ".join(f"{name}=***" for name in value)
        elif field.name == "endpoint":
            shown = masked(value)
        elif field.name == "redact":
            shown = "a function" if value else "none"
        elif isinstance(value, tuple):
            shown = ", ".join(value)
        else:
            shown = str(value)
        yield EffectiveSetting(field.name, shown, setting.origin)


def _problems(
    settings: SDKSettings,
    frameworks: Sequence[FrameworkReport],
    endpoint: CollectorReachability,
    delivered: Delivered | None,
) -> Iterator[str]:
    if settings.disabled.value:
        yield f"Nothing is recorded: {settings.disabled.origin} is true."
    if not endpoint.accepted:
        problem = f"{endpoint.address} does not take spans ({endpoint.detail}). {endpoint.advice}"
        yield problem.rstrip()
    if settings.endpoint.origin == "default" and len(running := running_up.found()) > 1:
        yield f"Several mast-trace up run here, none is taken: {running_up.choice(running)}"
    for framework in frameworks:
        if framework.status in {"unsupported", "broken"}:
            yield f"{framework.name} is not recorded. {framework.reason}"
        elif framework.missing:
            yield (
                f"{framework.name} {framework.version} lacks {', '.join(framework.missing)}: what "
                "these record is absent from traces. Look for a newer mast-trace."
            )
        elif framework.status == "on" and framework.reason:
            yield f"{framework.name}: {framework.reason}"
    if delivered and delivered.lost:
        yield f"{delivered.lost} spans of this process are lost ({delivered.error or 'queue full'})."


__all__ = ["CollectorReachability", "Diagnosis", "EffectiveSetting", "examine", "main"]
