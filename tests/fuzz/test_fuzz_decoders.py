"""A short run of the fuzzer; long ones are started by hand, see `fuzz_decoders.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("atheris", reason="atheris is not installed (it has wheels for few platforms)")

RUNS = 20_000
# libFuzzer compares the peak that the kernel counts for its process with the limit, and a process
# begins with the peak of the one that started it: of a pytest worker that may be gigabytes.
SMALL_PARENT = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"


def test_no_input_crashes_hangs_or_fills_the_memory(tmp_path: Path) -> None:
    ended = subprocess.run(
        [
            *(sys.executable, "-c", SMALL_PARENT),
            *(sys.executable, Path(__file__).with_name("fuzz_decoders.py"), tmp_path / "corpus"),
            *(f"-runs={RUNS}", "-timeout=20", "-rss_limit_mb=1024", "-seed=1", "-max_len=4096"),
            f"-artifact_prefix={tmp_path}/",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert f"Done {RUNS} runs" in ended.stderr
