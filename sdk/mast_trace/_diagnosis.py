"""The diagnosis that `mast_trace.doctor` makes, as data and as text."""

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
