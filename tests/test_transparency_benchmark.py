"""The comparison of suites tells a real difference from a flaky test, and sees spans that never end."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "transparency"
TESTS = """
import os
from pathlib import Path

import mast_trace
from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

RECORDED = os.environ["TRANSPARENCY_TRACED"] == "1"

def test_the_same():
    with mast_trace.run("a", input="b"):
        pass

def test_fails_when_recorded():
    assert not RECORDED

def test_fails_at_first():
    seen = Path("seen")
    first = RECORDED and not seen.exists()
    if RECORDED:
        seen.touch()
    assert not first

def test_leaves_a_span_open():
    global left
    left = mast_trace.run("left", input="open")
    left.__enter__()

def test_fails_both_ways():
    raise AssertionError
"""


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch):
    """The modules of the benchmark, importable as its script imports them."""
    for folder in (BENCHMARK.parent, BENCHMARK):
        monkeypatch.syspath_prepend(str(folder))
    import compare
    import suites

    yield compare, suites
    for name in ("compare", "suites", "environments"):
        sys.modules.pop(name, None)


def suite_in(folder: Path, suites, tests: str):
    """A suite that lies in a folder already and runs in this environment."""
    (folder / "test_suite.py").write_text(tests)

    class Here(suites.Suite):
        def python(self) -> Path:
            return Path(sys.executable)

        def source(self) -> Path:
            return folder

    return Here("invented", "invented==1", tests=["test_suite.py"])


def test_a_difference_is_told_from_a_flaky_test(benchmark, tmp_path: Path) -> None:
    pytest.importorskip("langgraph.graph")
    compare, suites = benchmark
    found = compare.compare(suite_in(tmp_path, suites, TESTS))
    assert found.tests == 5
    assert (found.passed_without, found.passed_with) == (4, 2)
    assert found.confirmed == {
        "test_suite.py::test_fails_when_recorded": "passed, with mast-trace failed"
    }
    assert found.flaky == ["test_suite.py::test_fails_at_first"]
    assert found.spans == 2
    assert list(found.never_ended.values()) == [1]
    assert found.never_ended_in == ["test_suite.py::test_leaves_a_span_open"]


def test_a_suite_that_records_nothing_says_nothing(benchmark, tmp_path: Path) -> None:
    compare, suites = benchmark
    with pytest.raises(compare.SuiteError, match="nothing was recorded"):
        compare.compare(suite_in(tmp_path, suites, "def test_nothing():\n    pass\n"))


def test_a_suite_that_does_not_run_is_an_error(benchmark, tmp_path: Path) -> None:
    compare, suites = benchmark
    with pytest.raises(compare.SuiteError):
        compare.compare(suite_in(tmp_path, suites, "import os\nos._exit(3)\n"))


def test_a_file_that_cannot_be_imported_hides_no_other(benchmark, tmp_path: Path) -> None:
    pytest.importorskip("langgraph.graph")
    compare, suites = benchmark
    suite = suite_in(tmp_path, suites, TESTS)
    (tmp_path / "test_broken.py").write_text("import nowhere\n")
    found = compare.compare(replace(suite, tests=["test_broken.py", *suite.tests]))
    assert found.tests == 6
    assert (found.passed_without, found.passed_with) == (4, 2)


def test_a_suite_that_is_interrupted_is_an_error(benchmark, tmp_path: Path) -> None:
    pytest.importorskip("langgraph.graph")
    compare, suites = benchmark
    ends = "\ndef test_ends():\n    import pytest\n    pytest.exit('enough')\n"
    with pytest.raises(compare.SuiteError, match="enough"):
        compare.compare(suite_in(tmp_path, suites, TESTS + ends))


def test_every_suite_is_compared_or_says_why_not(benchmark) -> None:
    _, suites = benchmark
    for suite in suites.suites():
        assert bool(suite.reason) != bool(suite.tests), suite.name
        assert "==" in suite.package
