"""Replays that are forked from a process with the program's imports: the same as those of a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mast_trace_dashboards.programs import Program
from mast_trace_lab.program import forking
from mast_trace_lab.program.forking import (
    LazyParent,
    NotForkable,
    PreparedParent,
    parent_of,
    program_of,
)

PROGRAM = """
import gc, json, os, pathlib, random, subprocess, sys, threading, time
import decimal  # imported by the parent already
way, out = sys.argv[1:]
found = {
    "argv": sys.argv, "path": sys.path[0], "name": __name__, "leads": os.getsid(0) == os.getpid(),
    "variable": os.environ.get("GIVEN"), "inherited": "PARENT_ONLY" in os.environ,
    "blas": os.environ.get("OPENBLAS_NUM_THREADS"), "drawn": random.random(), "pid": os.getpid(),
    "input": sys.stdin.read(), "threads": threading.active_count(),
    "frozen": gc.get_freeze_count() > 0,
}
pathlib.Path(out).write_text(json.dumps(found))
if way == "child":
    child = subprocess.Popen(["sleep", "600"])
    pathlib.Path(out + ".child").write_text(str(child.pid))
if way in {"hangs", "child"}:
    time.sleep(600)
if way == "fails":
    sys.exit(7)
if way == "raises":
    raise RuntimeError("no")
if way == "killed":
    os.kill(os.getpid(), 9)
import atexit
atexit.register(lambda: pathlib.Path(out + ".ended").write_text("atexit"))
threading.Thread(target=lambda: (time.sleep(0.2), pathlib.Path(out + ".thread").write_text("done"))).start()
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("program") / "program.py"
    file.write_text(PROGRAM)
    return file


@pytest.fixture
def environment() -> dict[str, str]:
    given = {key: value for key, value in os.environ.items() if key != "PARENT_ONLY"}
    return {**given, "GIVEN": "yes"}


def prepared(*modules: str) -> PreparedParent:
    return PreparedParent(sys.executable, modules or ("decimal", "json"))


def asked(program: Path, way: str, out: Path) -> list[str]:
    return program_of((sys.executable, str(program), way, str(out)))


def read(out: Path) -> dict:
    import json

    found: dict = json.loads(out.read_text())
    return found


def test_a_forked_program_is_as_one_of_its_own(
    program: Path, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARENT_ONLY", "1")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    environment.pop("OPENBLAS_NUM_THREADS", None)
    out = tmp_path / "out"
    drawn = set()
    with prepared() as parent:
        for _ in range(3):
            assert parent.run(asked(program, "well", out), environment, "discarded", 30) == 0
            found = read(out)
            drawn.add((found["drawn"], found["pid"]))
            assert found["argv"] == [str(program), "well", str(out)]
            assert (found["path"], found["name"]) == (str(program.parent), "__main__")
            assert found["leads"]
            assert found["variable"] == "yes"
            assert not found["inherited"]
            assert found["blas"] is None
            assert (found["input"], found["threads"]) == ("", 1)
            assert found["frozen"], "a child that ends copies all that it shares"
            # The program ends as Python programs do.
            assert (tmp_path / "out.ended").read_text() == "atexit"
            assert (tmp_path / "out.thread").read_text() == "done"
    assert len({each for each, _ in drawn}) == 3, "forks draw the same numbers"


@pytest.mark.parametrize(("way", "status"), [("fails", 7), ("raises", 1), ("killed", -9)])
def test_exit_statuses(
    program: Path, tmp_path: Path, environment: dict[str, str], way: str, status: int
) -> None:
    wanted = asked(program, way, tmp_path / "out")
    with prepared() as parent:
        assert parent.run(wanted, environment, "discarded", 30) == status
        assert parent.run(wanted, environment, "discarded", 30) == status


def test_a_hanging_program_ends(program: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    """The parent goes on to serve afterwards."""
    out = tmp_path / "out"
    with prepared() as parent:
        for _ in range(2):
            assert parent.run(asked(program, "child", out), environment, "discarded", 3) is None
            child = int((tmp_path / "out.child").read_text())
            for _ in range(50):
                if not _runs(child):
                    break
                time.sleep(0.1)
            assert not _runs(child)
            assert not _runs(read(out)["pid"])


def _runs(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def threading_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    (tmp_path / "starts_a_thread.py").write_text(code)
    (tmp_path / "breaks.py").write_text("raise ValueError('of its own')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


@pytest.mark.usefixtures("threading_module")
@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("starts_a_thread", "have started 1 threads"),
        ("breaks", "breaks cannot be imported: ValueError: of its own"),
        ("no_such_module", "no_such_module cannot be imported"),
    ],
)
def test_an_unsafe_parent_is_refused(module: str, said: str) -> None:
    with pytest.raises(NotForkable, match=said):
        prepared(module)


def test_a_dead_parent_is_told(program: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    with prepared() as parent:
        os.kill(parent._process.pid, signal.SIGKILL)
        with pytest.raises(NotForkable, match="has ended"):
            parent.run(asked(program, "well", tmp_path / "out"), environment, "discarded", 30)


def test_only_python_programs_can_be_forked() -> None:
    assert program_of(("/usr/bin/python3.11", "team.py", "x")) == ["file", "team.py", "x"]
    assert program_of(("python", "-m", "team", "x")) == ["module", "team", "x"]
    for command in (("./team.sh",), ("python",), ("python", "-c", "pass"), ("node", "team.js")):
        with pytest.raises(NotForkable, match="leave preload out"):
            program_of(command)


def test_two_parents_fork_two_replays_at_once(tmp_path: Path, environment: dict[str, str]) -> None:
    """Each of the programs ends well only if the other one runs beside it; a third waits for its turn."""
    program = tmp_path / "meets.py"
    program.write_text(
        "import os, pathlib, sys, time\n"
        "here = pathlib.Path(sys.argv[1]); (here / str(os.getpid())).touch()\n"
        "end = time.time() + 60\n"
        "while len(list(here.iterdir())) < 2 and time.time() < end: time.sleep(0.01)\n"
        "sys.exit(len(list(here.iterdir())) < 2)\n"
    )
    here = tmp_path / "here"
    here.mkdir()
    command = (sys.executable, str(program), str(here))
    with LazyParent(("json",), 2) as parents, ThreadPoolExecutor(3) as together:
        begun = [
            together.submit(parents.run, command, environment, "discarded", 90) for _ in range(3)
        ]
        assert [each.result() for each in begun] == [0, 0, 0]


def test_a_process_that_dies_is_told_and_keeps_nobody_waiting(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Each of those that were made together holds its own connection alone."""
    program = tmp_path / "kills.py"
    program.write_text("import os; os.kill(os.getppid(), 9)")
    wanted = program_of((sys.executable, str(program)))
    with PreparedParent(sys.executable, ("json",), at_a_time=3) as parent:
        for _ in range(3):
            with pytest.raises(NotForkable, match="has ended"):
                parent.run(wanted, environment, "discarded", 20)


@pytest.mark.parametrize("given", [True, False])
def test_replays_that_cannot_be_forked_run_alone(
    program: Path, tmp_path: Path, environment: dict[str, str], given: bool
) -> None:
    """A warning tells it to a person who has named the modules, and to nobody else."""
    told: list[str] = []
    command = (sys.executable, str(program), "fails", str(tmp_path / "out"))
    with LazyParent(("no_such_module",), 2, warn=told.append if given else None) as parents:
        assert [parents.run(command, environment, "discarded", 30) for _ in range(2)] == [7, 7]
    assert [text.partition(" ")[0] for text in told] == ["no_such_module"] * given


def test_replays_with_another_order_of_sets_are_not_forked_from_the_same_process(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """A fork has the hashes of its parent, whatever its variables say."""
    program, out = tmp_path / "hashes.py", tmp_path / "out"
    program.write_text(
        "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(str(hash('red')))"
    )
    command = (sys.executable, str(program), str(out))
    with LazyParent(("json",)) as parents:
        for seed in ("1", "2", "1"):
            seeded = {**environment, "PYTHONHASHSEED": seed}
            parents.run(command, seeded, "discarded", 30)
            forked = out.read_text()
            subprocess.run(command, env=seeded, check=True)
            assert out.read_text() == forked


def test_the_libraries_of_the_framework_are_forked_unasked() -> None:
    """A list of a person's comes before them, also an empty one."""

    def modules(framework: str, **given: Any) -> Any:
        return parent_of(Program(command=["python"], **given), framework, warn=print)._modules

    assert "openai" in modules("")
    assert "langgraph.graph" in modules("langgraph")
    assert modules("langgraph", preload=["json"]) == ("json",)
    assert modules("langgraph", preload=[]) == ()


@pytest.mark.parametrize("framework", ["ag2", "autogen", "crewai", "langgraph"])
def test_a_frameworks_own_package_is_among_its_libraries(framework: str) -> None:
    """Another's would be missing where it runs, and nobody would be told that its replays import it anew."""
    assert framework in {name.partition(".")[0] for name in forking._LIBRARIES[framework]}
