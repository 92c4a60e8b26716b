"""A reservation's holder is known as running or ended, also where its number is used again."""

import os
import socket
import subprocess
import sys

import pytest

from mast_trace_judge.store.replays import holder_of_this_process, is_running_elsewhere

PRINTS_ITS_NAME = (
    "import sys; from mast_trace_judge.store.replays import holder_of_this_process as name;"
    "print(name(), flush=True); sys.stdin.read()"
)


@pytest.fixture
def other():
    """Another process, and its name."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRINTS_ITS_NAME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process, process.stdout.readline().strip()
    process.kill()
    process.communicate()


def test_another_process_runs_until_it_is_killed(other):
    process, holder = other
    assert is_running_elsewhere(holder)
    process.kill()
    process.wait()
    assert not is_running_elsewhere(holder)


def test_a_number_that_is_used_again_is_another_process(other):
    """The start of a process tells two of one number apart."""
    _, holder = other
    host, number, _ = holder.split("/")
    assert not is_running_elsewhere(f"{host}/{number}/1")


@pytest.mark.parametrize(
    "holder",
    [
        holder_of_this_process(),
        "elsewhere/1/5",
        f"{socket.gethostname()}/{2**22 + 1}/5",
        f"{socket.gethostname()}/{10**30}/5",
        f"{socket.gethostname()}/-1/5",
        f"{socket.gethostname()}/{os.getpid()}x",
        "",
        "/",
    ],
    # Not by their values: each process of the tests would name its own number.
    ids=[
        *("this", "elsewhere", "too large", "far too large", "negative", "no number"),
        *("empty", "slash"),
    ],
)
def test_this_process_other_machines_and_nonsense_do_not_run_elsewhere(holder):
    """Nothing is sent a signal by mistake."""
    assert not is_running_elsewhere(holder)
