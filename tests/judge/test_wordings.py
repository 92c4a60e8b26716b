"""A misread figure is found in any wording, and the same wording with the right figure is not."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from judge.builders import RunBuilder
from judge.data import labelled_runs
from published.agent_loops import read_agent_loops
from published.tau_retail import read_tau_retail
from published.who_and_when import SUBSETS, read_who_and_when

from mast_trace_judge.local.rules import find_modes, findings_by_rule
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults"

TASK = "We are two, and fly to Lisbon for three nights. What does a double room cost there?"
SENTENCES = {
    "says": "The hotel search says that a double room in Lisbon costs {} a night.",
    "look-up": "The look-up says {}.",
    "according": "According to hotel_price the price is {}.",
    "first": "{} a night is what a double room costs in Lisbon.",
    "bare": "Double room in Lisbon: {}",
    "listed": "Found it. Lisbon, double room, {} per night",
    "comes to": "I looked the hotel up, and the rate comes to {}.",
    "go for": "Rooms go for {} a night there.",
    "expect": "You can expect to pay {} per night.",
    "bold": "- **Hotel:** **{}** / night\n- **Guests:** two",
    "table": "| room | price |\n|---|---|\n| double | {} |",
    "json": '{{"room": "double", "price": "{}"}}',
    "fenced": '```json\n{{"city": "Lisbon", "nightly_rate": "{}"}}\n```',
    "german": "Das Doppelzimmer kostet {} pro Nacht.",
    "spanish": "La habitaci\u00f3n cuesta {} por noche.",
    "french": "La nuit co\u00fbte {} pour deux.",
    # The last one has no spaces, so that no other word can stand in it.
    "chinese": "\u91cc\u65af\u672c\u53cc\u4eba\u95f4\u6bcf\u665a{}\u3002",
}
PUBLISHED = (
    *(partial(read_who_and_when, subset=subset) for subset in SUBSETS),
    *(read_tau_retail, read_agent_loops),
)
AMOUNTS = {
    "plain": ("118 EUR", "118 EUR", "181 EUR"),
    "sign": ("118 EUR", "\u20ac118", "\u20ac181"),
    "sign behind": ("118 \u20ac", "118\u20ac", "181\u20ac"),
    "thousands": ("1,234.50 USD", "$1,234.50", "$1,243.50"),
    "german": ("1234.50 EUR", "1.234,50 EUR", "1.243,50 EUR"),
    "swiss": ("1284.50 CHF", "CHF 1'284.50", "CHF 1'248.50"),
    "thousand": ("12750 EUR", "12.75 k EUR", "12.57 k EUR"),
    "joined": ("1347 EUR", "1347EUR", "1374EUR"),
}
TWINS = {
    "negated": "A double room in Lisbon does not cost {} a night.",
    "conditional": "If the fair is on, a double room in Lisbon costs {} a night.",
    "quoted": 'The leaflet reads "a double room costs {} a night".',
    "hypothetical": "Suppose that a double room in Lisbon costs {} a night.",
    "historical": "Years ago a double room in Lisbon cost {} a night.",
    "asked": "Does a double room in Lisbon cost {} a night?",
}
KEPT = re.compile(
    r"\w*[_\d]\w*|\\[nrtu]|\b(?:true|false|null)|\b(?:EUR|USD|CHF|k|says?|according|to|returned|reports?|gives|not?|if|suppose|ago|never"
    r"|without|does)\b|n't",
    re.IGNORECASE,
)
"""Identifiers, units, words of attribution, those that deny or set a condition, and JSON's own."""


def trip(said: str, returned: str, *, task: str = TASK, outcome: str = ""):
    run = RunBuilder(task, outcome=outcome).asks()
    run.calls("researcher", "flight_price", {"to": "Lisbon"}, "Vienna-Lisbon and back: 198 EUR")
    run.calls("researcher", "hotel_price", {"city": "Lisbon"}, returned)
    return run.says(
        "researcher", f"The flight costs 198 EUR.\n{said}" if said[0] not in "{`" else said
    )


def misread(said: str, amount: str, **more: str):
    """Return the finding of mode 2.6 in a run whose researcher says something of the hotel."""
    found = find_modes(trip(said, f"Double room in Lisbon: {amount} per night", **more).build())
    return next((mode for mode in found if mode.code == "2.6" and mode.is_shown), None)


def nonsense(text: str) -> str:
    """Replace each word by one that means nothing, the same one each time."""

    def replaced(word: re.Match[str]) -> str:
        if KEPT.fullmatch(word[0]):
            return word[0]
        digest = hashlib.sha256(word[0].lower().encode()).hexdigest()
        made = "".join(
            "bdfgklmn"[int(digit, 16) % 8] + "aeiou"[int(digit, 16) % 5] for digit in digest[:4]
        )
        return made.title() if word[0][0].isupper() else made

    return re.sub(r"\\[nrtu]|\w*[_\d]\w*|[^\W\d_]+", replaced, text)


def meaningless(run: Trajectory) -> Trajectory:
    """Return a run whose texts say nothing; names of agents and tools stay, as identifiers do."""
    steps = [
        replace(
            step,
            text=nonsense(step.text),
            arguments=nonsense(step.arguments),
            error=nonsense(step.error) if step.error else step.error,
        )
        for step in run.steps
    ]
    texts = {key: replace(seen, content=nonsense(seen.content)) for key, seen in run.texts.items()}
    return replace(run, steps=tuple(steps), texts=texts, task=nonsense(run.task))


@pytest.mark.parametrize(("sentence", "amount"), list(product(SENTENCES, AMOUNTS)))
def test_a_misread_amount_is_found_in_any_wording(sentence, amount):
    returned, right, wrong = AMOUNTS[amount]
    found = misread(SENTENCES[sentence].format(wrong), returned)
    assert found is not None
    assert found.evidence is Evidence.EXACT
    for outcome in ("", "failure"):
        assert misread(SENTENCES[sentence].format(right), returned, outcome=outcome) is None


@pytest.mark.parametrize("sentence", [*SENTENCES][:-1])
def test_words_decide_nothing(sentence):
    """Figures, units, identifiers, negations and words of attribution alone lead to the finding."""
    for returned, right, wrong in AMOUNTS.values():
        told = nonsense(f"Double room in Lisbon: {returned} per night")
        said = SENTENCES[sentence]
        for amount, evidence in ((wrong, Evidence.EXACT), (right, None)):
            text = nonsense(said.format(amount)) if said[0] != "`" else said.format(amount)
            run = trip(text, told, task=nonsense(TASK)).build()
            found = [mode.evidence for mode in find_modes(run) if mode.code == "2.6"]
            assert found == ([evidence] if evidence else []), text


def test_no_exact_finding_rests_on_words(monkeypatch):
    """Each slip that is asserted of published and generated failures stays where every word means nothing."""
    data = labelled_runs()
    runs = [run.trajectory for read in PUBLISHED for run in read(data)]
    monkeypatch.syspath_prepend(str(FAULTS))
    runs += [case.failing for case in import_module("generate").cases(1)]
    asserted, lost = 0, set()
    for told in (replace(run, outcome="failure") for run in runs):
        exact = _exact(told)
        asserted += len(exact)
        if exact:
            lost |= exact - _exact(meaningless(told))
    assert asserted > 80
    assert not lost


def _exact(run: Trajectory) -> set[tuple[str, int]]:
    found = findings_by_rule(run)
    return {
        (rule, min(each.steps))
        for rule, each in found
        if each.evidence is Evidence.EXACT
        if each.steps
    }


@pytest.mark.parametrize(("twin", "amount"), list(product(TWINS, AMOUNTS)))
def test_what_is_denied_supposed_quoted_or_past_is_no_misreading(twin, amount):
    returned, _, wrong = AMOUNTS[amount]
    for outcome in ("", "failure"):
        assert misread(TWINS[twin].format(wrong), returned, outcome=outcome) is None


@pytest.mark.parametrize(
    "returned",
    [
        '{"hotel": "Alfama", "room_price": 1174, "currency": "EUR", "stars": 4, "reviews": 873}',
        "3 rooms left.\nroom price: 1174 EUR\nrating: 8.7 of 10",
    ],
)
def test_of_several_figures_the_one_is_misread_that_stands_beside_the_same_words(returned):
    found = find_modes(trip("The room price is 1147 EUR.", returned).build())
    assert [(mode.code, mode.evidence) for mode in found] == [("2.6", Evidence.EXACT)]
    assert "1174" in found[0].reason


@pytest.mark.parametrize(
    "said",
    [
        "With breakfast it is 1194 EUR a night.",  # a round amount more
        "Together with a tax of 20 EUR a room costs 1194 EUR.",
        "Two nights cost 2348 EUR.",
        "The room costs about 1170 EUR.",
        "That is 587 EUR for each of you.",
        "The Alfama is 1174 EUR, and the Tejo would be 1147 EUR.",
        "A room costs 1147 USD.",  # another unit, and no fixed rate
        "A room is 1147 km away.",
    ],
)
@pytest.mark.parametrize("outcome", ["", "failure"])
def test_what_only_looks_like_a_misreading(said, outcome):
    assert misread(said, "1174 EUR", outcome=outcome) is None


def test_where_two_steps_of_arithmetic_make_the_figure_nothing_is_exact():
    """1174 - 30 + 3 is 1147."""
    task = "We have a voucher of 30 EUR, and the city tax is 3 EUR. What does a room cost?"
    found = misread("A room costs 1147 EUR.", "1174 EUR", task=task)
    assert found is not None
    assert found.evidence is Evidence.HEURISTIC


def test_a_message_without_figures_does_not_end_the_search():
    run = RunBuilder(TASK).asks()
    run.calls("researcher", "hotel_price", {"city": "Lisbon"}, "Double room: 118 EUR per night")
    run.says("researcher", "Let me see.").says("researcher", "A room costs 181 EUR.")
    assert [mode.steps for mode in find_modes(run.build())] == [(1, 3)]
