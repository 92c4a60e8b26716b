"""Command lines that are refused: the status tells misuse from what is not there, and the message names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CLI

UNKNOWN = "no run's id begins with 'ffff'"
STEPS = ("show", "aa01", "--steps")


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        (("show", "ffff"), 1, UNKNOWN),
        (("outcome", "ffff", "success"), 1, UNKNOWN),
        (("judge", "run", "ffff"), 1, UNKNOWN),
        (("outcome", "last", "meh"), 2, "failure"),
        (("show", "AA0"), 2, "aa02"),  # one of several runs
        ((*STEPS, "9"), 2, "steps"),
        ((*STEPS, "5-3"), 2, "steps"),
        ((*STEPS, "x"), 2, "steps"),
        (("show", "aa01", "--steps=-1"), 2, "steps"),
        (("show", "aa01", "--step", "99"), 2, "its steps are 0 to 4"),
        (("show", "aa01", "--step", "1", "--steps", "2"), 2, "--step"),
        (("runs", "--mode", "9.9"), 2, "no failure mode 9.9"),
        (("runs", "--since", "yesterday"), 2, "2h or 7d"),
        (("runs", "--since", "99999999999d"), 2, "no time"),
        (("runs", "--since", "9" * 5000 + "s"), 2, "no time"),
        (("runs", "--since", "0001-01-01T00:00+14:00"), 2, "2h or 7d"),
        (("judge", "run"), 2, "--since, --version or --unscored"),
        (("judge", "run", "last", "--since", "1h"), 2, "name one run"),
        (("judge", "run", "--since", "1h", "--no-save"), 2, "--no-save is for one run"),
        (("retain",), 2, "choose a limit"),
        (("retain", "--size", "much"), 2, "cannot read the size"),
        (("retain", "--days", "-1"), 2, ""),
        (("retain", "--days", "9", "--project", "a"), 2, "days of all projects"),
        (("retain", "--size", "1KB", "--project", "a"), 2, "days of all projects"),
        (("erase", "--yes"), 2, "choose what to erase"),
        (("erase", "aa01", "--user", "ann", "--yes"), 2, "one at a time"),
        (("erase", "--user", "ann", "--before", "1d", "--yes"), 2, "one at a time"),
        (("erase", "--user", "", "--yes"), 2, "an empty value"),
        (("erase", "--project", " ", "--yes"), 2, "an empty value"),
        (("erase", "--attribute", "no-value", "--yes"), 2, "name=value"),
        (("erase", "--before", "yesterday", "--yes"), 2, "cannot read the time"),
        (("erase", "aa", "--yes"), 2, "several runs begin with"),
        (("erase", "--project", "another", "--yes"), 1, "nothing to erase"),
        (("erase", "--before", "1d", "--yes"), 1, "nothing to erase"),
        (("erase", "ee" * 16, "--yes"), 1, "not stored yet"),
        (("import", "--format", "claude", "x"), 2, "name one of mast-trace, otlp"),
        (("import",), 2, "name a file or a folder"),
        (("export", "--out", "/no/such.jsonl"), 2, "such.jsonl: No such file"),
        (("experiment", "e", "--plan", "--baseline", ".95"), 2, "cannot be planned"),
        (("experiment", "e", "--plan", "--arm", "one"), 2, "two or more"),
        (("experiment", "e", "--plan", "--arm", "a", "--arm", "a"), 2, "two or more"),
        (("experiment", "e", "--plan", "--effect", "0"), 2, "cannot be planned"),
        (("experiment", "unplanned"), 2, "--plan"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else None,
)
def test_refused(cli: CLI, line: tuple[str, ...], status: int, said: str) -> None:
    ended, out, err = cli(*line)
    assert (ended, out) == (status, "")
    assert said in err
    assert "Traceback" not in err
