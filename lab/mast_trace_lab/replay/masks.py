"""Masks of what a program draws anew each time, proposed by two replays and kept with the run.

The second replay begins a day later, with another order of Python's sets, and its answers take longer. A text that
differs between the two changes by itself; one that differs from the record in both alike was changed by somebody.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, NamedTuple

from mast_trace.exceptions import MastTraceError
from mast_trace.spans.randomness import HASH_SEED
from mast_trace_judge.store.replay_plans import MASKS, plan_of, plans_of_run
from mast_trace_lab.replay.runner import Replayed, play, replay

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mast_trace.replay.tape import Tape
    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_lab.program.setup import Setup

_DAY: Final = 86_400 * 10**9
_SECONDS: Final = 0.11
"""The time that an answer of the second replay takes."""
_TOKEN: Final = re.compile(r"\s*\d+(?:[.,:]\d+)+|\s*\w+|\s*[^\w\s]|\s+")
_CONTEXT: Final = 4
"""Tokens beside a span by which it is found; more lie between two spans."""
_WORD: Final = re.compile(r"\d+(?:[.,:]\d+)+|\w{3,}|\d+")
_SHOWN: Final = 60


class Mask(NamedTuple):
    """A place of prompts that is masked.

    Attributes:
        pattern: the place, by the words beside it.
        name: stands in its place.
        recorded: its text in the recorded run.
        replayed: its text in a replay.
    """

    pattern: str
    name: str
    recorded: str
    replayed: str

    @property
    def pair(self) -> tuple[str, str]:
        """The pattern and the name, as replays take them."""
        return self.pattern, self.name


class NotMaskable(MastTraceError):
    """No masks make the replays of a run identical; the text says why."""


def propose(recorded: Trajectory, setup: Setup) -> tuple[tuple[Mask, ...], Replayed]:
    """Replay a run twice, and once more with the masks that the two propose; return these and the last replay.

    Raises:
        NotMaskable: there are none.
        NotReplayable: the record lacks data that a replay needs.
        ResetFailed: the state outside the program could not be restored.
        OSError: the command cannot be started.
    """
    quiet = replace(setup, output="discarded", parent=None)
    tape = quiet.tape(recorded)
    first = _prompts(tape, quiet, 0.0)
    later = replace(tape, start=None if tape.start is None else tape.start + _DAY)
    order = {HASH_SEED: "2" if tape.environment.get(HASH_SEED) == "1" else "1"}
    second = _prompts(later, replace(quiet, environment={**setup.environment, **order}), _SECONDS)
    found: dict[str, Mask] = {}
    for place, (then, now) in first.items():
        for mask in _masks(then, now, second.get(place, (then, then))[1]):
            known = len(setup.masks) + len(found) + 1
            found.setdefault(mask.pattern, mask._replace(name=f"mask {known}"))
    _check_reach(tape, recorded.final_answer, found.values())
    if not found:
        raise NotMaskable("Two further replays do not differ from the record.")
    masks = tuple(found.values())
    quiet.restore()
    done = replay(recorded, replace(quiet, masks=(*setup.masks, *(each.pair for each in masks))))
    if done.status != "identical":
        raise NotMaskable(f"No masks make it identical: {done.text}")
    return masks, done


def _prompts(tape: Tape, setup: Setup, seconds: float) -> dict[tuple[int, int], tuple[str, str]]:
    """Return the prompts of a lenient replay that are not as recorded, each with the recorded one.

    The keys are the places of the call and of the prompt in its request.
    """
    setup.restore()
    report = play(tape, setup, lenient=seconds).report
    if report is None or report.divergence or report.waiting_exchanges or report.waiting_executions:
        raise NotMaskable(
            "No masks make it identical: it makes other calls than the recorded ones."
        )
    return {
        (call, place): (then[-1], now[-1])
        for call, before, after in report.other_requests
        for place, (then, now) in enumerate(zip(before, after, strict=True))
        if then != now
    }


def _masks(then: str, now: str, again: str) -> Iterator[Mask]:
    """Yield a mask, without its name, for each span of a prompt that differs from the record.

    Raises:
        NotMaskable: one of them does not differ between the two replays, or is not found by the words beside it.
    """
    tokens = _TOKEN.findall(then)
    most = max(map(len, (then, now, again)))
    for first, last in _spans(tokens, _TOKEN.findall(now), _TOKEN.findall(again)):
        start = re.escape("".join(tokens[max(0, first - _CONTEXT) : first]))
        end = re.escape("".join(tokens[last : last + _CONTEXT]))
        start = start if first > _CONTEXT else rf"\A{start}"
        end = end if last + _CONTEXT < len(tokens) else rf"{end}\Z"
        # The words beside it stay, as another span's place may lie among them.
        pattern = f"(?<={start})(?s:.{{0,{most}}}?)(?={end})"
        old, new, other = (
            found[0].strip()[:_SHOWN] if (found := re.search(pattern, text)) else None
            for text in (then, now, again)
        )
        if old is None or new is None or other is None or not (first or last < len(tokens)):
            raise NotMaskable("No masks make it identical: its prompts have too little in common.")
        if new == other != old:
            raise NotMaskable(
                f"No mask is proposed for {new!r}, recorded {old!r}: two replays do not differ in it: the program has "
                "changed, or files that it reads; --set reset=COMMAND restores those."
            )
        if new != old:
            yield Mask(pattern, "", old, new)


def _spans(then: Sequence[str], *others: Sequence[str]) -> list[tuple[int, int]]:
    """Return the spans of a text that differ in one of the others; those that lie close together are one."""
    found = sorted(
        (start, end)
        for other in others
        for kind, start, end, *_ in SequenceMatcher(None, then, other).get_opcodes()
        if kind != "equal"
    )
    spans: list[tuple[int, int]] = []
    for start, end in found:
        if spans and start <= spans[-1][1] + _CONTEXT:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _check_reach(tape: Tape, final: str, masks: Iterable[Mask]) -> None:
    """Refuse masks of what an answer or a tool's arguments hold: it decides about the run.

    Raises:
        NotMaskable: there is one.
    """
    said = [each.answer for each in tape.exchanges if each.answer is not None]
    texts = [final, *(each.content for each in said), *(each.arguments for each in tape.executions)]
    texts += [str(call.arguments) for each in said for call in each.tool_calls]
    reached = {word for text in texts for word in _WORD.findall(text)}
    for mask in masks:
        words = {*_WORD.findall(mask.recorded)} - {*_WORD.findall(mask.replayed)}
        if both := sorted(words & reached):
            raise NotMaskable(
                f"No mask is proposed for {mask.recorded[:_SHOWN]!r}: {both[0]} reaches an answer or a tool."
            )


def keep_masks(store: Store, run: RunSummary, masks: Sequence[Mask]) -> None:
    """Keep masks with a run, besides those that are kept already.

    Raises:
        StorageError: the database does not answer, or does not accept them.
    """
    number = len(plans_of_run(store, run.project, run.trace_id, prefix=MASKS)) + 1
    if masks:
        plan_of(store, run, json.dumps([each.pair for each in masks]), name=f"{MASKS} {number}")
