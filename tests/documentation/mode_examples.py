"""The runs that the pages on failure modes show, and the page's picture of each.

A pair is one program, with the fault and without it: the judge names the mode in the first run, and finds
nothing of it in the second.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judge.builders import RunBuilder

from mast_trace.semconv import Termination
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.certainty import likelihood

if TYPE_CHECKING:
    from mast_trace.trajectory import Invocation, Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

STOCK = "How many pieces of item 7 are in stock?"
ROOM = "Double room in Lisbon: 118 EUR per night"
CODE = "```python\ndef add(a, b):\n    total = a + b\n    return total\n```"
WIDTH = 90
"""Characters of a line of a picture."""
NO_RULE = ("2.3",)
"""Modes that a model alone looks for."""


@dataclass(frozen=True)
class Pair:
    """A run with a fault, and the same program without it.

    Attributes:
        said: what a scripted model says of the fault: step, reason, and a quote. For modes without a rule.
    """

    faulty: Trajectory
    healthy: Trajectory
    said: tuple[int, str, str] | None = None


def _failed(task: str, **more: Any) -> RunBuilder:
    return RunBuilder(task, outcome="failure", **more).asks()


def _unknown(task: str, **more: Any) -> RunBuilder:
    return RunBuilder(task, **more).asks()


def _disobeyed_task() -> Pair:
    def sent(box: int) -> Trajectory:
        run = _unknown("Ship box 40817 by the sea route.")
        return run.calls("porter", "dispatch", {"box": box, "by": "sea"}, "gone").build()

    return Pair(sent(40871), sent(40817))


def _disobeyed_role() -> Pair:
    def paid(agent: str) -> Trajectory:
        run = _unknown("Pay invoice R-1041.")
        run.prompted("clerk", "You read invoices. Never pay anything.")
        return run.calls(agent, "pay_invoice", {"invoice": "R-1041"}, "paid").build()

    return Pair(paid("clerk"), paid("bank"))


def _repetition() -> Pair:
    def asked(times: int, run: RunBuilder) -> Trajectory:
        for _ in range(times):
            run.calls("clerk", "stock_level", {"item": 7}, "Stock of item 7: 4711 pieces")
        return run.says("clerk", "There are 4711 pieces.").build()

    return Pair(asked(3, _unknown(STOCK)), asked(2, _unknown(STOCK)))


def _lost_history() -> Pair:
    def trip(*shown: int) -> Trajectory:
        run = _unknown("Plan the trip.").shown("agent", 0)
        run.calls("agent", "hotel_price", {"city": "Lisbon"}, ROOM).shown("agent", 0, 1)
        run.says("agent", "Noted: a room.").shown("agent", *shown)
        if 1 not in shown:
            run.calls("agent", "hotel_price", {"city": "Lisbon"}, ROOM)
        return run.says("agent", "A room costs 118 EUR a night.").build()

    return Pair(trip(0, 2), trip(0, 1, 2))


def _unaware_of_the_end() -> Pair:
    def limited(outcome: str, reason: str, last: str) -> Trajectory:
        run = RunBuilder("Agree on a date.", outcome=outcome, termination_reason=reason).asks()
        run.says("ann", "Friday suits me well.", to="bob")
        return run.says("bob", last, to="ann").build()

    faulty = limited("failure", Termination.MAX_TURNS, "Or Monday? Let us think it over.")
    return Pair(faulty, limited("success", Termination.MAX_TURNS, "Friday it is."))


def _reset() -> Pair:
    def grown(*shown: int) -> Trajectory:
        run = _unknown("Read the four invoices.").shown("clerk", 0)
        run.says("clerk", "The first one is over 12 EUR.").shown("clerk", 0, 1)
        run.says("clerk", "The second one is over 30 EUR.").shown("clerk", 0, 1, 2)
        run.says("clerk", "The third one is over 7 EUR.").asks("Go on.", to="clerk")
        run.shown("clerk", *shown)
        return run.says("clerk", "I begin with the invoice of 12 EUR.").build()

    return Pair(grown(0), grown(0, 2, 3, 4))


def _assumed() -> Pair:
    task = "Book a table."
    run = _failed(task).says("waiter", "No date is given, so I will assume next Friday.")
    well = RunBuilder(task, outcome="failure").asks()
    well.says("waiter", "Could you please specify the date?")
    return Pair(run.build(), well.build())


def _derailed() -> Pair:
    task = "Find the cheapest flight to Lisbon."
    run = _failed(task).says("guide", "Lisbon has seven hills; let me list its best cafes instead.")
    well = _unknown(task).says("guide", "The cheapest flight is the one at noon.")
    said = (
        1,
        "The task asks for a flight, and the agent turns to cafes.",
        "let me list its best cafes instead",
    )
    return Pair(run.build(), well.build(), said)


def _withheld() -> Pair:
    def researched(word: str) -> Trajectory:
        run = _failed("Write the report on the eastern region.")
        run.calls("researcher", "sales", {"region": "east"}, "340 units, 2 vans")
        run.says("researcher", word, to="writer").shown("writer", 0, 2)
        return run.says("writer", "The eastern region had a good month.", to="user").build()

    return Pair(researched("I have finished my research."), researched("They sold 340 units."))


def _ignored() -> Pair:
    def reviewed(*shown: int) -> Trajectory:
        run = _unknown("Write the article.").says("critic", "Part one is good.", to="writer")
        run.shown("writer", 0, 1).says("writer", "Part two is written.", to="critic")
        run.says("critic", "Part two names a wrong year.", to="writer")
        return run.shown("writer", *shown).says("writer", "Here is the article.").build()

    return Pair(reviewed(0, 1, 2), reviewed(0, 1, 2, 3))


def _mismatch() -> Pair:
    def told(price: int) -> Trajectory:
        run = _unknown("What does a room in Lisbon cost?")
        run.calls("researcher", "hotel_price", {"city": "Lisbon"}, ROOM)
        word = f"The hotel search says that a room costs {price} EUR a night."
        return run.says("researcher", word, to="planner").build()

    return Pair(told(181), told(118))


def _premature() -> Pair:
    def ended(error: str | None) -> Trajectory:
        run = RunBuilder(STOCK, error=error).asks()
        run.calls("clerk", "stock_level", {"item": 7}, "Stock of item 7: 4711 pieces")
        return (run if error else run.says("clerk", "There are 4711 pieces.")).build()

    return Pair(ended("RateLimitError: too many requests"), ended(None))


def _unverified() -> Pair:
    def written(run: RunBuilder) -> RunBuilder:
        return run.says("coder", f"Here it is:\n{CODE}", to="lead")

    checked = written(_failed("Write add().")).calls("tester", "run_tests", {}, "1 passed")
    done = "The function is in place."
    faulty = written(_failed("Write add().")).says("lead", done, to="user")
    return Pair(faulty.build(), checked.says("lead", done, to="user").build())


def _verified_wrongly() -> Pair:
    def reviewed(word: str) -> Trajectory:
        run = _unknown("Review the sum.")
        run.calls("reviewer", "run_tests", {"path": "tests"}, error="the total is wrong")
        return run.says("reviewer", word, to="coder").build()

    return Pair(reviewed("All tests passed. Approved!"), reviewed("The tests fail: rejected."))


PAIRS = {
    "1.1": _disobeyed_task(),
    "1.2": _disobeyed_role(),
    "1.3": _repetition(),
    "1.4": _lost_history(),
    "1.5": _unaware_of_the_end(),
    "2.1": _reset(),
    "2.2": _assumed(),
    "2.3": _derailed(),
    "2.4": _withheld(),
    "2.5": _ignored(),
    "2.6": _mismatch(),
    "3.1": _premature(),
    "3.2": _unverified(),
    "3.3": _verified_wrongly(),
}
"""A pair for each failure mode, by its code."""


def picture(run: Trajectory, finding: ModeFinding | None) -> str:
    """Draw a run: its outcome, its steps with what models were shown between, and the finding."""
    ended = run.termination_reason or (f"error: {run.error}" if run.error else "")
    facts = [f"outcome: {run.outcome or 'unknown'}", *([f"ended by {ended}"] if ended else [])]
    timed: list[tuple[int, str]] = [(step.start, _step(step)) for step in run.steps]
    timed += [(call.start, _shown(call)) for call in run.invocations]
    lines = [", ".join(facts), *(line for _, line in sorted(timed)), ""]
    return "\n".join([*lines, *_found(finding)])


def _step(step: Step) -> str:
    text = " ".join(step.text.replace("```python", "```").split())
    if step.tool:
        given = json.loads(step.arguments)
        arguments = ", ".join(f"{key}={value!r}" for key, value in given.items())
        failed = "fails: " if step.error else ""
        text = f"{step.tool}({arguments}) -> {failed}{text}"
    elif step.recipients:
        text = f"to {', '.join(step.recipients)}: {text}"
    return f"{step.index:>2}  {step.agent:<10}  {text}"


def _shown(call: Invocation) -> str:
    steps = ", ".join(identity.removeprefix("m") for identity in call.input_ids)
    many = "s" if len(call.input_ids) > 1 else ""
    return f"    {call.agent:<10}  (its model is shown step{many} {steps})"


def _found(finding: ModeFinding | None) -> list[str]:
    if finding is None:
        return ["nothing found"]
    name = FAILURE_MODES[finding.code].name
    many = "s" if len(finding.steps) > 1 else ""
    steps = ", ".join(map(str, finding.steps))
    head = f"{finding.code} {name}: {likelihood(finding)}, {finding.evidence.value}, step{many} {steps}"
    return [head, *textwrap.wrap(f"  {finding.reason}", WIDTH, subsequent_indent="  ")]
