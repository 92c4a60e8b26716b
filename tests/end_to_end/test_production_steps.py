"""The steps of examples/production/README.md do what they say, run as they stand there."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from end_to_end.processes import HERE
from end_to_end.span_sender import request_of
from end_to_end.up_process import UpProcess, wait_for
from program_runs import run_program

from mast_trace_collector.storage import Store
from mast_trace_collector.storage.migrations import migrations

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.end_to_end, pytest.mark.long, pytest.mark.timeout(900)]

README = HERE.parents[1] / "examples" / "production" / "README.md"
EVERYTHING = {
    "mast_verdicts": "Project, TraceId, Fingerprint, JudgeVersion, Status, Outcome",
    "mast_findings": "Project, TraceId, Fingerprint, JudgeVersion",
    "mast_human_labels": "Project, TraceId, Annotator, Outcome, Note",
    "mast_judge_calls": "Project, CallId",
}


def blocks(section: str) -> list[str]:
    """The shell blocks of a section's numbered steps."""
    (text,) = re.findall(
        rf"^## {re.escape(section)}\n(.+?)(?=^## )", README.read_text(), re.MULTILINE | re.DOTALL
    )
    found = re.findall(r"^ +```sh\n(.+?)^ +```$", text, re.MULTILINE | re.DOTALL)
    return [re.sub(r"^ {3}", "", block, flags=re.MULTILINE) for block in found]


class Home:
    """A user of mast-trace: a home folder, and a shell in it."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / ".local" / "share" / "mast-trace"
        self.data.parent.mkdir(parents=True)
        self.backups = folder / "backups"
        self.up = UpProcess(self.data)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MAST_TRACE_", "OTEL_"))}
        self.environment = {
            **kept,
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        self.environment.pop("XDG_DATA_HOME", None)
        self._folder = folder

    def sh(
        self, block: str, *, check: bool = True, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a block of the document."""
        block = block.replace("/mnt/backups", str(self.backups))
        done = run_program(
            *("bash", "-euo", "pipefail", "-c", block),
            env={**self.environment, **variables},
            cwd=self._folder,
            timeout=300,
        )
        assert not check or done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        return done

    def stored(self, run: str) -> tuple[dict[str, list[Any]], list[str]]:
        """Return the outcome of a run, and the ids of all its spans, duplicates included."""
        rows_about_it = {}
        with Store.open(f"chdb://{self.data}/clickhouse") as store:
            for table, columns in EVERYTHING.items():
                sql = f"SELECT {columns} FROM {table} FINAL WHERE TraceId = '{run}' ORDER BY ALL"
                rows_about_it[table] = [list(row.values()) for row in store.query(sql)]
            spans = store.query("SELECT SpanId FROM otel_traces ORDER BY SpanId")
        return rows_about_it, [row["SpanId"] for row in spans]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    made.up.kill_if_running()


def test_a_destroyed_folder_comes_back_from_a_backup_under_load(home: Home, tmp_path: Path) -> None:
    back_up, look_at, bring_back = blocks("Back up and restore `mast-trace up`")
    home.up.start()
    subprocess.run([sys.executable, HERE / "long_job.py"], env=home.up.environment(), check=True)
    (run,) = wait_for(lambda: [row for row in home.up.runs() if row["State"] == "judged"])
    said = ["--annotator", "ann", "--outcome", "success", "--note"]
    labelled = home.up.mast_trace("label", "last", *said, "as it should be")
    assert labelled.returncode == 0, labelled.stderr
    acknowledged = tmp_path / "acknowledged"
    command = [sys.executable, HERE / "span_sender.py", str(home.up.port), acknowledged, "2"]
    sender = subprocess.Popen([*map(str, command)])
    try:
        wait_for(lambda: acknowledged.exists() and len(acknowledged.read_text().split()) > 200)
        before = acknowledged.read_text().split()
        home.sh(back_up)
        after = acknowledged.read_text().split()
        assert len(after) > len(before), "spans were acknowledged meanwhile"
    finally:
        sender.kill()
        sender.wait()
    home.up.end(signal.SIGKILL)
    rows_about_it, _ = home.stored(run["TraceId"])
    home.sh(look_at)
    home.sh(bring_back)
    shutil.rmtree(home.data.with_name("mast-trace.broken"))
    home.up.start()
    assert home.up.end(signal.SIGTERM) == 0
    rows_again, spans = home.stored(run["TraceId"])
    assert rows_again == rows_about_it
    assert rows_about_it["mast_human_labels"]
    assert rows_about_it["mast_verdicts"]
    assert len(spans) == len(set(spans)), "each once"
    assert set(before) <= set(spans), "what was acknowledged before the backup began"


def test_what_up_has_moves_to_a_server(home: Home, tmp_path: Path) -> None:
    back_up, look = blocks("Move")[:2]
    (restore,) = re.findall(r"RESTORE DATABASE mast_trace FROM .*", README.read_text())
    home.up.start()
    subprocess.run([sys.executable, HERE / "long_job.py"], env=home.up.environment(), check=True)
    (run,) = wait_for(lambda: [row for row in home.up.runs() if row["State"] == "judged"])
    home.up.end(signal.SIGTERM)
    listed = home.sh("mast-trace runs --json").stdout
    home.sh(back_up)
    shutil.copytree(home.backups / "moved" / "clickhouse", tmp_path / "backups" / "moved")
    server = [sys.executable, HERE.parent / "clickhouse_server.py", tmp_path / "server"]
    with subprocess.Popen([*map(str, server)], stdout=subprocess.PIPE, text=True) as engine:
        try:
            assert engine.stdout is not None
            address = f"{engine.stdout.readline().strip()}/mast_trace"
            with Store.open(address) as store:
                from_here = restore.replace("moved", f"{tmp_path}/backups/moved")
                store.command(from_here, use_database=False)
            found = home.sh(f"{look}\nmast-trace runs --json", MAST_TRACE_DATABASE_URL=address)
            assert run["TraceId"][:8] in found.stdout
            assert found.stdout.endswith(listed)
        finally:
            engine.terminate()


def test_an_upgrade_in_the_order_of_the_steps_and_no_way_back(home: Home) -> None:
    migrate, export, check = blocks("Upgrade")
    home.up.start()
    assert home.up.end(signal.SIGTERM) == 0
    with Store.open(f"chdb://{home.data}/clickhouse") as store:
        # As if an earlier version had left it: each migration may be run again.
        newest = migrations()[-1].version
        store.command(
            f"ALTER TABLE mast_schema_migrations DELETE WHERE Version >= {newest}",
            settings={"mutations_sync": 2},
        )
    refused = home.sh("mast-trace runs", check=False)
    assert (refused.returncode, "run `mast-trace migrate`" in refused.stderr) == (1, True)
    home.sh(migrate)
    home.sh(export)
    home.sh(check)
    with Store.open(f"chdb://{home.data}/clickhouse") as store:
        store.command("INSERT INTO mast_schema_migrations (Version, Name) VALUES (999, 'later')")
    for command in ("runs", "up", "collect", "judge work --once", "migrate", "backup late"):
        ports = {"MAST_TRACE_HTTP_PORT": "0", "MAST_TRACE_GRPC_PORT": "0"}
        refused = home.sh(f"mast-trace {command}", check=False, **ports)
        assert refused.returncode == 1, command
        assert "newer" in refused.stderr, command
        assert "upgrade mast-trace" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_projects_key_is_rotated_without_a_gap(home: Home, tmp_path: Path) -> None:
    new_key, take_out, new_password = blocks("Rotate keys")
    keys = home.data.parents[2] / "keys"
    old = shown(home.sh(new_key).stdout)
    settings = {"MAST_TRACE_KEYS_FILE": str(keys), "MAST_TRACE_CLICKHOUSE_PASSWORD": "first"}
    home.up.settings.update(settings)
    home.up.start()
    assert posted(home, old, 1) == 200
    new = shown(home.sh(new_key).stdout)
    wait_for(lambda: posted(home, new, 2) == 200)
    assert posted(home, old, 3) == 200
    home.sh(take_out, OLD_KEY=old)
    wait_for(lambda: posted(home, old, 4) == 401)
    assert posted(home, new, 5) == 200
    # The read password: the block sets it in the shell from which `mast-trace up` is started.
    done = home.sh(f'{new_password}\necho "$MAST_TRACE_CLICKHOUSE_PASSWORD"')
    assert home.up.end(signal.SIGTERM) == 0
    home.up.settings["MAST_TRACE_CLICKHOUSE_PASSWORD"] = password = done.stdout.strip()
    assert len(password) >= 20
    home.up.start()
    assert read_with(home, "first") in {401, 403}
    assert read_with(home, password) == 200
    assert home.up.runs(), "commands of the same user need no password"


def shown(output: str) -> str:
    (key,) = re.findall(r"mt_[\w-]+", output)
    return str(key)


def posted(home: Home, key: str, number: int) -> int:
    """The status with which spans of a key are answered."""
    connection = http.client.HTTPConnection("127.0.0.1", home.up.port, timeout=20)
    headers = {"content-type": "application/x-protobuf", "authorization": f"Bearer {key}"}
    connection.request("POST", "/v1/traces", request_of(1, number)[0], headers)
    status = connection.getresponse().status
    connection.close()
    return status


def read_with(home: Home, password: str) -> int:
    """The status with which a reader with that password is answered."""
    place = home.up.ready["clickhouse"].rpartition("@")[2].removeprefix("http://").partition("/")[0]
    connection = http.client.HTTPConnection(place, timeout=20)
    headers = {"X-ClickHouse-User": "default", "X-ClickHouse-Key": password}
    connection.request("POST", "/", "SELECT 1", headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_every_step_of_these_sections_is_run() -> None:
    """A block that is added has to be taken up above."""
    counted = {
        section: len(blocks(section))
        for section in ("Upgrade", "Back up and restore `mast-trace up`", "Rotate keys", "Move")
    }
    # The last block of "Move" needs a cluster: `to-cluster.sql` is executed in tests/dashboards.
    assert list(counted.values()) == [3, 3, 3, 3]
