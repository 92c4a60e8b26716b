"""Two small plots as SVG: calibration of probabilities, and distances of misses."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace_judge.study.bench.scoring import Score

_WIDTH, _LEFT, _TOP, _SIDE = 330, 46, 34, 220
_LEGEND = _TOP + _SIDE + 46
_COLOURS = ("#0b6e99", "#c2410c", "#4d7c0f", "#7e22ce")
_FARTHEST = 6


def reliability_diagram(scores: Sequence[Score], title: str) -> str:
    """Draw, for each method, the share of right predictions by their probability.

    A dot's area is its share of the runs; on the diagonal, probabilities are calibrated.
    """
    parts = [
        _line(0, 0, 1, 1, "#9ca3af", dash="4 3"),
        *_axes("probability of the first step", "share that is right", (0, 0.25, 0.5, 0.75, 1)),
    ]
    for colour, score in zip(_COLOURS, scores, strict=False):
        total = sum(count for _, _, count in score.reliability) or 1.0
        points = " ".join(f"{_x(p):.1f},{_y(right):.1f}" for p, right, _ in score.reliability)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
        parts += [
            f'<circle cx="{_x(p):.1f}" cy="{_y(right):.1f}" '
            f'r="{2 + 12 * (count / total) ** 0.5:.1f}" fill="{colour}" fill-opacity="0.45"/>'
            for p, right, count in score.reliability
        ]
    error = "; ".join(
        f"{score.method}: {score.calibration_error:.3f}"
        for score in scores
        if score.calibration_error is not None
    )
    return _svg(title, parts, [s.method for s in scores], f"calibration error {error}")


def step_error_histogram(score: Score, title: str) -> str:
    """Draw the distance of a method's first step from the label; the last bars collect longer ones."""
    counts = _clipped(score.step_errors)
    most = max(counts.values(), default=1.0) or 1.0
    bar = _SIDE / (2 * _FARTHEST + 1)
    parts = [*_axes("steps after the labelled one", "share of runs", ())]
    for place, (distance, count) in enumerate(counts.items()):
        height = _SIDE * count / most
        left = _LEFT + place * bar
        share = 100 * count / max(1, score.runs)
        parts.append(
            f'<rect x="{left + 1:.1f}" y="{_TOP + _SIDE - height:.1f}" width="{bar - 2:.1f}" '
            f'height="{height:.1f}" fill="{_COLOURS[0 if distance == 0 else 1]}" '
            f'fill-opacity="{1 if distance == 0 else 0.55}"><title>{share:.0f} %</title></rect>'
        )
        if distance % 2 == 0:
            label = f"{distance:+d}" if distance else "0"
            label += "…" if abs(distance) == _FARTHEST else ""
            parts.append(_text(left + bar / 2, _TOP + _SIDE + 14, label, "middle"))
    tallest = f"{100 * most / max(1, score.runs):.0f} %"
    parts += [
        _text(_LEFT - 5, _TOP + 8, tallest, "end"),
        _text(_LEFT - 5, _TOP + _SIDE, "0", "end"),
    ]
    return _svg(title, parts, [score.method], f"{score.runs} runs; the tallest bar is {tallest}")


def _clipped(errors: Mapping[int, float]) -> dict[int, float]:
    counts = dict.fromkeys(range(-_FARTHEST, _FARTHEST + 1), 0.0)
    for distance, count in errors.items():
        counts[max(-_FARTHEST, min(_FARTHEST, distance))] += count
    return counts


def _axes(across: str, up: str, ticks: Iterable[float]) -> list[str]:
    middle = _TOP + _SIDE / 2
    return [
        f'<path d="M{_LEFT} {_TOP}V{_TOP + _SIDE}H{_LEFT + _SIDE}" fill="none" stroke="#374151"/>',
        _text(_LEFT + _SIDE / 2, _TOP + _SIDE + 30, across, "middle"),
        (
            f'<text x="12" y="{middle}" text-anchor="middle" '
            f'transform="rotate(-90 12 {middle})">{escape(up)}</text>'
        ),
        *(_text(_x(tick), _TOP + _SIDE + 14, f"{tick:g}", "middle") for tick in ticks),
        *(_text(_LEFT - 5, _y(tick) + 4, f"{tick:g}", "end") for tick in ticks),
    ]


def _svg(title: str, parts: Iterable[str], names: Sequence[str], described: str) -> str:
    legend = [
        f'<rect x="{_LEFT}" y="{_LEGEND + 15 * i}" width="9" height="9" fill="{colour}"/>'
        + _text(_LEFT + 14, _LEGEND + 8 + 15 * i, name, "start")
        for i, (colour, name) in enumerate(zip(_COLOURS, names, strict=False))
    ]
    height = _LEGEND + 15 * len(legend) + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11" role="img">\n'
        f"<title>{escape(title)}</title><desc>{escape(described)}</desc>\n"
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>\n'
        + _text(_LEFT, 18, title, "start", size=13)
        + "\n"
        + "\n".join([*parts, *legend])
        + "\n</svg>\n"
    )


def _x(share: float) -> float:
    return _LEFT + _SIDE * share


def _y(share: float) -> float:
    return _TOP + _SIDE * (1 - share)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dash: str) -> str:
    return (
        f'<line x1="{_x(x1)}" y1="{_y(y1)}" x2="{_x(x2)}" y2="{_y(y2)}" stroke="{colour}" '
        f'stroke-dasharray="{dash}"/>'
    )


def _text(x: float, y: float, text: str, anchor: str, size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="#111827">{escape(text)}</text>'
    )
