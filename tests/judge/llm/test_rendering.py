"""The transcript of a run for a model."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.llm.transcript import (
    LEFT_OUT,
    Renderer,
    clip,
    estimate_tokens,
)


def rendered(run, **options):
    return Renderer(run.build(), "mark", **options).record()


def test_every_step_keeps_its_number():
    """Long texts are clipped; no step is left out."""
    run = RunBuilder("x")
    for number in range(40):
        run.says("clerk", f"{number} " * 2000, to="boss")
    record = rendered(run, clip=200)
    assert [f"[{number}] clerk to boss" in record for number in range(40)] == [True] * 40
    assert len(record) < 40 * 320


def test_head_and_tail_of_a_clipped_text_remain():
    text = "".join(chr(97 + number % 26) for number in range(1000))
    short = clip(text, 100)
    assert short.startswith(text[:65])
    assert short.endswith(text[-35:])
    assert "[... 900 characters ...]" in short
    assert clip(text, 1000) == text
    assert clip(text, 0) == " [... 1000 characters ...] "


def test_candidates_are_shown_in_full():
    run = RunBuilder("x").says("clerk", "a" * 900, to="boss").says("clerk", "b" * 900).build()
    record = Renderer(run, "mark", clip=100, full=900, in_full={1}).record()
    assert "b" * 900 in record
    assert "a" * 900 not in record


def test_a_text_that_came_before_is_a_reference():
    long = "the same long answer, word for word, which fills more than eighty characters for sure"
    run = RunBuilder("x").says("a", long).says("b", long).says("a", "Yes.").says("b", "Yes.")
    record = rendered(run)
    assert record.count(long) == 1
    assert "(the same text as in step 0)" in record
    assert record.count("|Yes.") == 2


PAGE = (
    "The Harbour Hotel stands at the old quay, and has 41 rooms. A double room costs 118 EUR a night in winter and 181 EUR in summer. Breakfast is "
    "served from seven to ten. Dogs pay 12 EUR."
)


@pytest.mark.parametrize(
    ("texts", "task", "shown", "place"),
    [
        (
            [PAGE, f"I read: {PAGE} So 118."],
            "x",
            ["|I read: The Harbour", "12 EUR. So 118."],
            "step 0",
        ),
        ([f"Old.\n\n\n{PAGE}  ", PAGE, f"It says {PAGE}"], "x", ["says The Harbour"], "step 0"),
        ([f"You ask: {PAGE}"], PAGE, ["|You ask: The Harbour"], "the task"),
        # A text that differs is written out there, however much of it is the same.
        ([PAGE, PAGE.replace("181", "118")], "x", ["118 EUR in summer"], "step 0"),
        (["7" * 400, f"{'7' * 400} 8"], "x", ["7" * 400 + " 8"], ""),
    ],
)
def test_a_passage_that_came_before_is_written_out_once(texts, task, shown, place):
    run = RunBuilder(task)
    for text in texts:
        run.says("clerk", text)
    record = rendered(run)
    assert all(each in record for each in shown)
    assert {found[1] for found in LEFT_OUT.finditer(record)} == ({place} if place else set())
    assert record.count("41 rooms. A double room") <= (place != "the task")
    assert all(
        text in Renderer(run.build(), "mark").step(step)
        for text, step in zip(texts, run.build().steps, strict=True)
        if "\n" not in text
    )


def test_tool_calls_show_arguments_result_and_error():
    run = RunBuilder("x")
    run.calls("clerk", "search", {"q": "rooms"}, "3 rooms")
    run.calls("clerk", "book", {}, error="room is taken")
    run.hands_over("clerk", "boss")
    record = rendered(run)
    assert '[0] clerk calls tool search\narguments:\n|{"q": "rooms"}\nresult:' in record
    assert "[1] clerk calls tool book FAILED" in record
    assert "error:\n|room is taken" in record
    assert "hands over to boss" in record


def test_says_where_content_was_not_recorded():
    run = RunBuilder("x").says("a", "", content_hash="ab12").says("b", "")
    record = rendered(run)
    assert "(content not recorded)" in record
    assert "(no text)" in record


def test_the_task_stands_in_front_with_what_was_recorded_of_the_end():
    run = RunBuilder(
        "Book a room.",
        outcome="failure",
        outcome_reason="no room",
        expected="room 7",
        termination_reason="max_turns",
        open_items=("pay",),
        error="boom",
    )
    task = Renderer(run.says("clerk", "no").build(), "mark").task()
    for part in (
        "Book a room.",
        "clerk",
        "max_turns",
        "pay",
        "boom",
        "failure",
        "no room",
        "room 7",
    ):
        assert f"|{part}" in task


def test_estimates_do_not_fall_short_for_other_scripts():
    """Text that is not ASCII costs more tokens for each character."""
    assert estimate_tokens("a" * 400) == 101
    assert estimate_tokens("会" * 300) == 201
    assert estimate_tokens("") == 1
