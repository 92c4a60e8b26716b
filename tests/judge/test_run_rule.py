"""Rules that the configuration file declares: what they select, what they find, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from judge.builders import RunBuilder

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.run_rule import RunRule, StepPattern
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from pathlib import Path


def shop() -> RunBuilder:
    """A team that looks an order up, refunds it twice, and then approves of it."""
    run = RunBuilder("Refund order 7.").asks()
    run.calls("clerk", "find_order", {"order": 7}, "Order 7: 120 EUR")
    run.calls("clerk", "refund", {"order": 7, "amount": 120}, "done")
    run.calls("clerk", "refund", {"order": 7, "amount": 20}, "done")
    run.calls("lead", "approve_refund", {"order": 7}, "approved")
    return run.says("clerk", "I refunded 140 EUR in all.")


def rule(**given: Any) -> RunRule:
    return RunRule(**{"name": "mine", "mode": "1.1", "says": "It is wrong.", **given})


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ({"tool": "refund"}, [2, 3]),
        ({"tool": "REF*"}, [2, 3]),
        ({"tool": "refund", "at_most": 1}, [3]),
        ({"tool": "refund", "at_most": 2}, None),
        ({"argument": r'"amount": ?[0-9]{3,}'}, [2]),
        ({"agent": "lead"}, [4]),
        ({"agent": "lead", "tool": "refund"}, None),
        ({"text": "140 EUR"}, [5]),
        ({"tool": "approve_*", "before": {"tool": "refund"}}, [2, 3]),
        ({"tool": "find_order", "before": {"tool": "refund"}}, None),
        ({"tool": "call_customer", "before": {"tool": "approve_refund"}}, [4]),
        ({"tool": "refund", "before": {"tool": "call_customer"}}, None),
        ({"agent": "reviewer", "at_least": 1}, []),
        ({"agent": "lead", "at_least": 1}, None),
        ({"tool": "refund", "at_least": 3}, []),
    ],
)
def test_what_a_rule_finds(given: dict[str, Any], steps: list[int] | None) -> None:
    found = rule(**given).find(shop().build())
    assert [list(each.steps) for each in found] == ([] if steps is None else [steps])
    for each in found:
        assert (each.code, each.reason) == ("1.1", "It is wrong.")
        assert each.evidence is (Evidence.HEURISTIC if "text" in given else Evidence.EXACT)


def test_what_is_still_to_come_is_not_missing() -> None:
    wanted = rule(agent="reviewer", at_least=1)
    assert wanted.find(shop().build())
    assert wanted.find(replace(shop().build(), finished=False)) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "selects every step"),
        ({"tool": "pay", "mode": "9.9"}, "no failure mode"),
        ({"text": "("}, "no regular expression"),
        ({"tool": "pay", "at_most": 1, "at_least": 1}, "one of at_most, at_least and before"),
        ({"tool": "pay", "first": {"tool": "x"}}, "first"),
        ({"tool": "pay", "before": {}}, "selects every step"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rule(**given)


TABLE = """
[[rules]]
name = "paid-twice"
mode = "1.3"
says = "The customer was paid more than once."
tool = "refund"
at_most = 1
"""


def test_a_rule_of_the_file_is_asked_with_the_judges_own(tmp_path: Path) -> None:
    file = tmp_path / "mast-trace.toml"
    file.write_text(TABLE, encoding="utf-8")
    judge = Judge(JudgeConfig.load(file))
    found = judge.apply_rules(shop().build())
    (mine,) = [each for name, each in found.by_rule if name == "paid-twice"]
    assert (mine.code, mine.steps) == ("1.3", (3,))
    assert "1.3" in {each.code for each in found.modes}


def test_another_rule_is_another_version_of_the_judge(tmp_path: Path) -> None:
    file = tmp_path / "mast-trace.toml"
    versions = set()
    for text in ("", TABLE, TABLE.replace("at_most = 1", "at_most = 2")):
        file.write_text(text, encoding="utf-8")
        versions.add(Judge(JudgeConfig.load(file)).version)
    assert len(versions) == 3


def test_two_rules_of_one_name_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "mast-trace.toml"
    file.write_text(TABLE + TABLE, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="paid-twice"):
        JudgeConfig.load(file)


def test_a_pattern_selects_calls_by_whoever_asked_for_them() -> None:
    run = (
        RunBuilder("Go.").asks().calls("executor", "pay", {}, "done", requested_by="clerk").build()
    )
    assert StepPattern(agent="clerk").fits(run.steps[1])
    assert not StepPattern(agent="executor").fits(run.steps[1])
