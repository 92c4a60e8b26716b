"""An experiment in words and cells: the same in a terminal and on its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from mast_trace_dashboards.document import DataTable, Line, Part, Sentence, Words
from mast_trace_dashboards.printable import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mast_trace_lab.feedback.experiment import Look
    from mast_trace_lab.feedback.statistics.conclusion import ArmContrast, ArmRuns
    from mast_trace_lab.feedback.statistics.plan import ExperimentPlan

_MOST: Final = 999_999.0
"""E-values beyond it are not written out."""
ARM_COLUMNS: Final = ("arm", "tasks", "runs", "success", "95 % interval", "no outcome", "told")
"""Headings of `arm_cells`."""
HOLDS: Final = (
    "The first table's intervals hold for one look, the second's at every look. Runs without an outcome count "
    "against every claim."
)

_STYLES: Final[Mapping[str, Literal["good", "bad"]]] = {"better": "good", "worse": "bad"}


def planned(plan: ExperimentPlan) -> str:
    """Return a plan and the size that it needs."""
    size = plan.size()
    rate = 0.6 if plan.baseline is None else plan.baseline
    if plan.paired:
        each = f"{size.tasks} tasks, each in all {len(plan.arms)} arms"
    else:
        each = f"{size.tasks} tasks in each of {len(plan.arms)} arms"
    times = f", {plan.repeats} runs of a task in an arm" if plan.repeats > 1 else ""
    found = (
        f"Size: {each}{times} ({counted(size.runs, 'run')} in all) find {_rate(rate)} -> "
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


def counted_words(look: Look) -> str:
    """Return the tasks and runs of a look, and its number."""
    which = f"Look {look.looks}" if look.looks else "A look that is not counted"
    return f"{which}: {counted(look.conclusion.tasks, 'task')}, {counted(look.conclusion.runs, 'run')}."


def arm_cells(arm: ArmRuns) -> tuple[str, ...]:
    """Return an arm's row."""
    rate = arm.rate
    return (
        arm.arm,
        str(arm.tasks),
        str(arm.runs),
        "-" if rate.value is None else _rate(rate.value),
        "-" if rate.value is None else f"{_rate(rate.low)} to {_rate(rate.high)}",
        _share(arm.missing, arm.runs),
        _share(arm.delivered, arm.runs),
    )


def contrast_columns(plan: ExperimentPlan) -> tuple[str, ...]:
    """Return the headings of `contrast_cells`."""
    sure = round(100 * (1 - 2 / plan.threshold), 1)
    interval = f"{sure:g} % interval"
    return ("contrast", "difference", interval, "e better", "e worse", "tasks", "open", "word")


def contrast_cells(each: ArmContrast) -> tuple[str, ...]:
    """Return a contrast's row; the last cell is its word."""
    return (
        f"{each.treatment} - {each.control}",
        "-" if each.difference is None else f"{each.difference:+.2f}",
        f"{each.low:+.2f} to {each.high:+.2f}",
        _e(each.better),
        _e(each.worse),
        str(each.tasks),
        str(each.open),
        each.word,
    )


def reasons(look: Look) -> Iterator[str]:
    """Yield a sentence for each contrast that is not decided."""
    for each in look.conclusion.contrasts:
        if each.reason:
            yield f"{each.treatment} against {each.control} is not decided: {each.reason}."


def notes(look: Look) -> Iterator[str]:
    """Yield sentences about runs that do not count, and about what the numbers cannot show."""
    found = look.conclusion
    yield from (*found.objections, *look.warnings)
    if found.without_task:
        yield f"{found.without_task} runs have no usable key and do not count."
    if found.beyond:
        yield (
            f"{found.beyond} runs are beyond the planned {look.plan.repeats} of their task in their arm; they "
            "count in the first table alone."
        )


def _e(value: float) -> str:
    if value > _MOST:
        return f"> {_MOST:,.0f}"
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _rate(value: float) -> str:
    return f"{value:.2f}"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}"


def said_of(look: Look) -> list[Part]:
    """Return what a look says."""
    arms = [arm_cells(arm) for arm in look.conclusion.arms]
    return [
        *map(Sentence, planned(look.plan).splitlines()),
        Sentence(counted_words(look)),
        DataTable("Arms", ARM_COLUMNS, arms, frozenset(range(1, len(ARM_COLUMNS)))),
        contrast_table(look.plan, map(contrast_cells, look.conclusion.contrasts)),
        *map(Sentence, reasons(look)),
        Sentence(HOLDS, "muted"),
        *(Sentence(f"Note: {text}", "note") for text in notes(look)),
    ]


def contrast_table(plan: ExperimentPlan, rows: Iterable[tuple[str, ...]]) -> DataTable:
    """Return the table of contrasts, of which each row is one of `contrast_cells`."""
    columns = contrast_columns(plan)
    told: list[Sequence[Line]] = [
        (*cells, (Words(word, _STYLES.get(word, "strong")),)) for *cells, word in rows
    ]
    return DataTable("Contrasts", columns, told, frozenset(range(1, len(columns) - 1)))
