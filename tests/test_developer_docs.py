"""The documents for developers name files and names that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mast_trace_dashboards.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent.parent
TOUR = HERE / "docs" / "develop" / "tour.md"
DOCUMENTS = [
    TOUR,
    HERE / "docs" / "develop" / "recipes.md",
    HERE / "ARCHITECTURE.md",
    HERE / "CONTRIBUTING.md",
]
PACKAGES = ("sdk", "instrumentations", "collector", "judge", "dashboards", "lab")
PATH = re.compile(
    r"`((?:sdk|instrumentations|collector|judge|dashboards|tests|docs|benchmarks)/[^`\s*{}]+)`"
)
PLACE = re.compile(r"\(`([\w/]+\.py)`,\s+`([\w.]+)`\)")
NAME = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)?)`\s+\(`([\w/]+\.py)`")


def names_in(module: Path) -> Iterator[str]:
    """The functions, classes, methods and constants of a module."""
    for node in ast.parse(module.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield node.name
            methods = (each for each in node.body if hasattr(each, "name"))
            yield from (f"{node.name}.{method.name}" for method in methods)
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_exists(document: Path) -> None:
    """Those that begin with a top-level folder; recipes name what a reader makes as NAME."""
    found = [path for path in PATH.findall(document.read_text("utf-8")) if "NAME" not in path]
    assert found
    assert [path for path in found if not (HERE / path).exists()] == []


def test_every_name_of_the_tour_stands_in_its_file() -> None:
    """Both spellings: `Name` (`file`), and (`file`, `Name`)."""
    text = TOUR.read_text("utf-8")
    told = [(name, path) for path, name in PLACE.findall(text)] + NAME.findall(text)
    assert len(told) > 20
    assert [(name, path) for name, path in told if name not in set(names_in(HERE / path))] == []


def test_every_command_that_a_text_of_the_product_names_exists() -> None:
    """Advice that cannot be typed is none."""
    texts = [*HERE.glob("*/mast_trace_*/**/*.py"), *HERE.glob("*/mast_trace_*/**/*.html")]
    assert texts
    named = {
        (command, path.name)
        for path in texts
        for command in re.findall(r"`mast-trace ([a-z][a-z-]*)", path.read_text(encoding="utf-8"))
    }
    assert {command for command, _ in named} >= {"show", "up"}
    assert [each for each in sorted(named) if each[0] not in COMMANDS] == []
