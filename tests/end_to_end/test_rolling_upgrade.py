"""Collectors, judges and web views of the version before work beside the new ones while a server is upgraded.

The version before is the commit whose tables were others, or `MAST_TRACE_TEST_BEFORE`; it needs the history.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from end_to_end.processes import HERE, free_port
from end_to_end.up_process import MAST_TRACE, CollectProcess, wait_for
from program_runs import run_program

from mast_trace_collector.storage import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.end_to_end, pytest.mark.long, pytest.mark.timeout(900)]

ROOT = HERE.parents[1]
SCHEMA = "collector/mast_trace_collector/storage/schema"
PARTS = ("sdk", "instrumentations", "collector", "judge", "dashboards", "lab")


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The source of the version before."""
    revision = os.environ.get("MAST_TRACE_TEST_BEFORE")
    if revision is None:
        found = subprocess.run(
            ["git", "log", "-2", "--format=%H", "--", SCHEMA],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        revisions = found.stdout.decode().split()
        if len(revisions) < 2:
            pytest.skip("the history of the tables is not here")
        revision = f"{revisions[0]}~1"
    archive = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tmp_path / "before", filter="data")
    return tmp_path / "before"


class Version:
    """The parts of one version, beside the same server."""

    def __init__(self, folder: Path, url: str, source: Path = ROOT) -> None:
        folder.mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MAST_TRACE_", "OTEL_"))}
        self.environment = {
            **kept,
            "PYTHONPATH": os.pathsep.join(str(source / part) for part in PARTS),
            "MAST_TRACE_DATABASE_URL": url,
            "MAST_TRACE_DATA_DIR": str(folder),
            "MAST_TRACE_RUN_QUIET_SECONDS": "0.5",
            "MAST_TRACE_SPOOL_MIN_FREE_BYTES": "0",
            "HOME": str(folder),
        }
        self.collector = CollectProcess(folder, url)
        self.collector.environment = self.environment
        self.web = f"http://127.0.0.1:{free_port()}"
        self._log = folder / "parts.log"
        self._processes: list[subprocess.Popen[bytes]] = []

    def run(self, *command: str) -> str:
        return run_program(
            *MAST_TRACE, *command, env=self.environment, status=0, timeout=120
        ).stdout

    def start(self) -> None:
        """Start a collector, a judge and a web view."""
        port = self.collector.start()
        self.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"
        for command in (["judge", "work"], ["web", "--port", self.web.rpartition(":")[2]]):
            with self._log.open("ab") as log:
                self._processes.append(
                    subprocess.Popen(
                        [*MAST_TRACE, *command], env=self.environment, stdout=log, stderr=log
                    )
                )

    def work(self) -> list[str]:
        """Record a run, and return the ids of its spans that were acknowledged."""
        job = run_program(sys.executable, HERE / "long_job.py", env=self.environment, timeout=120)
        return job.stdout.split()

    def page(self) -> str:
        with urllib.request.urlopen(self.web, timeout=30) as answer:
            return str(answer.read().decode())

    def stop(self) -> None:
        """Stop all parts, and see that each ends well."""
        assert self.collector.stop() == 0
        for process in self._processes:
            process.terminate()
            assert process.wait(60) == 0, self._log.read_text()[-3000:]
        self._processes.clear()

    def kill(self) -> None:
        for process in [*self._processes, getattr(self.collector, "process", None)]:
            if process is not None and process.poll() is None:
                process.kill()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    command = [sys.executable, str(HERE.parent / "clickhouse_server.py"), str(tmp_path / "server")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        yield f"{engine.stdout.readline().strip()}/mast_trace"
        engine.terminate()


def test_both_versions_work_side_by_side(server: str, before: Path, tmp_path: Path) -> None:
    old, new = Version(tmp_path / "old", server, before), Version(tmp_path / "new", server)
    sent: list[str] = []
    try:
        old.run("migrate")
        old.start()
        sent += old.work()
        judged(old, 1)
        new.run("migrate")
        sent += old.work()
        new.start()
        sent += new.work() + old.work()
        rows = judged(new, 4)
        assert {row["Outcome"] for row in rows} == {"success"}
        for version in (old, new):
            wait_for(lambda page=version.page: page().count("long job") >= 4)
        old.stop()
        sent += new.work()
        judged(new, 5)
        new.stop()
    finally:
        old.kill()
        new.kill()
    with Store.open(server) as store:
        ids = [row["SpanId"] for row in store.query("SELECT SpanId FROM otel_traces")]
    assert len(ids) == len(set(ids)), "each once"
    assert set(sent) <= set(ids), "what either collector acknowledged"


def judged(version: Version, count: int) -> list[dict[str, Any]]:
    """The runs as a version lists them, once so many have a verdict."""

    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(version.run("runs", "--json"))
        return found if [row["State"] for row in found].count("judged") == count else []

    return list(wait_for(rows))
