"""A damaged file of the database costs its rows; the log reports it with the remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from stores import SERVER

pytestmark = pytest.mark.skipif(
    bool(SERVER), reason="about the embedded engine, while a server is tested"
)

FILL = """
from datetime import datetime, timezone
from mast_trace_collector.storage import Store, migrate
with Store.open("chdb://{folder}") as store:
    migrate(store)
    for day in (1, 2):
        at = datetime(2026, day, 1, tzinfo=timezone.utc)
        row = {{"Project": "p", "TraceId": f"{{day:032x}}", "LabelledAt": at}}
        store.insert("mast_human_labels", [row])
    for row in store.query(
        "SELECT path FROM system.parts WHERE table = 'mast_human_labels' AND active ORDER BY name"
    ):
        print(row["path"])
"""
READ = """
import logging
from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.damage import warn_of_damaged_parts
logging.basicConfig(format="%(message)s")
with Store.open("chdb://{folder}") as store:
    print("damaged", warn_of_damaged_parts(store))
    try:
        print("rows", len(store.query("SELECT * FROM mast_human_labels")))
    except StorageError as error:
        print("said", error)
"""


def ran(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program.format(folder=folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def test_a_damaged_part_is_told_of(tmp_path: Path) -> None:
    """Unreadable data by the query that meets it, a part that is left out at the start."""
    folder = tmp_path / "db"
    parts = [Path(line) for line in ran(FILL, folder).splitlines() if line.startswith("/")]
    assert len(parts) >= 1
    part = parts[-1]
    data = part / "data.bin"
    kept = data.read_bytes()
    data.write_bytes(bytes(len(kept)))
    output = ran(READ, folder)
    assert "damaged 0" in output
    assert "a file of the database is damaged on disk" in output
    assert str(part) in output

    data.write_bytes(kept)
    (part / "checksums.txt").write_bytes(b"")
    (part / "columns.txt").write_bytes(b"nonsense")
    output = ran(READ, folder)
    assert "damaged 1" in output
    assert "rows of mast_trace.mast_human_labels are missing" in output
    assert f"rows {len(parts) - 1}" in output
