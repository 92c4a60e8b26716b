"""Every setting does something: some module that knows its class reads it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.settings import ProcessSettings
from mast_trace_dashboards.alerts.config import AlertConfig
from mast_trace_dashboards.local.config import UpConfig
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.config import JudgeConfig, WorkerConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent.parent
PACKAGES = ("collector", "judge", "dashboards")
CLASSES: list[type[ProcessSettings]] = [
    CollectorConfig,
    JudgeConfig,
    WorkerConfig,
    AlertConfig,
    UpConfig,
    WebConfig,
]


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


def test_no_class_of_settings_is_left_out() -> None:
    assert {each.__name__ for each in ProcessSettings.__subclasses__()} == {
        each.__name__ for each in CLASSES
    }


def test_what_has_moved_is_where_it_moved_to() -> None:
    tables = {config.table: config for config in CLASSES}
    for config in CLASSES:
        for name, table in config.misplaced.items():
            assert name not in config.model_fields
            assert name in tables[table].model_fields
