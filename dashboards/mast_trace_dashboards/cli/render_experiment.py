"""Experiments in a terminal: the plan in words, the arms and the contrasts as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from mast_trace_dashboards.cli.output import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from mast_trace_judge.feedback.experiment import Look
    from mast_trace_judge.feedback.statistics.conclusion import Contrast
    from mast_trace_judge.feedback.statistics.plan import Plan

_STYLES = {"better": "bold green", "worse": "bold red"}
_MOST = 999_999.0
"""E-values beyond it are not written out."""


def planned(plan: Plan) -> str:
    """Return a plan and the size that it needs."""
    size = plan.size()
    rate = 0.6 if plan.baseline is None else plan.baseline
    if plan.paired:
        each = f"{size.tasks} tasks, each in all {len(plan.arms)} arms"
    else:
        each = f"{size.tasks} tasks in each of {len(plan.arms)} arms"
    times = f", {plan.repeats} runs of a task in an arm" if plan.repeats > 1 else ""
    found = (
        f"Size: {each}{times} ({size.runs} runs in all) find {_rate(rate)} -> "
        f"{_rate(rate + plan.effect)} with a power of 80 %, looked at as often as you like; "
        f"{size.single_look} with a single look at the end."
    )
    lines = [f"Experiment {plan.name}: {', '.join(plan.arms)}; design {plan.design}.", found]
    if plan.baseline is None:
        lines.append(
            "No --baseline was given: the size is that of .60, and the bets expect no particular rate."
        )
    if plan.repeats > 1:
        lines.append("Repeats save tasks only where the runs of a task differ.")
    if "feedback" in plan.arms:
        lines.append(
            f"Lessons are frozen as version {plan.version}."
            if plan.version
            else "There are no lessons to freeze: no failed run has a confirmed, labelled or exact finding."
        )
    order = "this order" if plan.in_order else "any order, at a shared level"
    contrasts = ", ".join(f"{one} against {other}" for one, other in plan.contrasts)
    lines.append(f"Decided in {order}: {contrasts}; from an e-value of {plan.threshold:g}.")
    return "\n".join(lines)


def looked(look: Look) -> Iterator[RenderableType]:
    """Yield the parts of a look."""
    plan, found = look.plan, look.conclusion
    yield plain(planned(plan))
    counted = f"Look {look.looks}" if look.looks else "A look that is not counted"
    yield plain(f"{counted}: {found.tasks} tasks, {found.runs} runs.")
    arms = Table("arm", "tasks", "runs", "success", "95 % interval", "no outcome", "told", box=None)
    for arm in found.arms:
        rate = arm.rate
        arms.add_row(
            plain(arm.arm),
            str(arm.tasks),
            str(arm.runs),
            "-" if rate.value is None else _rate(rate.value),
            "-" if rate.value is None else f"{_rate(rate.low)} to {_rate(rate.high)}",
            _share(arm.missing, arm.runs),
            _share(arm.delivered, arm.runs),
        )
    yield arms
    sure = round(100 * (1 - 2 / plan.threshold), 1)
    contrasts = Table(
        "contrast",
        "difference",
        f"{sure:g} % interval",
        "e better",
        "e worse",
        "tasks",
        "open",
        "word",
        box=None,
    )
    for each in found.contrasts:
        contrasts.add_row(*_row(each))
    yield contrasts
    for each in found.contrasts:
        if each.reason:
            yield plain(f"{each.treatment} against {each.control} is not decided: {each.reason}.")
    yield plain(
        "The first table's intervals hold for one look, the second's at every look. Runs without an outcome count "
        "against every claim."
    )
    for text in (*found.objections, *look.warnings):
        yield plain(f"Note: {text}", "yellow")
    if found.without_task:
        yield plain(
            f"Note: {found.without_task} runs have no usable key and do not count.", "yellow"
        )
    if found.beyond:
        yield plain(
            f"Note: {found.beyond} runs are beyond the planned {plan.repeats} of their task in their arm; they count "
            "in the first table alone.",
            "yellow",
        )


def _row(each: Contrast) -> tuple[RenderableType, ...]:
    difference = "-" if each.difference is None else f"{each.difference:+.2f}"
    return (
        plain(f"{each.treatment} - {each.control}"),
        difference,
        f"{each.low:+.2f} to {each.high:+.2f}",
        _e(each.better),
        _e(each.worse),
        str(each.tasks),
        str(each.open),
        plain(each.word, _STYLES.get(each.word, "")),
    )


def _e(value: float) -> str:
    if value > _MOST:
        return f"> {_MOST:,.0f}"
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _rate(value: float) -> str:
    return f"{value:.2f}"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}"
