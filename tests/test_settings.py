"""Every setting does something: some module that knows its class reads it."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from settings_classes import CLASSES

import mast_trace
from mast_trace import environment
from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.settings import ProcessSettings
from mast_trace_judge.config import WorkerConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent.parent
PACKAGES = ("collector", "judge", "dashboards", "lab")


def modules() -> Iterator[ast.Module]:
    for package in PACKAGES:
        for path in (HERE / package).rglob("*.py"):
            yield ast.parse(path.read_text("utf-8"))


def read_with(config: type[ProcessSettings]) -> set[str]:
    """Attributes that are read in modules in which the class is named."""
    found: set[str] = set()
    for module in modules():
        nodes = list(ast.walk(module))
        imported = {
            alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        defined = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
        if config.__name__ in imported | defined:
            found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return found


@pytest.mark.parametrize("config", CLASSES, ids=lambda config: config.__name__)
def test_every_setting_is_read(config: type[ProcessSettings]) -> None:
    assert set(config.model_fields) - read_with(config) == set()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HTTP_PORT", "abc", "it must be a whole number"),
        ("RUN_IDLE_SECONDS", "-1", "it must be greater than 0"),
        ("JUDGE_PRICES", "x", "it must be JSON"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    """Not in pydantic's."""
    variable = environment.PREFIX + name
    monkeypatch.setenv(variable, value)
    config = next(each for each in CLASSES if name.lower() in each.model_fields)
    with pytest.raises(ConfigurationError, match=rf"{variable}.*: {said}$"):
        config.load()


def test_every_setting_is_documented() -> None:
    fields = [field for each in CLASSES for field in each.model_fields.items()]
    assert [name for name, field in fields if not field.description] == []


def test_no_class_of_settings_is_left_out() -> None:
    assert {each.__name__ for each in ProcessSettings.__subclasses__()} == {
        each.__name__ for each in CLASSES
    }


def test_what_has_moved_is_where_it_moved_to() -> None:
    for config in CLASSES:
        for name in config.moved:
            assert name not in config.model_fields
            new = [each for each in CLASSES if name in each.model_fields]
            assert [each.fallback_table for each in new] == [config.table]


@pytest.mark.parametrize("table", ["collector", "worker"])
def test_the_end_of_a_run_is_said_once_for_collector_and_worker(tmp_path: Path, table: str) -> None:
    """Both have settings of that; a file that names one under either table means one thing."""
    path = tmp_path / "mast-trace.toml"
    path.write_text(f"[{table}]\nrun_quiet_seconds = 60\nrun_idle_seconds = 1200\n")
    worker = WorkerConfig.load(path)
    assert (worker.run_quiet_seconds, worker.run_idle_seconds) == (60, 1200)
    assert CollectorConfig.load(path).run_idle_seconds == 1200


def test_a_table_of_its_own_counts_first(tmp_path: Path) -> None:
    path = tmp_path / "mast-trace.toml"
    path.write_text("[collector]\nrun_idle_seconds = 1\n[worker]\nrun_idle_seconds = 2\n")
    assert CollectorConfig.load(path).run_idle_seconds == 1
    assert WorkerConfig.load(path).run_idle_seconds == 2


def test_the_sdk_knows_the_variable_of_every_setting() -> None:
    """A judge's setting in an agent's environment is no misspelt one."""
    names = sorted({name.upper() for each in CLASSES for name in each.model_fields})
    file = HERE / "sdk" / "mast_trace" / "environment.py"
    text = file.read_text("utf-8")
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        rows = "\n".join(f'    "{name}",' for name in names)
        text = re.sub(
            r"^NAMES: Final = \(.*?\)$",
            f"NAMES: Final = (\n{rows}\n)",
            text,
            flags=re.MULTILINE | re.DOTALL,
        )
        file.write_text(text, "utf-8")
    assert [name for name in names if f'    "{name}",\n' not in text] == []
    assert len(environment.NAMES) == len(names)


def recorded() -> None:
    mast_trace.instrument(frameworks=[])
    mast_trace.uninstrument()


@pytest.mark.parametrize("read", [recorded, CollectorConfig.load], ids=["program", "command"])
def test_a_misspelt_variable_is_told_once(
    read: Callable[[], object], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(environment, "_warned", set())
    for name in ("JUDGE_MODLE", "JUDGE_MODEL", "TEST_SEED", "FEEDBACK_KEY", "QQQ"):
        monkeypatch.setenv(environment.PREFIX + name, "x")
    for _ in range(2):
        read()
    assert [record.args for record in caplog.records] == [
        ("MAST_TRACE_JUDGE_MODLE", " Did you mean MAST_TRACE_JUDGE_MODEL?"),
        ("MAST_TRACE_QQQ", ""),
    ]
