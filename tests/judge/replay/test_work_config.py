"""The configuration of the worker that confirms: unknown keys and unusable values are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_lab.confirm.work_config import WorkConfig, load_work_config
from mast_trace_lab.program.setup import setup_of

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
max_calls_per_day = 100
[services.invoices]
command = ["python", "team.py"]
"""


def read(folder: Path, text: str) -> WorkConfig:
    file = folder / "confirm.toml"
    file.write_text(text, "utf-8")
    file.chmod(0o600)
    return load_work_config(file)


def test_a_whole_file(tmp_path: Path) -> None:
    read_back = read(
        tmp_path,
        """
        max_calls_per_day = 100
        max_usd_per_day = 2.5
        poll_seconds = 5
        [prices."gpt-5-mini"]
        input = 0.25
        output = 2
        [services."demo/x"]
        command = ["python", "team.py"]
        oracle = ["python", "check.py"]
        reset = ["./reset.sh"]
        timeout = 30
        preload = ["openai", "team.tools"]
        """,
    )
    service = read_back.services["demo/x"]
    assert (service.command, service.oracle) == (("python", "team.py"), ("python", "check.py"))
    assert (service.reset, service.timeout, service.oracle_timeout) == (("./reset.sh",), 30, 60)
    assert service.preload == ("openai", "team.tools")
    assert read_back.prices["gpt-5-mini"].output == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "services"),
        (GOOD + 'orakle = ["x"]', "services.invoices.orakle: there is no such key"),
        ("max_calls = 3\n" + GOOD, "max_calls: there is no such key"),
        (GOOD.replace('["python", "team.py"]', '"python team.py"'), "services.invoices.command"),
        (GOOD.replace('["python", "team.py"]', "[]"), "services.invoices.command"),
        (GOOD.replace('"python"', '""'), "services.invoices.command"),
        (GOOD.replace("100", "0"), "max_calls_per_day"),
        ("max_usd_per_day = 1\n" + GOOD, "needs [prices]"),
        (GOOD + "max_usd = 1", "needs [prices]"),
        (GOOD + "timeout = -1", "services.invoices.timeout"),
        (GOOD + 'preload = "openai"', "services.invoices.preload"),
        (GOOD.replace("max_calls_per_day = 100", ""), "max_calls_per_day"),
        ("[", "cannot be read as TOML"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        read(tmp_path, text)
    assert said in str(refusal.value)
    assert "confirm.toml" in str(refusal.value)


def test_a_file_that_everyone_can_change_is_refused(tmp_path: Path) -> None:
    """Commands from such a file would be anybody's."""
    file = tmp_path / "confirm.toml"
    file.write_text(GOOD)
    file.chmod(0o666)
    with pytest.raises(ConfigurationError, match="chmod o-w"):
        load_work_config(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_work_config(tmp_path / "none.toml")


def test_a_table_becomes_the_setup_of_the_options(tmp_path: Path) -> None:
    more = """
    oracle = ["python", "check it.py"]
    reset = ["./reset.sh"]
    live_tools = ["all"]
    allow_hosts = ["127.0.0.1"]
    """
    given = setup_of(
        ["python", "team.py"],
        oracle="python 'check it.py'",
        reset="./reset.sh",
        live_tools=["all"],
        hosts=["127.0.0.1"],
    )
    assert read(tmp_path, GOOD + more).services["invoices"].setup() == given
    assert given.live_tools == ("*",)
    with pytest.raises(ConfigurationError, match="--reset needs a command"):
        setup_of(["python", "team.py"], reset="")
