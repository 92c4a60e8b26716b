"""Measures of teams in words: a value with its interval and its null, or the reason for silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_dashboards.document import DataTable, Heading, Line, Part, Sentence, Words
from mast_trace_dashboards.printable import counted
from mast_trace_judge.multi_agent.profile import PROVENANCE, YIELD, Presence
from mast_trace_judge.multi_agent.structure import PRICE
from mast_trace_lab.teams.profile import LEAST, Gap, ServiceProfile, VariantRuns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_judge.multi_agent.measure import Measure

HINT = (
    "Agents are often called because a run is hard: these are hints. An experiment that leaves an agent out "
    "measures its effect."
)

_ACTIONS: Final = {
    PROVENANCE.code: "Near 100 %, one agent makes the answer: try it alone, in an experiment.",
    YIELD.code: "Near 0 %, reviews change nothing: give the reviewer a tool to check with, or leave it out.",
    PRICE.code: "The higher it is, the more is paid for talk: hand over data in place of sentences.",
}
"""The advice on a measure, by its code; these come first."""

_NONE: Final = Sentence("There are no such finished runs.")

GAP_LEAVES_OPEN = (
    "Success holds for the tasks, the model and the time of the experiment, and does not say why one arm is better. "
    "An arm differs in more than its agents if they have other tools or fewer tokens. An agent without which "
    "nothing changes may matter in tasks that were not tried."
)


def value_words(measure: Measure) -> str:
    """Return the value with its unit; ``not measured`` where it is silent."""
    return (
        "not measured"
        if measure.value is None
        else number_words(measure.value, measure.question.unit)
    )


def number_words(value: float, unit: str) -> str:
    """Return a number with its unit."""
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit == "bits":
        return f"{value:.2f} bits"
    return f"{value:.1f} times" if unit == "times" else f"{value:.1f}"


def interval_words(measure: Measure) -> str:
    """Return the 95 % interval; empty where there is none."""
    if measure.low is None or measure.high is None:
        return ""
    unit = measure.question.unit
    return f"{number_words(measure.low, unit)} to {number_words(measure.high, unit)}"


def null_words(measure: Measure) -> str:
    """Return the value that the null reaches; empty where there is none."""
    return "" if measure.null is None else number_words(measure.null, measure.question.unit)


def presence_words(found: Presence) -> str:
    """Return success with and without an agent in words."""
    (with_it, runs), (without, others) = found.with_it, found.without
    difference = f"difference {100 * found.low:+.0f} to {100 * found.high:+.0f} points"
    return (
        f"{found.agent}: {with_it} of {runs} runs in which it acted succeeded, "
        f"{without} of {others} in which it did not ({difference})"
    )


def side_words(found: VariantRuns) -> str:
    """Return the successes of a variant in words."""
    missing = f", {found.missing} without an outcome" if found.missing else ""
    tokens = "" if found.tokens is None else f", {found.tokens:,.0f} tokens a run"
    return f"{found.variant}: {found.successes} of {found.runs} runs succeeded{missing}{tokens}"


def gap_words(found: Gap) -> str:
    """Return the difference of two variants in words, or the reason why there is none."""
    between = f"{found.team.variant} against {found.other.variant}"
    if found.difference is None or found.low is None or found.high is None:
        return f"{between}: not compared below {LEAST} runs with an outcome on each side"
    interval = f"{100 * found.low:+.0f} to {100 * found.high:+.0f}"
    words = [f"{between}: {100 * found.difference:+.0f} points of success ({interval})"]
    if found.amplification is not None:
        words.append(f"{found.amplification:.1f} times the failures")
    if found.overhead is not None:
        words.append(f"{100 * found.overhead:+.0f} % tokens")
    return ", ".join(words)


def runs_words(found: ServiceProfile) -> str:
    """Return the runs that a profile is made of, in words."""
    profile = found.profile
    words = [f"{counted(profile.runs, 'run')} read, {profile.teams:,} of them of several agents"]
    if found.more:
        words.append("there are more, the newest were read")
    if found.unread:
        words.append(f"{found.unread:,} were too long to be read")
    if profile.without_content:
        words.append(f"{profile.without_content:,} have no texts, which measures of words need")
    return "; ".join(words) + "."


def said_of(found: ServiceProfile) -> list[Part]:
    """Return the measures of a service, the reasons of those that are silent, and success with and without an agent."""
    profile = found.profile
    if not profile.runs and not found.unread:
        return [_NONE]
    told = [each for each in profile.measures if each.value is not None]
    silent = [each for each in profile.measures if each.value is None]
    parts: list[Part] = [Sentence(runs_words(found)), *map(_advice, filter(_advises, told))]
    if told:
        columns = ("Measure", "Value", "95 % interval", "By chance", "Runs")
        parts.append(DataTable("Measures", columns, list(map(_row, told)), frozenset({1, 2, 3, 4})))
    for each in told:
        parts += _explained(each)
    if silent:
        parts.append(Heading("Not measured"))
        parts += [Sentence(f"{each.question.title}: {each.silent}.", "item") for each in silent]
    if profile.presences:
        parts.append(Heading("Success with and without an agent"))
        parts += [Sentence(f"{presence_words(each)}.", "item") for each in profile.presences]
        parts.append(Sentence(HINT, "muted"))
    return parts


def advice_of(found: ServiceProfile) -> list[Part]:
    """Return the measures that lead to an action, each with its value or the reason why it has none."""
    if not found.profile.runs and not found.unread:
        return [_NONE]
    measures = filter(_advises, found.profile.measures)
    return [Sentence(runs_words(found), "muted"), *map(_advice, measures)]


def _advises(measure: Measure) -> bool:
    return measure.question.code in _ACTIONS


def _advice(measure: Measure) -> Sentence:
    title = measure.question.title
    if measure.value is None:
        return Sentence((Words(f"{title}:", "strong"), f" not measured, {measure.silent}."), "item")
    head = Words(f"{title}: {value_words(measure)}.", "strong")
    return Sentence((head, f" {_ACTIONS[measure.question.code]}"), "item")


def _row(measure: Measure) -> list[Line]:
    title = Words(measure.question.title, to=f"#{measure.question.code}")
    values = (value_words(measure), interval_words(measure), null_words(measure) or "-")
    return [(title,), *values, f"{measure.runs:,}"]


def _explained(measure: Measure) -> Iterator[Part]:
    asked = measure.question
    yield Heading(f"{asked.title}: {value_words(measure)}", asked.code)
    yield Sentence(asked.asks)
    for line in measure.detail:
        yield Sentence(line, "item")
    by_chance = f" By chance: {asked.null}." if asked.null else ""
    yield Sentence(f"{asked.leaves_open}{by_chance}", "muted")
