"""Each extra, installed alone, does what it is for.

Quickly: with all else hidden from imports. Thoroughly (`nox -s long`): the wheel in an environment of
its own for each extra.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from invented_records import failure_set
from packaging.requirements import Requirement
from program_runs import run_program
from test_package import make_environment, wheel  # noqa: F401  # a fixture
from test_pythons import normal
from toml_files import tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent.parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = ["grpc", "collector", "judge", "fit", "embedded", "mcp", "all"]
WITH_COMMANDS = EXTRAS[1:]

HIDE = """
import json, sys
hidden = set(json.loads(sys.argv.pop(1)))
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""
EVERY_HELP = """
import typer
from mast_trace_dashboards.cli.app import app, run
def walk(command, words):
    assert run([*words, "--help"]) == 0, words
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        walk(command.get_command(None, name), [*words, name])
walk(typer.main.get_command(app), [])
"""
OVER_GRPC = """
from mast_trace import doctor
assert doctor.main(["--quick"]) == 1
"""
CONFIGURED = """
from mast_trace_dashboards.cli.app import run
assert run(["config"]) == 0
assert run(["dashboards", "export", "dashboards"]) == 0
assert run(["runs", "--url", "http://127.0.0.1:1/db"]) == 1
"""
READ_BY_A_MODEL = """
import mast_trace_judge.llm.layer
from mast_trace_dashboards.cli.app import run
from mast_trace_judge.study.numeric import numpy_module
assert numpy_module().zeros(1) == 0
assert run(["judge", "bench", "--data", "data", "--layers", "rules"]) == 0
assert run(["judge", "fit", "--dataset", "data", "--out", "own.json", "--repeats", "1"]) == 2
"""
FITTED = """
from mast_trace_dashboards.cli.app import run
assert run(["judge", "fit", "--dataset", "data", "--out", "own.json", "--repeats", "1"]) == 0
assert run(["judge", "bench", "--data", "data", "--layers", "rules,local", "--repeats", "1"]) == 0
"""
STORED = """
import os
import clickhouse_cityhash.cityhash, lz4.block
from mast_trace_dashboards.cli.app import run
url = "chdb://" + os.getcwd() + "/db"
assert run(["migrate", "--url", url]) == 0
assert run(["import", "data", "--url", url]) == 0
assert run(["runs", "--url", url]) == 0
"""
ANSWERED = """
import asyncio
from mcp import Client
from mast_trace_collector.storage import Store
from mast_trace_dashboards.mcp_server.server import server_on
async def answered():
    with Store.open("http://127.0.0.1:1/db", connect=False) as store:
        async with Client(server_on(store)) as client:
            return await client.call_tool("list_failure_modes", {})
assert "Step repetition" in asyncio.run(answered()).content[0].text
"""
JOBS = {
    "grpc": [OVER_GRPC],
    "collector": [EVERY_HELP, CONFIGURED],
    "judge": [READ_BY_A_MODEL],
    "fit": [FITTED],
    "embedded": [STORED],
    "mcp": [ANSWERED],
    "all": [EVERY_HELP, CONFIGURED, FITTED, STORED],
}


def ours(extra: str) -> Iterator[str]:
    """Requirements that the project declares with an extra."""
    yield from PROJECT["dependencies"]
    for text in PROJECT["optional-dependencies"][extra]:
        needed = Requirement(text)
        if needed.name == PROJECT["name"]:
            for other in sorted(needed.extras):
                yield from ours(other)
        else:
            yield text


def closure(requirements: Sequence[str]) -> set[str]:
    """Names of all distributions that come with these."""
    found: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        needed = waiting.pop()
        key = (normal(needed.name), frozenset(needed.extras))
        if key in found:
            continue
        found.add(key)
        for text in requires(needed.name) or ():
            below = Requirement(text)
            extras = needed.extras or {""}
            if not below.marker or any(below.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(below)
    return {name for name, _ in found}


def hidden(extra: str) -> list[str]:
    """Modules that an environment with this extra alone lacks."""
    present = closure([text for text in ours(extra) if installable(text)]) | {"mast-trace"}
    return [
        module
        for module, distributions in packages_distributions().items()
        if not present & {normal(each) for each in distributions}
    ]


def installable(text: str) -> bool:
    needed = Requirement(text)
    return not needed.marker or needed.marker.evaluate()


def ran(folder: Path, *command: str) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAST_TRACE")}
    over_grpc = {
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
        "XDG_DATA_HOME": str(folder / "home"),
    }
    run_program(*command, status=0, cwd=folder, env=own | over_grpc, timeout=170)


@pytest.mark.parametrize("extra", EXTRAS[:-1])
def test_an_extra_names_all_that_it_needs(extra: str, tmp_path: Path) -> None:
    failure_set(tmp_path / "data", 12)
    program = HIDE + "".join(JOBS[extra])
    ran(tmp_path, sys.executable, "-c", program, json.dumps(hidden(extra)))


def test_what_is_hidden_is_hidden(tmp_path: Path) -> None:
    assert {"chdb", "openai", "numpy"} <= set(hidden("collector"))
    assert "httpx" not in hidden("collector")
    program = (
        HIDE + "import sys\ntry:\n  import openai\nexcept ImportError:\n  sys.exit(0)\nsys.exit(3)"
    )
    ran(tmp_path, sys.executable, "-c", program, json.dumps(hidden("collector")))


def test_no_extra_is_left_out() -> None:
    declared = set(PROJECT["optional-dependencies"])
    # The examples, and training, which has a session and an environment of its own.
    assert declared - {"demo", "train"} == set(EXTRAS)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_alone(
    extra: str,
    wheel: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    failure_set(tmp_path / "data", 12)
    pinned = ("-c", HERE / "constraints.txt")
    python = make_environment(tmp_path / "env", [f"{wheel}[{extra}]", *pinned])
    for job in JOBS[extra]:
        ran(tmp_path, str(python), "-c", job)
    if extra in WITH_COMMANDS:
        ran(tmp_path, str(python.with_name("mast-trace")), "collect", "--help")
