"""The transcript of a run for a model."""

from judge.builders import RunBuilder

from mast_trace_judge.llm.transcript import Renderer, RenderOptions, clip, estimate_tokens


def rendered(run, **options):
    return Renderer(run.build(), "mark", RenderOptions(**options)).record()


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
    record = Renderer(run, "mark", RenderOptions(clip=100, full=900), in_full={1}).record()
    assert "b" * 900 in record
    assert "a" * 900 not in record


def test_a_text_that_came_before_is_a_reference():
    long = "the same long answer, word for word, which fills more than eighty characters for sure"
    run = RunBuilder("x").says("a", long).says("b", long).says("a", "Yes.").says("b", "Yes.")
    record = rendered(run)
    assert record.count(long) == 1
    assert "(the same text as in step 0)" in record
    assert record.count("| Yes.") == 2


def test_tool_calls_show_arguments_result_and_error():
    run = RunBuilder("x")
    run.calls("clerk", "search", {"q": "rooms"}, "3 rooms")
    run.calls("clerk", "book", {}, error="room is taken")
    run.hands_over("clerk", "boss")
    record = rendered(run)
    assert '[0] clerk calls tool search\n  arguments:\n  | {"q": "rooms"}\n  result:' in record
    assert "[1] clerk calls tool book FAILED" in record
    assert "error:\n  | room is taken" in record
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
        assert f"| {part}" in task


def test_estimates_do_not_fall_short_for_other_scripts():
    """Text that is not ASCII costs more tokens for each character."""
    assert estimate_tokens("a" * 400) == 101
    assert estimate_tokens("会" * 300) == 201
    assert estimate_tokens("") == 1
