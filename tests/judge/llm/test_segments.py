"""Runs that are too long to be read at once."""

import pytest
from judge.builders import RunBuilder
from judge.llm.scripted_judge import GOOD, JudgeScript, judged, mode, point, reading
from scripted_llm import messages_of

from mast_trace.exceptions import BudgetExhausted
from mast_trace_judge.llm.segments import plan_reading
from mast_trace_judge.llm.transcript import Renderer, estimate_tokens


def words(number, count):
    """Texts without a passage that comes again."""
    return "".join(
        f"looking at line {number:05d}.{each:03d} of the ledger and at what the bank's statement has "
        for each in range(count)
    )


def long_run(steps, *, agents=4, every=25, **attributes):
    """Agents work for a while each, then hand over; one number is wrong in the middle."""
    run = RunBuilder("Reconcile the ledger.", **attributes)
    wrong = steps // 2
    for number in range(steps):
        agent = f"clerk{number // every % agents}"
        if number % every == every - 1:
            run.hands_over(agent, f"clerk{(number // every + 1) % agents}")
        elif number == wrong:
            run.says(
                agent, "The balance of March is 4,711.00 EUR, I did not look it up.", to="boss"
            )
        else:
            run.says(agent, f"{number}: {words(number, 6)}", to="boss")
    return run.build()


def plan(trajectory, *, window=8000, budget=1_000_000, in_full=()):
    renderer = Renderer(trajectory, "mark", in_full=in_full)
    chosen = plan_reading(renderer, window=window, budget=budget, question=3000)
    return chosen.renderer, chosen


def test_a_run_that_fits_is_read_whole():
    trajectory = long_run(70)
    renderer, chosen = plan(trajectory, window=9000)
    assert chosen.at_once
    assert all(step.text in renderer.record() for step in trajectory.steps)


def test_the_longest_texts_are_shortened_first_and_no_more_than_needed():
    """Those of steps with findings stay whole."""
    run = RunBuilder("x")
    for number in range(12):
        run.says("clerk", words(number, 120 if number in {3, 7} else 20), to="boss")
    trajectory = run.build()
    renderer, chosen = plan(trajectory, window=8000, in_full={7})
    record = renderer.record()
    assert chosen.at_once
    whole = [step.index for step in trajectory.steps if step.text in record]
    assert whole == [number for number in range(12) if number != 3]
    assert 7000 < estimate_tokens(record) <= 8000


def test_a_long_step_with_a_finding_is_whole_where_many_have_one():
    run = RunBuilder("x")
    for number in range(40):
        run.says("clerk", words(number, 200 if number in {3, 7} else 8), to="boss")
    trajectory = run.build()
    renderer, chosen = plan(trajectory, window=12_000, in_full=set(range(7, 20)))
    assert chosen.at_once
    assert trajectory.steps[7].text in renderer.record()
    assert trajectory.steps[3].text not in renderer.record()


def test_parts_hold_every_step_once_and_fit_the_window():
    for window in (2000, 5000, 8000):
        trajectory = long_run(700)
        renderer, chosen = plan(trajectory, window=window)
        assert [step.index for part in chosen.segments for step in part] == list(range(700))
        for part in chosen.segments:
            assert estimate_tokens(renderer.record(part)) <= window * 1.1


def test_a_small_budget_shortens_the_texts():
    _, rich = plan(long_run(2000))
    _, poor = plan(long_run(2000), budget=200_000)
    assert poor.renderer.clip < rich.renderer.clip
    with pytest.raises(BudgetExhausted, match="2000 steps"):
        plan(long_run(2000), budget=20_000)


class SegmentReader:
    """A model that finds the wrong number in its part, and knows of no other part."""

    def __init__(self, wrong):
        self.wrong = wrong
        self.script = JudgeScript(
            {
                **GOOD,
                "read": reading(
                    point(wrong, "I did not look it up"),
                    modes=[mode("3.2", [wrong], "I did not look it up")],
                ),
            }
        )

    def __call__(self, request):
        prompt = messages_of(request)[1]["content"]
        found = [point(self.wrong, "I did not look it up")] if "4,711.00" in prompt else []
        self.script.answers["segment"] = {"summary": "lines were compared", "errors": found}
        return self.script(request)


async def test_a_run_of_fifteen_thousand_lines_is_read_in_parts():
    trajectory = long_run(1500, outcome="failure")
    text = RunBuilder("Reconcile the ledger.", outcome="failure")
    for step in trajectory.steps:
        text.says(step.agent, step.text.replace(" ", "\n", 10), to="boss")
    trajectory = text.build()
    lines = sum(step.text.count("\n") + 1 for step in trajectory.steps)
    assert lines >= 15_000
    model = SegmentReader(wrong=750)
    limits = {"judge_max_tokens_per_run": 400_000, "judge_window_tokens": 24_000}
    result = await judged(model, trajectory, **limits)
    verdict = result.verdict
    assert (verdict.status, verdict.method, verdict.status_reason) == ("ok", "fused", "")
    assert model.script.asked.count("segment") > 5
    assert model.script.asked.count("read") == 1
    assert 750 in {each.step for each in verdict.candidates}
    assert {found.code for found in verdict.modes} >= {"3.2"}
    final = next(r for r in result.requests if "Read the whole record" in str(r))
    assert "4,711.00" in messages_of(final)[1]["content"]
    assert f"\n[{len(trajectory.steps) - 1}] " in messages_of(final)[1]["content"], "how it ended"
    assert estimate_tokens(messages_of(final)[1]["content"]) < 28_000
    assert verdict.input_tokens + verdict.output_tokens <= 400_000


async def test_a_part_that_cannot_be_read_does_not_spoil_the_rest():
    trajectory = long_run(400, outcome="failure")
    model = SegmentReader(wrong=200)
    refused = []

    def failing(request):
        if "part 1 of" in messages_of(request)[1]["content"]:
            refused.append(request)
            return "no JSON"
        return model(request)

    verdict = (await judged(failing, trajectory, judge_window_tokens=8000)).verdict
    assert refused
    assert verdict.method == "fused"
    assert "part 1 of" in verdict.status_reason
    assert 200 in {each.step for each in verdict.candidates}


async def test_a_run_beyond_its_budget_is_left_to_the_local_layers():
    trajectory = long_run(3000, outcome="failure")
    result = await judged(JudgeScript(), trajectory, judge_max_tokens_per_run=30_000)
    assert result.requests == []
    assert (result.verdict.method, result.verdict.outcome) == ("local", "failure")
    assert "3000 steps" in result.verdict.status_reason
