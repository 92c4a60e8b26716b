"""Pages that show two runs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from mast_trace.replay.canonical import canonical_arguments, canonical_text
from mast_trace_dashboards.web.run_view import PAGE, colours_of, parting
from mast_trace_dashboards.web.text_changes import TextChange, changes, common

if TYPE_CHECKING:
    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_dashboards.web.loaded_run import LoadedRun
    from mast_trace_dashboards.web.rows import Row

LONGEST: Final = 20_000
"""Characters of a text that are compared in canonical form; a longer one is compared by its hash."""
SHOWN: Final = 300
"""Characters of a step that are shown where both runs have it."""
_CHANGED = 1500
"""Characters of a step that are shown where the runs differ."""
_FOLDED_FROM = 6
_CONTEXT = 2


@dataclass(frozen=True)
class StepPair:
    """A step of each run, or of one of them.

    Attributes:
        left: of the first run; None where it has no such step.
        right: of the second run, likewise.
        equal: whether they are the same, apart from generated ids and times.
        changes: the texts' difference where both are there and differ.
        asked: that of their arguments, likewise.
        difference: names of the fields that differ, such as "text" or "agent"; empty where they are
            equal, or where one is missing.
        number: of the pair, from 0.
    """

    left: Step | None
    right: Step | None
    equal: bool = False
    changes: Sequence[TextChange] = ()
    asked: Sequence[TextChange] = ()
    difference: str = ""
    number: int = 0


@dataclass(frozen=True)
class PairBlock:
    """Consecutive pairs, shown one by one or folded into one line."""

    pairs: Sequence[StepPair]
    folded: bool


@dataclass(frozen=True)
class RunComparison:
    """Two runs, step by step.

    Attributes:
        pairs: in order.
        blocks: the same, some folded.
        parting: the first pair that differs; None if all that were compared are equal.
        only_left: steps that only the first run has.
        only_right: steps that only the second run has.
        changed: pairs that differ.
    """

    pairs: Sequence[StepPair]
    blocks: Sequence[PairBlock]
    parting: StepPair | None
    only_left: int
    only_right: int
    changed: int


def compared(left: Sequence[Step], right: Sequence[Step]) -> RunComparison:
    """Compare two runs.

    Steps are equal if their kind, agent, tool, arguments, text, recipients and hand-off are, with
    generated ids renamed and times masked, as in a replay. Ids of messages are not compared.
    """
    pairs = [replace(pair, number=number) for number, pair in enumerate(_pairs(left, right))]
    parting = next((pair for pair in pairs if not pair.equal), None)
    return RunComparison(
        pairs=pairs,
        blocks=list(_blocks(pairs)),
        parting=parting,
        only_left=sum(pair.right is None for pair in pairs),
        only_right=sum(pair.left is None for pair in pairs),
        changed=sum(bool(pair.difference) for pair in pairs),
    )


def _fields(step: Step) -> dict[str, str]:
    text = step.text
    said = canonical_text(text) if 0 < len(text) <= LONGEST else step.content_hash
    return {
        "kind": step.kind.value,
        "agent": step.agent,
        "tool": step.tool,
        "arguments": canonical_arguments(step.arguments or None),
        "text": said,
        "recipients": ", ".join(step.recipients),
        "hand-off": step.handoff_to,
    }


def _pairs(left: Sequence[Step], right: Sequence[Step]) -> Iterator[StepPair]:
    fields = [_fields(step) for step in left], [_fields(step) for step in right]
    ours, theirs = ([tuple(each.values()) for each in side] for side in fields)
    same = common(ours, theirs)
    for before, after in zip(left[:same], right[:same], strict=True):
        yield StepPair(before, after, equal=True)
    matcher = SequenceMatcher(None, ours[same:], theirs[same:])
    for kind, *ends in matcher.get_opcodes():
        one, two, three, four = (same + end for end in ends)
        for number in range(max(two - one, four - three)):
            here = one + number if one + number < two else None
            there = three + number if three + number < four else None
            if here is None or there is None:
                yield StepPair(
                    None if here is None else left[here], None if there is None else right[there]
                )
            elif kind == "equal":
                yield StepPair(left[here], right[there], equal=True)
            else:
                yield _changed(left[here], right[there], fields[0][here], fields[1][there])


def _changed(left: Step, right: Step, before: dict[str, str], after: dict[str, str]) -> StepPair:
    differing = [name for name, value in before.items() if value != after[name]]

    def marked(name: str, one: str, other: str) -> Sequence[TextChange]:
        return changes(one[:_CHANGED], other[:_CHANGED]) if name in differing else ()

    return StepPair(
        left,
        right,
        changes=marked("text", left.text, right.text),
        asked=marked("arguments", left.arguments, right.arguments),
        difference=", ".join(differing),
    )


def _blocks(pairs: Sequence[StepPair]) -> Iterator[PairBlock]:
    """Yield the pairs in order; long stretches of equal ones are folded but for both ends."""
    for equal, group in groupby(pairs, key=lambda pair: pair.equal):
        together = list(group)
        if not equal or len(together) < _FOLDED_FROM:
            yield PairBlock(together, folded=False)
            continue
        begin = 0 if together[0] is pairs[0] else _CONTEXT
        end = len(together) if together[-1] is pairs[-1] else len(together) - _CONTEXT
        for part, folded in (
            (together[:begin], False),
            (together[begin:end], True),
            (together[end:], False),
        ):
            if part:
                yield PairBlock(part, folded)


@dataclass(frozen=True)
class RunSide:
    """One of two compared runs.

    Attributes:
        letter: A or B.
        name: of the run.
        trace_id: of the run.
        row: of the query `run`; None for a run from a file.
        count: the number of its steps.
        steps: the first of them.
        marks: words at single steps, such as "DECISIVE" and codes of failure modes.
    """

    letter: str
    name: str
    trace_id: str
    row: Mapping[str, Any] | None
    count: int
    steps: Sequence[Step]
    marks: Mapping[int, Sequence[str]]


def two_stored(left: LoadedRun, right: LoadedRun) -> dict[str, Any]:
    """Return the values of the page that compares two stored runs.

    Raises:
        StorageError: the database does not answer.
    """
    later = parting(left.page.outline, right.page.outline)
    return _values(_stored("A", left), _stored("B", right), later)


def stored_and_file(stored: LoadedRun, run: Trajectory) -> dict[str, Any]:
    """Return the values of the page that compares a stored run with one from a file.

    Raises:
        StorageError: the database does not answer.
    """
    other = RunSide("B", run.name, run.trace_id, None, len(run.steps), run.steps[:PAGE], {})
    return _values(_stored("A", stored), other, None)


def _stored(letter: str, run: LoadedRun) -> RunSide:
    rows = run.page.rows(0, PAGE, clip=LONGEST + 1)
    marks = {row.step.index: _words(row) for row in rows}
    steps = [row.step for row in rows]
    name = str(run.row["Name"])
    return RunSide(letter, name, run.stored.trace_id, run.row, run.page.count, steps, marks)


def _words(row: Row) -> tuple[str, ...]:
    return (*(["DECISIVE"] if row.decisive else []), *row.marks, *row.modes)


def _values(left: RunSide, right: RunSide, later: int | None) -> dict[str, Any]:
    """Return the values; ``later`` is the first difference by hashes, of steps that are not shown too."""
    beyond = later is not None and later >= min(len(left.steps), len(right.steps))
    return {
        "sides": (left, right),
        "found": compared(left.steps, right.steps),
        "colours": colours_of(
            dict.fromkeys(each.agent for side in (left, right) for each in side.steps)
        ),
        "later": later if beyond else None,
        "longest_shown": SHOWN,
    }
