"""The assertions on captured, replayed and stored runs, with messages that quote the run."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from math import nextafter
from typing import TYPE_CHECKING

import pytest
from judge.builders import RunBuilder

import mast_trace
from mast_trace.trajectory import to_dict
from mast_trace_judge.gate.assertions import step_line
from mast_trace_judge.gate.case_files import load_case, write_case
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.testing import (
    assert_no_mode,
    assert_outcome,
    assert_steps,
    judged_run,  # noqa: F401  # the plugin's fixture, also where the package is not installed
)

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace.testing import CapturedSpans
    from mast_trace_judge.testing import JudgedRun


def loops(times: int = 3) -> RunBuilder:
    run = RunBuilder("What does Hartmann owe us?").asks()
    for _ in range(times):
        run.calls("analyst", "list_invoices", {"page": 1}, "R-1: 50 EUR")
    return run.says("analyst", "They owe 50 EUR.", to="user")


def healthy() -> None:
    with mast_trace.run("refund", input="What do I get back?"):
        with mast_trace.agent("clerk") as turn:
            with mast_trace.tool("price_of", {"order": 4711}) as call:
                call.result("59 EUR")
            turn.reply("You get 59 EUR back.")
        mast_trace.record_outcome(True)


class TestModes:
    """Failure modes, with the words that show them."""

    def test_a_healthy_run_passes_every_assertion(self, judged_run: JudgedRun) -> None:  # noqa: F811
        healthy()
        judged_run.assert_no_mode()
        judged_run.assert_outcome("success")
        judged_run.assert_steps(
            at_most=4,
            at_least=1,
            agents=["clerk"],
            tools={"price_of": 1, "delete_all": 0},
            in_order=["price_of", "clerk"],
        )
        judged_run.assert_budget(steps=4, model_calls=0)

    def test_the_message_has_the_mode_its_evidence_and_the_words_of_the_steps(self) -> None:
        with pytest.raises(AssertionError) as failed:
            assert_no_mode(loops().build())
        text = str(failed.value)
        assert "1.3 Step repetition (exact)" in text
        assert "step 1, analyst called list_invoices" in text
        assert "R-1: 50 EUR" in text

    def test_a_step_is_told_with_its_error(self) -> None:
        run = RunBuilder().calls("ann", "look", {}, "no page", error="404").says("", "Bye.").build()
        assert [step_line(step) for step in run.steps] == [
            "step 0, ann called look({}): 'no page' [error: 404]",
            "step 1, nobody: 'Bye.'",
        ]

    def test_only_the_named_modes_count(self) -> None:
        assert_no_mode(loops().build(), "2.1")
        with pytest.raises(AssertionError, match=r"1\.3"):
            assert_no_mode(loops().build(), "2.1", "1.3")

    def test_a_mode_counts_from_its_probability_on(self) -> None:
        (mode,) = judge_by_rules(loops().build()).modes
        assert_no_mode(loops().build(), at_least=nextafter(mode.probability, 1.0))
        with pytest.raises(AssertionError, match=r"1\.3"):
            assert_no_mode(loops().build(), at_least=mode.probability)

    def test_a_mode_that_was_not_looked_for_is_no_pass(self) -> None:
        run = loops(1).build()
        with pytest.raises(AssertionError, match=r"not examined for 2\.3"):
            assert_no_mode(run, "2.3")
        assert_no_mode(run, "2.3", unexamined="pass")

    def test_an_unknown_mode_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"no failure mode 9\.9"):
            assert_no_mode(loops().build(), "9.9")

    def test_an_empty_run_was_not_judged(self, captured_spans: CapturedSpans) -> None:
        with mast_trace.run("nothing"):
            pass
        with pytest.raises(AssertionError, match="nothing was judged"):
            assert_no_mode(captured_spans)

    def test_no_run_at_all_is_no_pass(self, captured_spans: CapturedSpans) -> None:
        with pytest.raises(AssertionError, match="0 runs"):
            assert_no_mode(captured_spans)

    def test_texts_of_a_run_cannot_control_the_terminal(self) -> None:
        run = RunBuilder("x").asks()
        for _ in range(3):
            run.calls("eve\x1b[2J", "look\u202e", {"page": 1}, "\x1b]0;owned\x07")
        with pytest.raises(AssertionError) as failed:
            assert_no_mode(run.build())
        assert not {"\x1b", "\x07", "\u202e"} & set(str(failed.value))


class TestOutcomes:
    """Ends of runs."""

    def test_a_recorded_failure_is_quoted(self, captured_spans: CapturedSpans) -> None:
        with mast_trace.run("r"), mast_trace.agent("a"):
            mast_trace.message("a", "user", "They owe 50 EUR.")
            mast_trace.record_outcome(False, "page 2 is missing")
        with pytest.raises(AssertionError, match="page 2 is missing") as failed:
            assert_outcome(captured_spans)
        assert "They owe 50 EUR." in str(failed.value)
        assert_outcome(captured_spans, "failure")

    def test_an_unknown_outcome_is_neither(self) -> None:
        for expected in ("success", "failure"):
            with pytest.raises(AssertionError, match="no known outcome"):
                assert_outcome(loops().build(), expected)

    def test_another_word_is_refused(self) -> None:
        with pytest.raises(ValueError, match="maybe"):
            assert_outcome(loops().build(), "maybe")


class TestSteps:
    """Conditions on steps."""

    @pytest.mark.parametrize(
        ("conditions", "said"),
        [
            ({"at_most": 4}, "5 steps, more than 4"),
            ({"at_least": 6}, "5 steps, fewer than 6"),
            ({"agents": ["planner"]}, "not planner"),
            ({"tools": {"list_invoices": 1}}, "called 3 times, not 1"),
            ({"in_order": ["list_invoices", "user"]}, "no step of user follows step 1"),
            ({"in_order": ["list_invoices"] * 4}, "no step of list_invoices follows step 3"),
        ],
    )
    def test_each_condition_fails_with_its_reason(self, conditions, said) -> None:
        assert_steps(loops().build(), at_most=5, at_least=5, tools={"list_invoices": 3, "other": 0})
        with pytest.raises(AssertionError, match=said):
            assert_steps(loops().build(), **conditions)

    def test_no_condition_is_a_mistake(self) -> None:
        with pytest.raises(TypeError, match="needs a condition"):
            assert_steps(loops().build())


class TestFiles:
    """Runs from files."""

    @pytest.mark.parametrize("packed", [False, True])
    def test_a_file_of_one_run_is_read(self, tmp_path: Path, packed: bool) -> None:
        line = json.dumps({"trajectory": to_dict(loops().build())}).encode()
        path = tmp_path / "run.jsonl"
        path.write_bytes(gzip.compress(line) if packed else line)
        with pytest.raises(AssertionError, match=r"1\.3"):
            assert_no_mode(path)

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"[1]", b"\x1f\x8bnone", b"\xff\xfe", b'{"trajectory": 5}', b"[" * 100_000],
    )
    def test_a_broken_file_is_named(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "broken.jsonl"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"broken\.jsonl"):
            assert_no_mode(path)

    def test_anything_else_is_a_mistake(self) -> None:
        with pytest.raises(TypeError, match="not int"):
            assert_no_mode(5)


def test_the_plugin_loads_pytest_alone() -> None:
    """It is imported in every test run of whoever has installed mast-trace, with or without the judge."""
    program = (
        "import sys, mast_trace_judge.testing\n"
        "print(*sorted(m for m in sys.modules if m.startswith(('mast_trace', 'pydantic', 'numpy', "
        "'openai', 'opentelemetry'))))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.split() == ["mast_trace_judge", "mast_trace_judge.testing"]


def test_a_failing_test_shows_the_message_and_not_the_judge(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import mast_trace
        from mast_trace_judge.testing import judged_run

        def test_loop(judged_run):
            with mast_trace.run("r"), mast_trace.agent("a"):
                for _ in range(3):
                    with mast_trace.tool("look", {"page": 1}) as call:
                        call.result("50 EUR")
            judged_run.assert_no_mode("1.3")
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*shows a failure mode:*", "*1.3 Step repetition (exact)*"])
    assert "check_modes" not in result.stdout.str()


@pytest.mark.parametrize("text", ["\u00e9t\u00e9", "\U0001f642", "one\u2028two\x85three", "\ud800"])
def test_a_case_holds_any_text(tmp_path: Path, text: str) -> None:
    """Separators of lines and halves of signs among them."""
    path = tmp_path / "one.json.gz"
    shape = {"trajectory": to_dict(RunBuilder(text).says("analyst", text).build())}
    write_case(path, [shape], added="", note=text)
    case = load_case(path)
    assert (case.note, case.task, case.trajectory.steps[0].text) == (text, text, text)
    first = path.read_bytes()
    write_case(path, [shape], added="", note=text, replace=True)
    assert path.read_bytes() == first
