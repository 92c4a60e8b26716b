"""Patterns that are looked for quickly find what the patterns alone find."""

import importlib
import pkgutil
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge.data import labelled_runs
from published.mast import read_mast_v0
from published.who_and_when import SUBSETS, read_who_and_when

import mast_trace_judge.local.attribution
import mast_trace_judge.local.rules
from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.texts import alike, numbers, similarity

MODULES = [
    importlib.import_module(found.name)
    for package in (mast_trace_judge.local.rules, mast_trace_judge.local.attribution)
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
]
PHRASES = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, Phrases)
}
SAID = [
    "Please provide the file; I do not have it.",
    "Please revise it: this is NOT CORRECT.",
    "It should have been 12. You need it to be fixed; please correct it.",
    "Does not add up. That's not it, there is an error in line 3.",
    "I will just assume the price. Let's assume so, by assuming sample data.",
    "For the sake of a demo we assumed it; use a dummy dataset with placeholder values.",
    "Could you clarify? Would you please confirm? Do you mean May? Please specify.",
    "Let's start over from scratch. I will now begin again. Restarting the task from here.",
    "Initialized new_agent_2 instance",
    "We ship it without testing. It has not yet been reviewed. No need to verify. Untested.",
    "I skipped the check, no further validation, not any double-checking.",
    "LGTM! Looks good. All tests passed. It is now correct. Verified. It works as expected.",
    "No issues found, ready to ship. The work is approved and runs successfully.",
    "The task is complete. The request has been satisfied. Everything was done.",
    "Sorry, I cannot; unfortunately an error: not found, no results, a wrong problem.",
    "Therefore, in conclusion, the **final answer** is 7. In summary, the answer is 7.",
    "First, let's plan: step 1 comes next, we need to check and cross-check, confirm, validate.",
]


@pytest.mark.parametrize("name", sorted(PHRASES))
def test_signs_lose_no_match(name):
    """The first match is that of the pattern, in any text and in any case."""
    phrases = PHRASES[name]
    texts = [variant for text in SAID for variant in (text, text.upper(), text.lower())]
    assert any(phrases.pattern.search(text) for text in texts)
    for text in texts:
        wanted, found = phrases.pattern.search(text), phrases.search(text)
        assert (found and found.span()) == (wanted and wanted.span())
        assert phrases.count(text, 3) == min(3, len(phrases.pattern.findall(text)))


def test_signs_lose_no_match_in_real_runs():
    """Thousands of messages of real agents."""
    data = labelled_runs()
    runs = [run for subset in SUBSETS for run in read_who_and_when(data, subset)]
    for run in [*runs, *read_mast_v0(data)]:
        for step in run.trajectory.steps:
            text = step.text[:4000]
            for name, phrases in PHRASES.items():
                wanted, found = phrases.pattern.search(text), phrases.search(text)
                assert (found and found.span()) == (wanted and wanted.span()), name


def test_a_place_is_that_in_the_text_itself():
    """A letter whose lower case is longer does not shift what is quoted."""
    found = PHRASES["inter_agent._CORRECTS"].search("İİİ This is WRONG.")
    assert found is not None
    assert found[0] == "WRONG"


@given(
    st.text("ab cd", min_size=60, max_size=300), st.integers(0, 40), st.sampled_from([0.8, 0.92])
)
def test_likeness_is_that_of_the_4_grams(text, place, threshold):
    """The quick looks before it decide nothing that they should not."""
    other = text[:place] + "x" + text[place + 1 :]
    assert alike(text, other, threshold) == (similarity(text, other) >= threshold)


def test_texts_without_spaces_are_compared_all_the_same():
    """One changed character in a text of a script without spaces."""
    text = "他們在會議中討論了本季度的銷售數據並決定下個月再次開會審查結果以確保沒有遺漏" * 3
    assert alike(text, text[:50] + "新" + text[51:], 0.9)


PLAIN = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w]|\.\d|,\d{3})")
"""Notations of a number, in the order in which they are tried."""


@given(st.text("0123456789,.-+ a_\n٣", max_size=14))
def test_numbers_are_found_quickly_and_all_of_them(text):
    """The pattern that is looked for begins with the first character instead of what is before."""
    assert [match.span() for match in numbers(text)] == [m.span() for m in PLAIN.finditer(text)]
