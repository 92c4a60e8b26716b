"""A skipped test that its session does not expect fails the run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import skips
from skips import Expected, Skip, expected_in, unexpected

HERE = Path(__file__).parent
ROWS = [Expected("tests/a/", "needs A", 2), Expected("tests/", "needs sh", 1, without="sh")]


def test_what_is_listed_is_expected_so_often_and_not_oftener() -> None:
    skip = Skip("tests/a/test_x.py::test_y", "needs A; it is far away")
    assert unexpected([skip] * 2, ROWS) == []
    assert unexpected([skip] * 3, ROWS) == ["tests/a/: 3 skipped, 2 expected: needs A"]


@pytest.mark.parametrize(
    "skip",
    [
        Skip("tests/b/test_x.py", "needs A"),
        Skip("tests/a/test_x.py", "this needs A"),
        Skip("tests/a/test_x.py", "needs sh"),  # `sh` is installed
    ],
)
def test_what_is_not_listed_is_unexpected(skip: Skip) -> None:
    assert unexpected([skip], ROWS) == [f"{skip.place}: {skip.reason}"]


@pytest.mark.parametrize(
    ("session", "kind", "workers"),
    [("tests", "test", ()), ("tests", "module", ("-n2",)), ("", "test", ())],
    ids=["alone", "beside others", "outside of nox"],
)
def test_such_a_run_fails(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    session: str,
    kind: str,
    workers: tuple[str, ...],
) -> None:
    """In a real run of pytest, by a mark or for a whole file, in one process or several."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("MAST_TRACE_TEST_SESSION", session)
    pytester.makeconftest(
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import skips; pytest_configure = skips.register"
    )
    skip = {
        "test": "@pytest.mark.skip(reason='no mood')\ndef test_b(): pass",
        "module": "pytest.skip('no mood', allow_module_level=True)",
    }[kind]
    pytester.makepyfile(test_one="def test_a(): pass", test_two=f"import pytest\n{skip}")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *workers)
    fails = bool(session)
    assert result.ret == (1 if fails else 0)
    assert ("no mood" in result.stdout.str().partition("not expected in session")[2]) is fails


def test_every_session_with_rows_exists() -> None:
    """A list for an environment that is gone would be read by nobody."""
    environments = {f"framework({p.stem})" for p in (HERE / "environments").glob("*.txt")}
    engines = {f"clickhouse({p.stem})" for p in (HERE / "clickhouse_versions").glob("*.txt")}
    sessions = environments | engines | {"tests"}
    text = skips.EXPECTED.read_text("utf-8")
    for name in re.findall(r'^\[\["?([^"\]]+)"?\]\]$', text, re.MULTILINE):
        begins = name.endswith("*") and any(each.startswith(name[:-1]) for each in sessions)
        assert begins or name in sessions, name
    assert expected_in("tests")


def test_every_place_that_a_session_names_exists() -> None:
    """A file that was renamed would leave a session without any test."""
    named = re.findall(r'"(?:--ignore=)?(tests/[^"*{]+)"', (HERE.parent / "noxfile.py").read_text())
    assert len(named) > 10
    assert [place for place in named if not (HERE.parent / place).exists()] == []


def test_no_environment_may_skip_for_want_of_its_own_framework() -> None:
    """Its tests would not run at all."""
    wanted = {"ag2": "AG2", "autogen": "AG2 classic", "crewai": "CrewAI", "metagpt": "MetaGPT"}
    for stem in (path.stem for path in (HERE / "environments").glob("*.txt")):
        name = stem.split("-")[0]
        if name in wanted:
            skip = Skip(f"tests/instrumentations/{name}/test_x.py", f"needs {wanted[name]}")
            assert unexpected([skip], expected_in(f"framework({stem})"))
