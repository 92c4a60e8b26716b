"""The value that a run ends on, and the step that it comes from."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.acts import final_answer, introduced


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        (["FINAL ANSWER:  Paris "], "Paris"),
        # The last announcement of the strongest kind counts.
        (["FINAL ANSWER: Rome. No.\nFINAL ANSWER: Paris"], "Paris"),
        (["The answer is 12. FINAL ANSWER: 13"], "13"),
        ([r"The answer is 12: \boxed{13}"], "13"),
        (["The correct answer is 12, **13** of 14"], "12, **13** of 14"),
        (["It is **12**, of **13**"], "12"),
        (["Yes, **13** of 14"], "13"),
        (["The answer to how many there are is: 12"], "12"),
        (["answer : `x`"], "x"),
        # Marks around a value are no part of it, and a value of marks alone is none.
        (["FINAL ANSWER: ** 'Paris'. **"], "Paris"),
        (["FINAL ANSWER: ..\n**13**"], "13"),
        # Without an announcement the last number of the last text.
        (["We have 12.", "Of 13 there are 14 left."], "14"),
        (["We have 12.", "None is left."], ""),
        (["We have 12.", "I got 37. All 5 tests pass."], "37"),  # a number of things
        # An earlier text counts where the last ones announce nothing; of three, no more.
        (["FINAL ANSWER: 12", "Thanks.", "Bye."], "12"),
        (["FINAL ANSWER: 12", "Thanks.", "Bye.", "Bye."], ""),
        # A signal to stop is no text.
        (["FINAL ANSWER: 12", "Thanks.", "Bye.", "TERMINATE", "  ", "##!"], "12"),
        (["FINAL ANSWER: 12", "RUN.SH COMPLETE with code 0", "SCENARIO.PY COMPLETE"], "12"),
        (["FINAL ANSWER: 12", *["TERMINATE"] * 11], "12"),
        (["FINAL ANSWER: 12", *["TERMINATE"] * 12], ""),
        # Long texts are read at their end, long values cut.
        (["FINAL ANSWER: 12\n" + "- " * 1480], "12"),
        (["FINAL ANSWER: 12\n" + "- " * 1500], ""),
        (["We have 12" + " -" * 490], "12"),
        (["We have 12" + " -" * 500], ""),
        (["FINAL ANSWER: " + "x" * 300], "x" * 200),
        ([], ""),
        (["FINAL ANSWER: 12\n" + "-" * 2983], "12"),
        (["FINAL ANSWER: 12\n" + "-" * 2984], ""),
    ],
)
def test_the_value_on_which_a_run_ends(texts, answer):
    """The value that the last words announce, else the last number."""
    run = RunBuilder()
    for text in texts:
        run.says("a", text)
    assert final_answer(run.build().steps) == answer


@pytest.mark.parametrize(
    ("tool", "answer"), [("finish", "12"), ("submit_answer", "12"), ("lookup", "")]
)
def test_a_call_that_ends_the_run_is_read_with_its_arguments(tool, answer):
    """Arguments of other tools are requests, not results."""
    run = RunBuilder().calls("a", tool, {"note": "It is 12"}, "ok")
    assert final_answer(run.build().steps) == answer


@pytest.mark.parametrize(
    ("task", "texts", "value", "step"),
    [
        ("How many?", ["Hm.", "There are 84.", "84"], "84", 2),
        ("How many?", ["84.0 it is"], "84", 1),
        ("How many?", ["1,084 it is", "84"], "84", 2),
        # Words are compared without regard to case and spaces; so is a text with several numbers.
        ("Who?", ["Ada  LOVELACE did"], "Ada Lovelace", 1),
        ("When?", ["From  12 to 13, I think."], "12 to 13", 1),
        ("When?", ["From 12 until 13"], "12 to 13", None),
        # A number in a long text is not the text.
        ("How many?", ["84"], "84 of the boxes that are in the cellar", None),
        ("Is it 84?", ["84"], "84", None),
        ("How many?", ["How many? 84, say.", "84"], "84", 2),
        ("", ["84"], "84", 1),
        ("How many?", ["84"], "", None),
        ("How many?", ["None."], "84", None),
        # Up to here a text is short.
        ("How many?", ["84"], "84 boxes " + "x" * 21, 1),
        ("How many?", ["84"], "84 boxes " + "x" * 22, None),
    ],
)
def test_who_brings_a_value_up(task, texts, value, step):
    run = RunBuilder(task).asks("84, I guess, or Ada Lovelace from 12 to 13.")
    for text in texts:
        run.says("a", text)
    assert introduced(run.build(), value) == step


def test_only_the_beginning_of_a_long_task_is_compared():
    """A step that begins as the task does repeats it, whatever follows."""
    task = "x" * 200
    run = RunBuilder(task + " and more").asks().says("a", f"{task}: 84").says("b", "84")
    assert introduced(run.build(), "84") == 2
    other = RunBuilder(task).asks().says("a", f"{task[:199]}y: 84").says("b", "84")
    assert introduced(other.build(), "84") == 1
