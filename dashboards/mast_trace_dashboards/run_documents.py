"""A run in words: its verdict, and what replays have shown, the same on pages, in terminals and over MCP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from mast_trace.taxonomy import FAILURE_MODES, mode_words
from mast_trace_dashboards import certainty
from mast_trace_dashboards.certainty import NOBODY, SOURCES
from mast_trace_dashboards.commands import has_command
from mast_trace_dashboards.cost_words import cost_words
from mast_trace_dashboards.document import (
    Bar,
    CommandLine,
    DataTable,
    Folded,
    Heading,
    Line,
    Part,
    Quote,
    Quotes,
    Replaced,
    Sentence,
    Words,
    step_link,
)
from mast_trace_dashboards.found_pattern import command_line
from mast_trace_judge.proof import proved_step

if TYPE_CHECKING:
    from mast_trace_dashboards.found_run import FoundRun
    from mast_trace_judge.confirmation import Confirmation, Contrast, FurtherFix
    from mast_trace_judge.verdict import Candidate, DecisiveError, ModeFinding, Place, Verdict

_JUDGED_BY: Final = {
    "llm": "a language model",
    "fused": "rules, local attribution and a language model",
}
_MOST_POINTS: Final = 60
"""Most steps in the table of V, the earliest first."""
_MOST_STEPS: Final = 12
_REFUTED: Final = "No step stands out as the decisive error, and replays have refuted one or more."
LONGEST: Final = 20_000
"""Characters of a fix, and of the answer that it replaces, that are shown."""
_FIX: Final = 2000


def where_to_look(found: FoundRun) -> list[Part]:
    """Return what is said first: the step that went wrong, or where to look, the evidence, and what to do next."""
    verdict = found.verdict
    if verdict is None:
        return [_not_judged(found)]
    if verdict.status == "unscored":
        reason = verdict.status_reason.rstrip(".")
        return [Sentence(f"The judge reached no verdict: {reason}.", "note")]
    parts: list[Part] = []
    if found.row["State"] == "changed":
        parts.append(Sentence(("The run has changed since, and will be judged again.",), "muted"))
    if doubt := certainty.suspicion_of(verdict):
        parts.append(Sentence(doubt, "note"))
    first = next((each.step for each in (verdict.decisive, *verdict.look_first) if each), None)
    error = verdict.decisive
    parts += _decisive(verdict, error, found.places) if error else _suggested(found, verdict)
    for place in verdict.look_first:
        if place.step != first:
            parts.append(Sentence(("Then: ", _to(place), _basis(place, verdict), f" {place.why}")))
    missing = certainty.not_measured(verdict, found.record)
    if first is not None:
        parts += [Sentence(missing, "muted")] if missing and verdict.model else []
    if first is not None or verdict.outcome == "failure":
        parts += next_commands(found)
    return parts


def _suggested(found: FoundRun, verdict: Verdict) -> Iterator[Part]:
    """Yield the first place to look at, or why there is none."""
    if verdict.outcome == "success" and not verdict.look_first:
        yield Sentence("No decisive error: the run succeeded.")
        return
    if verdict.confirmation and verdict.confirmation.refuted:
        yield Sentence(_REFUTED)
    for place in verdict.look_first[:1]:
        head = Words(f"{certainty.LOOK_HEADING}: ", "strong")
        yield Sentence((head, _to(place), _basis(place, verdict)), "lead")
        yield from _cause(place, found.places)
    if not verdict.look_first:
        yield Sentence(certainty.nothing_found(verdict))


def _basis(place: Place, verdict: Verdict) -> Words:
    return Words(f" ({certainty.basis_words(place, verdict)})", "muted")


def next_commands(found: FoundRun) -> Iterator[Part]:
    """Yield what can be done with a failed run: compare it, and prove its cause."""
    run, project = found.row["TraceId"], found.row["Project"]
    if found.has_good:
        effect = "Compare with the nearest good run"
        yield CommandLine(effect, command_line("compare", run, project), f"/compare?run={run}")
    proved = found.verdict is not None and found.verdict.rank == "confirmed by replay"
    # A long run is not read for it: this is said before its steps are.
    short = not found.stored.is_long
    if not proved and short and not found.points.obstacle and has_command("prove"):
        yield CommandLine("Prove it", command_line("prove", run, project))


def modes_and_judge(found: FoundRun) -> list[Part]:
    """Return the failure modes with their evidence, and the judge with what it left out."""
    verdict = found.verdict
    if verdict is None:
        return []
    unscored = verdict.status == "unscored"
    parts: list[Part] = []
    if certainty.counting(verdict) or (verdict.modes and unscored):
        parts += [Sentence("The rules found:")] if unscored else []
        parts.append(_modes(verdict, found.places))
    elif verdict.modes:
        parts.append(
            Folded(
                "Possible failure modes, none of which counts as shown",
                [_modes(verdict, found.places)],
            )
        )
    if unscored:
        return parts
    if not verdict.modes:
        parts.append(Sentence("No failure mode found."))
    shown = {each.step for each in (verdict.decisive, *verdict.look_first) if each}
    if others := [each for each in verdict.named_candidates if each.step not in shown]:
        title = "Other steps by position or likelihood, which is no evidence"
        named = ((_to(each), f": {each.rule}" if each.rule else "") for each in others)
        parts.append(Folded(title, [Sentence(line, "item") for line in named]))
    if missing := certainty.not_examined(verdict):
        parts.append(Sentence(missing, "muted"))
    by = _JUDGED_BY.get(verdict.method, "rules and local attribution")
    by += f" ({verdict.model})" if verdict.model else ""
    cost = f", {cost_words(verdict.cost_usd, 0)}" if verdict.cost_usd else ""
    when = f"{verdict.judged_at:%Y-%m-%d %H:%M:%S} UTC"
    told = f"Judged by {by}, version {verdict.judge_version}, {when}{cost}."
    parts.append(Sentence(told, "muted"))
    if verdict.status_reason:
        parts.append(Sentence(f"Note: {verdict.status_reason}.", "note"))
    return parts


def _not_judged(found: FoundRun) -> Part:
    if found.row["State"] == "running":
        return Sentence("Not judged yet. The run goes on.", "muted")
    health = Words("Judge health", to="/judge")
    now = Words(command_line("judge run", found.row["TraceId"], found.row["Project"]), "code")
    line = (
        "Not judged yet. If that lasts, the page ",
        health,
        " says why; ",
        now,
        " judges it now.",
    )
    return Sentence(line, "muted")


def _to(place: Place | Candidate) -> Words:
    return step_link(place.step, place.agent)


def _decisive(verdict: Verdict, error: DecisiveError, places: Mapping[str, int]) -> Iterator[Part]:
    sure = certainty.sureness(verdict)
    proved = verdict.rank == "confirmed by replay"
    rank = Words(f" ({sure})" if sure else "", "strong" if proved else "muted")
    who = step_link(error.step, error.agent)
    yield Sentence((Words("Decisive error: ", "bad"), who, rank), "lead")
    place = next((each for each in verdict.look_first if each.step == error.step), None)
    if place is not None:
        yield from _cause(place, places)
    why = error.reason or error.rule
    if why and (place is None or place.why not in why):
        yield Sentence(_sentence(why), "under")
    if error.minimal_fix:
        fix = error.minimal_fix
        told = fix if len(fix) <= _FIX else f"{fix[:_FIX]} ..."
        yield Sentence((Words("Fix: ", "strong"), told), "under")


def _sentence(text: str) -> str:
    """Return a text with a capital letter at its beginning, and a full stop where it has none."""
    return f"{text[:1].upper()}{text[1:]}" + "." * (text[-1:] not in ".!?")


def _cause(place: Place, places: Mapping[str, int]) -> Iterator[Part]:
    yield Sentence(place.why, "under")
    if place.quotes:
        yield Quotes([Quote(each, places.get(each)) for each in place.quotes[:2]])
    if way := certainty.way_words(place):
        yield Sentence(way, "under")
    if place.good_run:
        run = Words(place.good_run, "code", f"/runs/{place.good_run}")
        yield Sentence((f"See step {place.good_step} of the good run ", run, "."), "under")


def _modes(verdict: Verdict, places: Mapping[str, int]) -> DataTable:
    above = [text for each in verdict.look_first[:1] for text in (each.why, *each.quotes[:2])]
    rows = [_mode(finding, above, places) for finding in verdict.modes]
    return DataTable("Failure modes", ("Failure mode", "Sure", "Evidence", "Steps", "Why"), rows)


def _mode(finding: ModeFinding, above: Sequence[str], places: Mapping[str, int]) -> list[Line]:
    known = FAILURE_MODES.get(finding.code)
    chip = Words(mode_words(finding.code), "chip", f"/?mode={finding.code}")
    quotes = [Quote(each, places.get(each)) for each in finding.quotes if each not in above]
    return [
        (chip, f" {known.name}" if known else ""),
        (certainty.likelihood(finding),),
        (finding.evidence.value,),
        _steps(finding.steps),
        ("As said above." if finding.reason in above else finding.reason, *quotes),
    ]


def _steps(numbers: Sequence[int]) -> Line:
    """Return links to the first of some steps."""
    links: list[str | Words] = []
    for number in numbers[:_MOST_STEPS]:
        links += [", "] if links else []
        links.append(Words(str(number), to=f"#step-{number}"))
    more = len(numbers) - _MOST_STEPS
    return (*links, f" and {more:,} more") if more > 0 else links


def replays_said(
    confirmation: Confirmation | None,
    answers: Mapping[int, str] | None = None,
    results: Mapping[int, str] | None = None,
) -> list[Part]:
    """Return what replays of a run have shown; nothing where it was not replayed.

    Args:
        confirmation: the conclusion.
        answers: the recorded answer of each step that a contrast has a fix text for, where known.
        results: the recorded result of each tool's call that a contrast has another result for.
    """
    if confirmation is None:
        return []
    found, proved = confirmation, proved_step(confirmation)
    parts: list[Part] = [Heading(certainty.heading(found))]
    if found.text:
        parts.append(Sentence(_sentence(found.text)))
    if found.origin is not None:
        name = "Origin" if proved == found.origin else "Origin, not proved"
        parts.append(Sentence((f"{name}: ", step_link(found.origin, found.origin_agent), ".")))
    if found.point_of_no_return is not None:
        point = step_link(found.point_of_no_return, found.point_agent)
        parts.append(Sentence(("Point of no return: ", point, ".")))
        if found.origin is None:
            parts.append(Sentence(_ALONE, "muted"))
    if found.curve:
        parts += _curve(found)
    if found.contrasts:
        parts += _contrasts(found, answers or {}, results or {})
    if found.likely and proved is None:
        parts.append(Sentence(_likely(found.likely)))
    plan = f" Plan {found.plan_id}." if found.plan_id else ""
    return [*parts, Sentence(f"{certainty.price(found)}.{plan}", "muted")]


_ALONE: Final = (
    "An earlier error that could still have been repaired is not excluded: the point of no return alone is not the "
    "decisive error."
)


def _likely(likely: Sequence[tuple[int, float]]) -> Line:
    words: list[str | Words] = ["With 90% probability the error is in one of these steps: "]
    for number, (step, share) in enumerate(likely[:_MOST_STEPS]):
        words += [", " if number else "", step_link(step), f" ({share:.0%})"]
    more = len(likely) - _MOST_STEPS
    return (*words, f" and {more:,} more." if more > 0 else ".")


def _curve(found: Confirmation) -> Iterator[Part]:
    """Yield V by step, with the fall at each."""
    rows: list[list[Line]] = [
        [
            (step_link(rate.step),),
            (
                *([Bar(rate.successes / rate.runs, rate.low, rate.high)] if rate.runs else []),
                certainty.share_of(rate),
            ),
            ("" if fall is None else f"{fall:+.0%}",),
            (Words(certainty.place(found, rate.step), "strong"),),
        ]
        for rate, fall in islice(certainty.falls(found), _MOST_POINTS)
    ]
    yield DataTable(
        "Success by kept step", ("Kept to", "Succeeds (V)", "Fall", ""), rows, frozenset({0, 2})
    )
    if len(found.curve) > _MOST_POINTS:
        said = f"The first {_MOST_POINTS} of {len(found.curve):,} tested steps."
        yield Sentence(said, "muted")


_FIX_COLUMNS: Final = (
    *("Step", "Agent", "Fix", "With fix", "Without", "Effect", "E-value", "Censored", ""),
)


def _contrasts(
    found: Confirmation, answers: Mapping[int, str], results: Mapping[int, str]
) -> Iterator[Part]:
    """Yield fix against keep by step and origin of the fix, the evidence of each, and the texts of fixes."""
    proof = _proof(found)
    rows: list[list[Line]] = [
        [
            _joined([step_link(step) for step in each.steps]),
            (", ".join(dict.fromkeys(part.agent or NOBODY for part in each.parts)),),
            (", ".join(dict.fromkeys(map(_source, each.parts))),),
            (certainty.count_words(each.fix_successes, each.pairs),),
            (certainty.count_words(each.keep_successes, each.pairs),),
            (f"{each.effect:+.0%}",),
            (f"{each.e_value:.4g} of {each.threshold:.4g}",),
            (str(each.censored),),
            (Words(_part_in_proof(each, found, proof), "strong"),),
        ]
        for each in found.contrasts
    ]
    yield DataTable("Tested fixes", _FIX_COLUMNS, rows, frozenset({3, 4, 5, 6, 7}))
    told: set[tuple[int, str, str]] = set()
    for each in found.contrasts:
        alike = each is proof and each.e_value < each.threshold
        evidence = certainty.evidence_words(each, alike=alike)
        where = _joined([step_link(step) for step in each.steps])
        lead = ("Fix of ", *where, f" ({_source(each)}): ", evidence)
        yield Sentence(lead)
        for part in each.parts:
            key = (part.step, _source(part), part.fix_text)
            if part.fix_text and key not in told:
                told.add(key)
                recorded = (results if part.result else answers).get(part.step, "")
                what = "result" if part.result else "answer"
                name = f"In place of the recorded {what} of step {part.step} ({_source(part)})"
                yield Replaced(name, recorded[:LONGEST], part.fix_text[:LONGEST])
    if any(each.censored for each in found.contrasts):
        yield Sentence(("Censored pairs have no outcome, and count against the fix.",), "muted")


def _joined(words: Sequence[Words]) -> Line:
    return [
        each for number, word in enumerate(words) for each in ((", ", word) if number else (word,))
    ]


def _part_in_proof(each: Contrast, found: Confirmation, proof: Contrast | None) -> str:
    if each is proof:
        return "together they help" if each.also else "confirmed by replay"
    return "refuted by replay" if each.step in found.refuted else ""


def _proof(found: Confirmation) -> Contrast | None:
    """Return the contrast that proves the decisive step, or the joint fix: the strongest of them.

    Among equally strong joint fixes the one with the fewest parts counts.
    """
    joint, proved = found.status == "overdetermined", proved_step(found)
    there = [
        each
        for each in found.contrasts
        if each.effect > 0 and (each.also if joint else each.steps == (proved,))
    ]
    return max(
        there,
        key=lambda each: (
            each.e_value >= each.threshold,
            each.effect,
            -len(each.also),
            each.e_value,
        ),
        default=None,
    )


def _source(fix: Contrast | FurtherFix) -> str:
    source = SOURCES.get(fix.source, fix.source)
    return f"{source}, as the tool's result" if fix.result else source
