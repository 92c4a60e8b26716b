"""Every code block of the documents is checked according to its language, and programs are run."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
from contextlib import nullcontext
from importlib.metadata import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from code_blocks import PAGES, ROOT, Block, blocks_of, obliging, run
from command_lines import named_in, understand_mention
from replays import NOWHERE, record
from scripted_llm import ScriptedLLM
from settings_classes import BY_TABLE, CLASSES
from stores import new_store
from toml_files import tomllib

import mast_trace
from mast_trace.environment import OTHERS, PREFIX
from mast_trace.exceptions import StorageError
from mast_trace.trajectory import to_dict
from mast_trace_dashboards.programs import program_of
from mast_trace_lab.confirm.work import WorkConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace_collector.storage import Store

pytestmark = pytest.mark.documents

DOCUMENTS = sorted(
    [
        *PAGES.rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    ]
)
BLOCKS = [block for document in DOCUMENTS for block in blocks_of(document)]
# Languages that are shown and not run: drawings, outputs, changes (tests/test_recipes.py), directives of the site.
SHOWN = {"text", "diff", "http", "promql", "{toctree}", "{eval-rst}", "{figure}", "{note}"}
READ = {"python", "sh", "console", "toml", "sql", "json", "yaml"}
# Frameworks that are not in the environment of these tests; their own tests run their blocks.
ELSEWHERE = {"autogen", "crewai", "metagpt", "anthropic", "google", "litellm", "mcp"}
OF_READERS = {"clerk"}
"""Modules that other blocks show."""
COMMAND = re.compile(r"(?:^|(?<=[ (]))mast-trace (?!up\s*&)[^&;#\n]+", re.MULTILINE)
VARIABLE = re.compile(r"\bMAST_TRACE_[A-Z_]+\b")
# Read by commands' options, by traced and by replayed programs, by tests, by Grafana's data source, and by the files of examples/production.
OTHER_VARIABLES = {f"{PREFIX}{name}" for name in OTHERS} | {"MAST_TRACE_TEST_CLICKHOUSE"}
# The servers of the production files read these from their environment.
OTHER_VARIABLES |= {
    name
    for file in sorted((ROOT / "examples" / "production").rglob("*.xml"))
    for name in VARIABLE.findall(file.read_text("utf-8"))
}


def of(*languages: str) -> list[Any]:
    return [pytest.param(block, id=block.place) for block in BLOCKS if block.language in languages]


def test_every_block_says_what_it_is() -> None:
    """Every block has a known language; these tests would skip one without."""
    unknown = {each.place: each.language for each in BLOCKS if each.language not in SHOWN | READ}
    assert unknown == {}


@pytest.mark.parametrize("block", of("python"))
def test_python_can_be_compiled_and_its_names_exist(block: Block) -> None:
    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                module_of(each.name)
        elif isinstance(node, ast.ImportFrom):
            module = module_of(node.module or "")
            for each in node.names:
                assert module is None or has(module, each.name), f"{node.module}.{each.name}"
        elif isinstance(node, ast.Attribute) and is_name(node.value, "mast_trace"):
            assert hasattr(mast_trace, node.attr), f"mast_trace.{node.attr}"
        if isinstance(node, ast.Call) and calls_us(node.func):
            takes(getattr(mast_trace, node.func.attr), node)


def module_of(name: str) -> Any:
    """Import a module; None for one of a framework that is tested elsewhere, or of a reader's."""
    try:
        return importlib.import_module(name)
    except ImportError:
        top = name.partition(".")[0]
        assert top in ELSEWHERE | OF_READERS, name
        return None


def has(module: Any, name: str) -> bool:
    return hasattr(module, name) or find_spec(f"{module.__name__}.{name}") is not None


def calls_us(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and is_name(function.value, "mast_trace")


def is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def takes(function: Any, call: ast.Call) -> None:
    """Assert that a call's arguments match a function's signature."""
    if any(isinstance(each, ast.Starred) for each in call.args):
        return
    named = {each.arg: None for each in call.keywords if each.arg}
    # The overloads of `run`, `agent` and `tool` are for type checkers; the implementation is checked.
    inspect.signature(function).bind(*([None] * len(call.args)), **named)


@pytest.mark.parametrize("block", [each for each in of("python") if "run" in each.values[0].words])
def test_programs_run_and_are_recorded(block: Block, tmp_path: Path) -> None:
    """Programs run against a scripted model; those of other frameworks are run by the tests of these."""
    if block.framework:
        folder = ROOT / "tests" / "instrumentations" / block.framework
        page = block.place.partition(":")[0].removeprefix("docs/")
        assert any(page in each.read_text("utf-8") for each in folder.glob("test_*.py")), page
        return
    ran = run(block, tmp_path)
    if "unrecorded" not in block.words:
        assert ran.spans, ran.errors


@pytest.mark.parametrize(
    "block", [each for each in of("python") if "pytest" in each.values[0].words]
)
def test_tests_pass(block: Block, tmp_path: Path) -> None:
    ran = run(block, tmp_path, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert " passed" in ran.output


def test_a_recorded_program_is_replayed(tmp_path: Path) -> None:
    """The program marked ``clerk`` is recorded with a model, and the one marked ``replay`` answers it without."""
    shown = {word: each for each in BLOCKS for word in each.words if word in {"clerk", "replay"}}
    program = tmp_path / "clerk.py"
    program.write_text(shown["clerk"].text, "utf-8")
    with ScriptedLLM(obliging) as model, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", model.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        made = record(program, folder=tmp_path, keep="OPENAI_")
    line = json.dumps({"trace_id": made.trace_id, "trajectory": to_dict(made)})
    (tmp_path / "kettle.jsonl").write_text(line, "utf-8")
    ran = run(shown["replay"], tmp_path, OPENAI_BASE_URL=NOWHERE)
    said = "1 model calls answered, 2 steps the same: The kettle of order 4711 costs 59 EUR."
    assert said in ran.output
    assert ran.spans == []


@pytest.mark.parametrize("block", of("sh", "console"))
def test_commands_exist(block: Block) -> None:
    text = block.text.replace("\\\n", " ")
    if block.language == "console":
        text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
    for names in re.findall(r"(?:mast-trace|'\.)\[([\w,]+)\]", text):
        assert set(names.split(",")) <= set(metadata("mast-trace").get_all("Provides-Extra") or ())
    for command in COMMAND.findall(text):
        read(command)
    unknown_variables(block.text)


def read(command: str) -> None:
    """Parse a command line that a document shows; `|` separates choices, `[...]` is optional."""
    command = re.split(r" (?:\|\|?|>) ", command)[0]
    command = re.sub(r"\\?\|\S+|[\[\]]|\.\.\.", "", command)
    # Typer executes these options while it parses.
    if not {"--install-completion", "--version", "--help"} & set(command.split()):
        understand_mention(command)


def unknown_variables(text: str) -> None:
    """Assert that each variable of mast-trace that a text names belongs to a setting."""
    settings = {field.upper() for each in CLASSES for field in each.model_fields}
    named = {name for name in VARIABLE.findall(text) if not name.endswith("_")}
    unknown = {name for name in named if name.removeprefix("MAST_TRACE_") not in settings}
    assert unknown <= OTHER_VARIABLES


@pytest.mark.parametrize("block", of("toml"))
def test_settings_of_toml_exist(block: Block) -> None:
    """Tables of mast-trace hold only known settings; those of other programs are parsed only."""
    text = tomllib.loads(block.text)
    programs = text.pop("programs", {})
    found = {name: program_of(programs, [name]) for name in programs}
    if "confirm" in text:
        WorkConfig.model_validate({**text.pop("confirm"), "programs": found})
    for config in BY_TABLE.values():
        for name in config.arrays.keys() & text.keys():
            config(**{config.arrays[name]: text.pop(name)})
    for table in text.keys() & BY_TABLE.keys():
        known = BY_TABLE[table].model_fields.keys() | BY_TABLE[table].moved
        assert text[table].keys() <= known, table
    assert text.keys() <= BY_TABLE.keys() | {"tool", "project", "dependency-groups"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An empty store with all tables."""
    with new_store(tmp_path_factory.mktemp("store") / "db") as opened:
        yield opened


@pytest.mark.parametrize("block", of("sql"))
def test_sql_is_answered(block: Block, store: Store) -> None:
    """A restoration is understood, and finds no backup here; tests of its steps make one."""
    for statement in filter(str.strip, block.text.split(";\n")):
        restores = statement.lstrip().startswith("RESTORE ")
        with pytest.raises(StorageError, match="BACKUP_NOT_FOUND") if restores else nullcontext():
            store.query(statement.strip().rstrip(";"))


def test_json_and_yaml_can_be_read() -> None:
    for block in BLOCKS:
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "yaml":
            assert list(yaml.safe_load_all(block.text)), block.place


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_variables_in_the_text_exist(document: Path) -> None:
    """Commands in backquotes exist; their arguments may be missing in running text."""
    text = document.read_text("utf-8")
    for line in named_in(text):
        read(line)
    if document.name != "recipes.md":  # its changes add a variable
        unknown_variables(text)
