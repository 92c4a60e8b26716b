"""Renders a benchmark's report: as tables in a terminal, as JSON, and as Markdown with plots."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from rich.table import Table

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.study.agreement import wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from mast_trace_judge.study.bench import Report
    from mast_trace_judge.study.bench.methods import RuleRecall
    from mast_trace_judge.study.bench.scoring import Score

_WIDTH, _LEFT, _TOP, _SIDE = 330, 46, 34, 220
_LEGEND = _TOP + _SIDE + 46
_COLOURS = ("#0b6e99", "#c2410c", "#4d7c0f", "#7e22ce")
_FARTHEST = 6

_COLUMNS = (
    ("agent", "agent"),
    ("step", "step"),
    ("within 1", "±1"),
    ("within 3", "±3"),
    ("top 3", "top 3"),
    ("marked in 1", "marked @1"),
    ("marked in 3", "marked @3"),
    ("official agent", "official agent"),
    ("official step", "official step"),
)
_WITH_INTERVAL = {"agent", "step"}


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


def to_json(report: Report) -> dict[str, Any]:
    """Return the report as plain JSON types."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(report)))
    return values


def tables(report: Report) -> list[Table]:
    """Return the report as tables for a terminal."""
    found = []
    for subset in dict.fromkeys(score.subset for score in report.scores):
        scores = [score for score in report.scores if score.subset == subset]
        found.append(table(f"{_subset_title(report, subset)}, percent", _score_rows(scores)))
    if report.planted:
        found.append(table("planted faults: found by the rules", _planted_rows(report.planted)))
    return found


def write_markdown(
    report: Report, folder: Path, file: str = "report.md", more: Sequence[str] = ()
) -> Path:
    """Write the report as Markdown with its plots beside it, and return the file.

    The folder is created if it is missing. Further lines stand behind the scores.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# The judge on labelled runs", ""]
    for subset in dict.fromkeys(score.subset for score in report.scores):
        scores = [score for score in report.scores if score.subset == subset]
        lines += [f"## {subset} ({scores[0].runs} runs)", ""]
        lines += [f"{_subset_title(report, subset)}. Percent of the row's runs.", ""]
        lines += [*markdown_rows(_score_rows(scores)), "", *_plots(scores, folder), ""]
    lines += more
    if report.planted:
        lines += ["## Planted faults: found by the rules", ""]
        lines += [*markdown_rows(_planted_rows(report.planted)), ""]
    if report.milliseconds:
        spent = ", ".join(f"{layer} {ms:.1f} ms" for layer, ms in report.milliseconds.items())
        lines += [f"Median processor time per run on this machine: {spent}.", ""]
    lines += ["## Notes", "", *(f"- {note}" for note in report.notes), ""]
    path = folder / file
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _subset_title(report: Report, subset: str) -> str:
    """Return how many runs a subset has, and how many of them are in sample."""
    runs = next(score.runs for score in report.scores if score.subset == subset)
    seen = report.in_sample.get(subset, 0)
    return f"{subset}: {runs} runs, {seen or 'none'} of them in the training of a shipped profile"


def _plots(scores: Sequence[Score], folder: Path) -> list[str]:
    """Write the plots of a subset's local methods, and return the lines that show them."""
    subset = scores[0].subset
    shown = (score for score in scores if not score.method.startswith("as shipped"))
    calibrated = [s for s in shown if s.reliability and "contradicts" not in s.method][:4]
    if not calibrated:
        return []
    best = next((s for s in calibrated if "cross-validated" in s.method), calibrated[0])
    drawn = {
        f"{subset}-reliability.svg": reliability_diagram(calibrated, f"Calibration, {subset}"),
        f"{subset}-step-errors.svg": step_error_histogram(best, f"Distance, {subset}"),
    }
    for name, svg in drawn.items():
        (folder / name).write_text(svg, encoding="utf-8")
    return [" ".join(f"![{name.removesuffix('.svg')}]({name})" for name in drawn)]


def _score_rows(scores: Sequence[Score]) -> list[list[str]]:
    columns = [
        (key, title) for key, title in _COLUMNS if any(key in score.shares for score in scores)
    ]
    titles = [title for _, title in columns]
    rows = [["method", "runs", *titles, "calibration error (by chance)"]]
    for score in scores:
        cells = []
        for key, _ in columns:
            share = score.shares.get(key)
            text = "" if share is None else f"{100 * share.value:.1f}"
            if share is not None and key in _WITH_INTERVAL:
                low, high = share.interval.low, share.interval.high
                text += f" ({100 * low:.0f}-{100 * high:.0f})"
            cells.append(text)
        error, chance = score.calibration_error, score.error_by_chance
        told = "" if error is None or chance is None else f"{error:.3f} ({chance:.3f})"
        rows.append([score.method, str(score.runs), *cells, told])
    return rows


def _planted_rows(found: Sequence[RuleRecall]) -> list[list[str]]:
    rows = [["mode", "runs", "mode shown", "mode possible", "at the planted step"]]
    for rates in found:
        name = FAILURE_MODES[rates.code].name if rates.code in FAILURE_MODES else ""
        counts = (rates.shown, rates.possible, rates.at_step)
        shares = (_share_of(count, rates.runs) for count in counts)
        rows.append([f"{rates.code} {name}", str(rates.runs), *shares])
    return rows


def _share_of(count: int, runs: int) -> str:
    """A count with the interval of its share (Wilson, 95 %)."""
    around = wilson(count, runs)
    return f"{count} ({100 * around.low:.0f}-{100 * around.high:.0f} %)"


def table(title: str, rows: Sequence[Sequence[str]]) -> Table:
    """Return rows as a table for a terminal, the first of them as its head."""
    made = Table(title=title, title_justify="left")
    for place, name in enumerate(rows[0]):
        made.add_column(name, justify="left" if place == 0 else "right", overflow="fold")
    for row in rows[1:]:
        made.add_row(*row)
    return made


def markdown_rows(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of rows as a table in Markdown, the first of them as its head."""
    head, *body = rows
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return [*lines, *("| " + " | ".join(row) + " |" for row in body)]
