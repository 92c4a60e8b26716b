"""Invented failures of an accounting team, each with one planted fault, for tests of the fit."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from judge.builders import RunBuilder

from mast_trace_judge.study.labelled import LabelledRun

if TYPE_CHECKING:
    from collections.abc import Sequence

OPERATORS = (
    *("tool-error", "tool-timeout", "tool-empty", "2.6-number"),
    *("2.4-withhold", "3.2-unchecked"),
)
HANDED, LISTED, TOLD, PASSED, CHECKED = 1, 2, 3, 4, 5
"""Steps of the runs: hand-over to the clerk, its list, its report, hand-over to the auditor, its check."""
_WAYS = ("in all", "together", "in total", "as of today")


def planted(
    operator: str, scenario: int, number: int = 0, *, framework: str = "mine"
) -> LabelledRun:
    """Return a failure with a fault of this operator; its numbers and wording are drawn."""
    dice = random.Random(f"{operator} {scenario} {number}")
    due, other = 100 * scenario + dice.randrange(7, 90), dice.randrange(1, 7)
    run = RunBuilder(
        f"Customer {scenario}: what do they owe?", outcome="failure", framework=framework
    )
    run.asks().hands_over("lead", "clerk")
    step = LISTED
    match operator:
        case "tool-error":
            run.calls("clerk", "list_bills", {"page": 1}, error="ConnectionError: no service")
        case "tool-timeout":
            run.calls("clerk", "list_bills", {"page": 1}, error="TimeoutError: no answer")
        case "tool-empty":
            run.calls("clerk", "list_bills", {"page": 1}, "[]")
        case _:
            run.calls("clerk", "list_bills", {"page": 1}, f"{due} and {other}")
    told = f"They owe {due} and {other} EUR {dice.choice(_WAYS)}."
    if operator == "2.6-number":
        step, told = TOLD, f"They owe {due + 1000} and {other} EUR {dice.choice(_WAYS)}."
    if operator == "2.4-withhold":
        step, told = TOLD, f"The bills have been read {dice.choice(_WAYS)}."
    run.says("clerk", told, to="lead").hands_over("lead", "auditor")
    if operator == "3.2-unchecked":
        step = CHECKED
        run.says("auditor", f"It is right {dice.choice(_WAYS)}.", to="lead")
    else:
        run.calls("auditor", "add", {"amounts": [due, other]}, f"{due + other}")
        run.says("auditor", f"It adds up to {due + other} {dice.choice(_WAYS)}.", to="lead")
    built = run.says("lead", f"They owe us {due + other + 1} EUR.").build()
    mode = operator[:3] if operator[0].isdigit() else ""
    return LabelledRun(
        subset="injection",
        name=f"{operator} {scenario} {number}",
        trajectory=built,
        group=f"original {scenario}",
        step=step,
        agent=built.steps[step].agent if mode else "",
        modes={mode: True} if mode else {},
        success=False,
        extra={"operator": operator, "decisive": True, "framework": framework},
    )


def planted_set(
    operators: Sequence[str] = OPERATORS, scenarios: int = 6, each: int = 1
) -> list[LabelledRun]:
    """Return a set with faults of each operator in each scenario."""
    return [
        planted(operator, scenario, number)
        for operator in operators
        for scenario in range(1, scenarios + 1)
        for number in range(each)
    ]


def person(number: int, *, says: str = "Sorry, an error.", task: str = "") -> LabelledRun:
    """Return a failure that a person has labelled: the guilty one of four workers admits trouble."""
    guilty = number % 4
    run = RunBuilder(task or f"Question {number}?", outcome="failure", framework="mine").asks()
    for place in range(4):
        run.says(
            f"worker{place}", says if place == guilty else f"Part {place} of {number}.", to="lead"
        )
    built = run.build()
    return LabelledRun("store", f"p{number}", built, built.task, guilty + 1, f"worker{guilty}")
