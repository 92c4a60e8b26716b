"""The configuration of the worker that confirms: unknown keys and unusable values are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_lab.confirm.work import WorkConfig, load_work_config

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
[judge]
judge_layers = "rules"
[confirm]
max_calls_per_day = 100
[programs."demo/x"]
command = "python team.py"
"""


def read(folder: Path, text: str) -> WorkConfig:
    file = folder / "mast-trace.toml"
    file.write_text(text, "utf-8")
    file.chmod(0o600)
    return load_work_config(file)


def test_a_whole_file(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD.replace("= 100", "= 100\nmax_usd_per_day = 2.5"))
    assert (found.max_calls_per_day, found.max_usd_per_day) == (100, 2.5)
    assert found.programs["demo/x"].command == ("python", "team.py")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs [programs.NAME] and [confirm]"),
        (GOOD.replace("[confirm]", "[other]"), "needs [programs.NAME] and [confirm]"),
        (
            GOOD.replace("max_calls", "most_calls"),
            "confirm.most_calls_per_day: there is no such key",
        ),
        (GOOD.replace("100", "0"), "confirm.max_calls_per_day"),
        (GOOD + "timeout = -1", "programs.demo/x.timeout"),
        ("[", "cannot be read as TOML"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        read(tmp_path, text)
    assert said in str(refusal.value)


def test_a_worker_needs_a_file() -> None:
    with pytest.raises(ConfigurationError, match="name your programs"):
        load_work_config(None)
