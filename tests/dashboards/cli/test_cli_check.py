"""`mast-trace check` on stores with runs of several versions."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from stores import Tables, new_store
from version_runs import judge_runs, store_runs

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.cli.app import run
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOSTILE = (
    "v1|<script>alert(1)</script>`x`*b* [a](javascript:x) @all\x1b[2J\x00\ufffe ]]> &amp; \u202e"
)
SUCCESS, FAILURE = "success", "failure"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"chdb://{tmp_path_factory.mktemp('checked') / 'store'}"


@pytest.fixture
def gate(address: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    """Runs the command on a store without runs; returns the exit status and the JSON."""

    def call(*arguments: str, version: str = "main") -> tuple[int, Any]:
        given = ["check", "--baseline", version, *arguments, "--json", "--url", address]
        status = run(given)
        captured = capsys.readouterr()
        assert captured.err == "", captured.err
        return status, json.loads(captured.out)

    with Store.open(address) as store:
        migrate(store)
        Tables(store, made=True).renew()
    return call


@pytest.fixture
def fill(gate, address: str) -> Callable[..., list[str]]:
    """Stores runs."""

    def call(*arguments: Any, **options: Any) -> list[str]:
        with Store.open(address) as store:
            return store_runs(store, *arguments, **options)

    return call


@pytest.fixture
def compare(gate, fill) -> Callable[..., tuple[int, Any]]:
    """Stores runs of `main` and of `feature`, and compares them."""

    def call(main: Any, feature: Any, *, judges: Any = ("judge-1",) * 2, **options: Any) -> Any:
        fill("main", main, judge=judges[0], recorded=options.get("recorded", True))
        fill("feature", feature, judge=judges[1], **options)
        return gate()

    return call


def rate(found: Any, key: str) -> Any:
    return next(each for each in found["rates"] if each["rate"] == key)


class TestDecisions:
    """Worse, not worse, undecided."""

    def test_a_higher_failure_rate_fails_and_names_the_runs(self, gate, fill) -> None:
        fill("main", {FAILURE: 5, SUCCESS: 45})
        ids = fill("feature", {FAILURE: 20, SUCCESS: 20})
        status, found = gate()
        assert (status, found["status"]) == (1, "worse")
        failures = rate(found, "failures")
        assert failures["finding"] == "worse"
        assert failures["p_corrected"] < 0.01
        assert set(failures["examples"]) < set(ids)

    def test_an_equal_rate_passes_and_says_what_would_have_been_noticed(self, compare) -> None:
        status, found = compare({FAILURE: 10, SUCCESS: 90}, {FAILURE: 5, SUCCESS: 45})
        assert (status, found["status"]) == (0, "not worse")
        failures = rate(found, "failures")
        assert 0.15 < failures["noticed_from"] < 0.5
        assert failures["needed_new_runs"] > 50

    def test_a_better_rate_passes(self, compare) -> None:
        assert compare({FAILURE: 50, SUCCESS: 50}, {SUCCESS: 50})[0] == 0

    def test_a_mode_that_became_frequent_fails_though_failures_did_not(self, compare, gate) -> None:
        status, found = compare(
            {FAILURE: 30, SUCCESS: 30}, {FAILURE: 30, SUCCESS: 30}, modes=["1.3"]
        )
        assert status == 1
        assert rate(found, "1.3")["finding"] == "worse"
        assert rate(found, "failures")["finding"] == "not worse"
        assert gate("--compare", "failures")[0] == 0
        assert gate("--mode", "2.1")[0] == 0

    def test_the_window_before_is_a_baseline_too(self, gate, fill) -> None:
        fill("1", {FAILURE: 2, SUCCESS: 48}, minutes=180)
        fill("1", {FAILURE: 25, SUCCESS: 25}, minutes=10)
        fill("1", {FAILURE: 50}, minutes=60 * 24 * 9)  # before the window
        status, found = gate(version="7d")
        assert status == 1
        assert rate(found, "failures")["baseline"] == {"shown": 2, "of": 50}

    def test_a_branch_and_a_version_that_looks_like_an_age_are_names(self, gate, fill) -> None:
        fill("7d", {FAILURE: 5, SUCCESS: 45}, branch="main")
        fill("8", {FAILURE: 25, SUCCESS: 25}, branch="other")
        assert gate(version="version:7d")[0] == 1
        assert gate(version="main")[0] == 1
        assert gate("--version", "other", version="main")[0] == 1
        assert gate("--version", "nobody", version="main")[0] == 3

    def test_runs_of_the_baseline_from_now_are_no_new_ones(self, gate, fill) -> None:
        fill("main", {FAILURE: 5, SUCCESS: 45}, minutes=5)
        status, found = gate()
        assert status == 3
        assert found["new"]["runs"] == 0


class TestNothingToDecide:
    """A gate that could not have failed does not pass."""

    def test_an_empty_store(self, gate) -> None:
        status, found = gate()
        assert (status, found["status"]) == (3, "undecided")
        assert found["reasons"] == ["there are no new runs"]

    def test_nothing_was_judged(self, compare) -> None:
        status, found = compare({FAILURE: 5, SUCCESS: 45}, {FAILURE: 1, SUCCESS: 20}, judged=False)
        assert status == 3
        assert "none of the 21 new runs was judged" in found["reasons"][0]
        assert found["new"]["states"] == {"waiting": 21}

    def test_a_version_that_does_not_exist_is_named_with_those_that_do(self, gate, fill) -> None:
        fill("main", {FAILURE: 5, SUCCESS: 45})
        fill("feature", {SUCCESS: 20})
        status, found = gate(version="mainn")
        assert status == 3
        assert "the baseline has no runs" in found["reasons"]
        assert any("mainn; those that are named: main, feature" in note for note in found["notes"])

    def test_one_run_cannot_pass_beside_a_poor_baseline(self, compare) -> None:
        """Even its failure would show nothing."""
        status, found = compare({FAILURE: 5, SUCCESS: 15}, {SUCCESS: 1})
        assert status == 3
        assert rate(found, "failures")["finding"] == "too few"
        assert "even if every new run had failed" in found["reasons"][0]

    def test_no_outcome_is_no_failure_rate(self, compare, gate) -> None:
        status, found = compare({FAILURE: 5, SUCCESS: 45}, {"": 40})
        assert status == 3
        assert "no outcome is known of the new runs" in found["reasons"][0]
        assert found["new"]["without_outcome"] == 40
        assert gate("--compare", "modes")[0] == 0

    def test_verdicts_of_another_judge_count_in_no_rate(self, compare) -> None:
        half = {FAILURE: 40, SUCCESS: 40}
        status, found = compare(half, half, judges=("old", "new"), modes=["1.3"])
        assert (status, found["baseline"]["other_judge"]) == (0, 80)
        assert rate(found, "1.3")["finding"] == "not compared"
        assert rate(found, "failures")["finding"] == "not worse"  # outcomes are recorded
        assert any("another version of the judge" in note for note in found["notes"])

    def test_an_outcome_that_another_judge_found_counts_in_no_rate(self, compare) -> None:
        judges = ("old", "new")
        status, found = compare({SUCCESS: 80}, {FAILURE: 40}, judges=judges, recorded=False)
        assert status == 3
        assert rate(found, "failures")["finding"] == "not compared"

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--mode", "9.9"],
            ["--since", "yesterday"],
            ["--since", "2999-01-01"],
            ["--baseline", ""],
            ["--baseline", "version:"],
            ["--version", "main"],
            ["--junit", "/nowhere/at/all.xml"],
        ],
    )
    def test_misuse_is_neither(self, gate, address: str, arguments: list[str]) -> None:
        assert run(["check", "--baseline", "main", *arguments, "--url", address]) == 2

    @pytest.mark.parametrize("place", ["away", "folder", "unmade"])
    def test_no_store_is_told_from_a_worse_rate(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
    ) -> None:
        """A database that does not answer, a folder without one, and one without tables: no comparison."""
        # A folder that is not empty gets no copy of the tables.
        (tmp_path / "unmade" / "tmp").mkdir(parents=True)
        given = {
            "away": ["--url", "http://me:secret@127.0.0.1:1/x"],
            "folder": ["--data-dir", str(tmp_path / "none")],
            "unmade": ["--url", f"chdb://{tmp_path / 'unmade'}"],
        }[place]
        files = tmp_path / "report.xml", tmp_path / "report.md"
        reports = ["--junit", str(files[0]), "--markdown", str(files[1])]
        assert run(["check", "--baseline", "main", *reports, *given]) == 3
        captured = capsys.readouterr()
        assert captured.err.startswith("mast-trace: ")
        texts = [file.read_text("utf-8") for file in files]
        suite = ET.fromstring(texts[0]).find("testsuite")
        assert suite is not None
        assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
        error = suite.find("testcase/error")
        assert error is not None
        assert f"mast-trace: {error.get('message')}" == captured.err.strip()
        assert "Nothing was compared" in texts[1]
        assert "secret" not in captured.err + "".join(texts)


class TestReports:
    """Reports for machines and for people."""

    @pytest.fixture
    def files(self, gate, fill, tmp_path: Path) -> tuple[Path, Path]:
        fill(HOSTILE, {FAILURE: 1, SUCCESS: 40}, service=HOSTILE)
        fill("x", {FAILURE: 20, SUCCESS: 20}, service=f"{HOSTILE}2")
        junit, markdown = tmp_path / "report.xml", tmp_path / "report.md"
        arguments = ["--junit", str(junit), "--markdown", str(markdown)]
        assert gate(*arguments, "--since", "1h", version="none")[0] == 3
        return junit, markdown

    def test_hostile_names_are_text_in_junit(self, files: tuple[Path, Path]) -> None:
        root = ET.fromstring(files[0].read_text("utf-8"))
        suite = root.find("testsuite")
        assert suite is not None
        assert (suite.get("tests"), suite.get("errors")) == ("16", "1")
        said = suite.findtext("system-out") or ""
        assert "<script>alert(1)</script>" in said
        assert not {"\x1b", "\x00", "\ufffe"} & set(said)

    def test_hostile_names_are_text_in_markdown(self, files: tuple[Path, Path]) -> None:
        text = files[1].read_text("utf-8")
        html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
        for text in ("<script", "<code>", "<em>", "href"):
            assert text not in html
        assert "@all" not in text
        assert html.count("<tr>") == 2  # the head, and the failed runs
        assert not {"\x1b", "\x00", "\u202e"} & set(text)

    def test_a_worse_rate_is_a_failed_test_case(self, gate, fill, tmp_path: Path) -> None:
        fill("main", {FAILURE: 5, SUCCESS: 45})
        fill("feature", {FAILURE: 20, SUCCESS: 20})
        path = tmp_path / "report.xml"
        assert gate("--junit", str(path))[0] == 1
        failed = [
            case.get("name")
            for case in ET.fromstring(path.read_text("utf-8")).iter("testcase")
            if case.find("failure") is not None
        ]
        assert failed == ["failed runs"]

    def test_people_read_it_in_a_terminal(
        self, fill, address: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fill("main", {FAILURE: 5, SUCCESS: 45})
        fill("feature", {FAILURE: 20, SUCCESS: 20, "": 3}, service="eve\x1b[2J")
        fill("feature", {SUCCESS: 2}, judged=False)
        assert run(["check", "--baseline", "main", "--url", address]) == 1
        out = capsys.readouterr().out
        assert "45, of which 43 are judged (2 wait for the judge); 3 have no known outcome" in out
        assert "10% (5 of 50)" in out
        assert "WORSE" in out
        assert "\x1b" not in out


def test_ten_thousand_runs_take_seconds(gate, fill) -> None:
    fill("main", {FAILURE: 500, SUCCESS: 4500})
    fill("feature", {FAILURE: 600, SUCCESS: 4400})
    begin = time.monotonic()
    status, found = gate()
    assert time.monotonic() - begin < 20
    assert status == 1
    assert rate(found, "failures")["new"] == {"shown": 600, "of": 5000}


def test_a_run_that_is_judged_anew_counts_once(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        runs = store_runs(store, "1", {FAILURE: 2}, judge="judge-1")
        judge_runs(store, dict.fromkeys(runs, FAILURE), (), "judge-2")
        (row,) = QUERIES["run_counts"].run(store)
        assert (row["Runs"], row["JudgeVersion"]) == (2, "judge-2")
