"""What `mast_trace.doctor` found, as data and as text."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mast_trace._report import FrameworkReport
    from mast_trace.delivery.limits import Delivered
    from mast_trace.effective_setting import EffectiveSetting


@dataclass(frozen=True)
class CollectorReachability:
    """What the collector said to a request without spans.

    Attributes:
        address: where spans go.
        accepted: whether it would take them.
        detail: why not.
    """

    address: str
    accepted: bool
    detail: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """Everything that `examine` found. Printing it shows it to people.

    Attributes:
        versions: of Python and of what mast-trace needs; an empty text where it is not installed.
        frameworks: what would be recorded; what is, if this process is instrumented.
        settings: as they are in force.
        endpoint: whether the collector takes spans.
        delivered: what became of this process's spans; None if it is not instrumented.
        problems: what is wrong, and what to do.
    """

    versions: Mapping[str, str]
    frameworks: tuple[FrameworkReport, ...]
    settings: tuple[EffectiveSetting, ...]
    endpoint: CollectorReachability
    delivered: Delivered | None
    problems: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
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
