"""No span is lost when a program ends, forks or recycles its workers, and none is sent twice."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from mast_trace.delivery.span_queue import TERMINATING
from mast_trace.fork_safe import reentrant_lock

if TYPE_CHECKING:
    from pathlib import Path

    from receiver import Receiver

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


class Program:
    """Runs a program that says `instrument` and `message` for short."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, endpoint: str, body: str) -> subprocess.CompletedProcess[str]:
        script = self._folder / "program.py"
        script.write_text(
            "import os, sys, warnings\n"
            "warnings.simplefilter('ignore', DeprecationWarning)\n"
            "import mast_trace\n"
            "from mast_trace import message, run\n"
            "def instrument():\n"
            "    mast_trace.instrument(frameworks=[], endpoint=sys.argv[1])\n"
            + textwrap.dedent(body)
        )
        # The limit only ends a hang.
        return subprocess.run(
            [sys.executable, str(script), endpoint],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


class TestExit:
    """The end of a program."""

    def test_ends_what_a_stream_that_nobody_reads_on_has_open(
        self, program: Program, receiver: Receiver
    ) -> None:
        """An unread stream is ended at exit, even if something else has registered an exit handler before."""
        ended = program.run(
            receiver.url,
            """
            import weakref
            class Kept: pass
            kept = Kept()
            weakref.finalize(kept, str)
            instrument()

            @mast_trace.agent
            def talk():
                yield "one"
                yield "two"

            @mast_trace.tool
            def read(stream):
                yield next(stream)

            words = read(talk())
            assert next(words) == "one"
            """,
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        assert sorted(receiver.names) == ["execute_tool read", "invoke_agent talk"]

    @pytest.mark.parametrize(
        ("ending", "code"), [("", 0), ("sys.exit(3)", 3), ("raise RuntimeError('mine')", 1)]
    )
    def test_sends_what_waits_and_keeps_the_exit_code(
        self, program: Program, receiver: Receiver, ending: str, code: int
    ) -> None:
        """A short job needs no flush, also when it fails."""
        ended = program.run(receiver.url, f"instrument(); message('a', 'b', 'c'); {ending}")
        assert (ended.returncode, bool(ended.stderr)) == (code, code == 1)
        assert receiver.names == ["send_message a"]

    def test_without_a_collector_says_so_in_one_line(
        self, program: Program, closed_port: int
    ) -> None:
        """The program ends well, and its user learns what to start."""
        endpoint = f"http://127.0.0.1:{closed_port}"
        ended = program.run(endpoint, "instrument(); message('a', 'b', 'c')")
        assert ended.returncode == 0
        (line,) = ended.stderr.splitlines()
        assert endpoint in line
        assert "`mast-trace up`" in line
        assert "1 span" in line

    def test_with_a_collector_that_hangs_gives_up(self, program: Program) -> None:
        """A connection that is taken and never answered does not keep the program."""
        import socket

        with socket.create_server(("127.0.0.1", 0)) as silent:
            endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
            ended = program.run(endpoint, "instrument(); message('a', 'b', 'c')")
        assert ended.returncode == 0
        assert "lost" in ended.stderr

    def test_in_a_thread_pool_loses_nothing(self, program: Program, receiver: Receiver) -> None:
        """Spans of all threads are there at the end."""
        ended = program.run(
            receiver.url,
            """
            from concurrent.futures import ThreadPoolExecutor
            instrument()
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda i: message(f"t{i}", "b", "c"), range(2000)))
            """,
        )
        assert ended.stderr == ""
        assert Counter(receiver.names) == Counter(f"send_message t{i}" for i in range(2000))


@needs_fork
class TestFork:
    """Processes that fork while they are recorded."""

    @pytest.mark.parametrize("before", [["before"], []])
    def test_neither_loses_nor_doubles(
        self, program: Program, receiver: Receiver, before: list[str]
    ) -> None:
        """Spans that wait at the fork are sent by the parent only; both go on, workers to their exit."""
        ended = program.run(
            receiver.url,
            f"""
            instrument()
            for name in {before}:
                message(name, "b", "c")
            children = []
            for index in range(2):
                children.append(os.fork())
                if not children[-1]:
                    message(f"child{{index}}", "b", "c")
                    sys.exit(0)
            message("parent", "b", "c")
            for child in children:
                os.waitpid(child, 0)
            """,
        )
        assert ended.stderr == ""
        assert sorted(receiver.names) == [
            f"send_message {name}" for name in (*before, "child0", "child1", "parent")
        ]

    def test_a_span_that_was_open_is_the_parents(
        self, program: Program, receiver: Receiver
    ) -> None:
        """Both processes leave the block; one reports it."""
        program.run(
            receiver.url,
            """
            instrument()
            with run("shared"):
                child = os.fork()
                if child == 0:
                    message("child", "b", "c")
            if child:
                os.waitpid(child, 0)
            """,
        )
        assert sorted(receiver.names) == ["invoke_workflow shared", "send_message child"]
        (trace,) = {span.trace_id for span in receiver.spans}
        assert trace

    def test_while_the_parent_is_exporting(self, program: Program, receiver: Receiver) -> None:
        """A fork at any moment leaves the child able to send: no lock stays taken."""
        ended = program.run(
            receiver.url,
            """
            import threading
            instrument()
            stop = threading.Event()
            def talk():
                while not stop.is_set():
                    message("busy", "b", "c")
            threading.Thread(target=talk, daemon=True).start()
            for index in range(8):
                child = os.fork()
                if child == 0:
                    message(f"child{index}", "b", "c")
                    os._exit(0 if mast_trace.flush(30) else 7)
                assert os.waitpid(child, 0)[1] == 0
            stop.set()
            """,
        )
        assert ended.stderr == ""
        children = [name for name in receiver.names if "child" in name]
        assert sorted(children) == [f"send_message child{index}" for index in range(8)]

    def test_while_another_thread_holds_every_lock(
        self, program: Program, receiver: Receiver
    ) -> None:
        """Locks of threads that the child does not have are free in it."""
        ended = program.run(
            receiver.url,
            """
            import threading
            from contextlib import ExitStack
            from mast_trace import agent, fork_safe, record_outcome, tool
            instrument()
            @agent
            def helper():
                with tool("look", {}):
                    return "seen"
            held, done = threading.Event(), threading.Event()
            def hold():
                with run("elsewhere"), ExitStack() as stack:
                    message("open", "b", "c")
                    for lock in list(fork_safe._locks):
                        stack.enter_context(lock)
                    held.set()
                    done.wait()
            threading.Thread(target=hold, daemon=True).start()
            held.wait()
            child = os.fork()
            if child == 0:
                with run("of the child"):
                    helper()
                record_outcome(True)
                os._exit(0 if mast_trace.flush(30) else 7)
            assert os.waitpid(child, 0)[1] == 0
            done.set()
            """,
        )
        assert ended.stderr == ""
        assert "invoke_workflow of the child" in receiver.names
        assert "execute_tool look" in receiver.names

    def test_a_lock_that_the_forking_thread_holds_stays_held(self) -> None:
        """The child goes on in the block in which it was forked, and leaves it."""
        lock = reentrant_lock()
        with lock:
            child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


class TestEndWithoutExitHandlers:
    """`os._exit`: what waits is sent as at any other end, and the status is the program's."""

    @pytest.mark.parametrize("record", ["os.urandom(1)", "message('a', 'b', 'c')"])
    def test_of_the_program(self, program: Program, receiver: Receiver, record: str) -> None:
        ended = program.run(receiver.url, f"instrument(); {record}; os._exit(3)")
        assert (ended.returncode, ended.stderr) == (3, "")
        assert receiver.names == ["send_message a"] * record.startswith("message")

    def test_where_no_collector_listens(self, program: Program) -> None:
        ended = program.run(
            "http://127.0.0.1:9", "instrument(); message('a', 'b', 'c'); os._exit(3)"
        )
        assert ended.returncode == 3
        assert "1 span(s) lost" in ended.stderr

    @needs_fork
    @pytest.mark.parametrize(
        "before", ["pass", "instrument()"], ids=["in the child", "before the fork"]
    )
    def test_of_a_child(self, program: Program, receiver: Receiver, before: str) -> None:
        """RQ's and Airflow's workers fork, load the application in the child, and end it so."""
        program.run(
            receiver.url,
            f"""
            {before}
            for number in range(5):
                child = os.fork()
                if child == 0:
                    instrument()
                    with run("desk"):
                        message(f"job{{number}}", "b", "c")
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
            """,
        )
        runs = ["invoke_workflow desk"] * 5
        assert sorted(receiver.names) == [*runs, *(f"send_message job{i}" for i in range(5))]

    def test_mistakes_are_answered_as_before(self, program: Program, receiver: Receiver) -> None:
        ended = program.run(receiver.url, "instrument(); os._exit('3')")
        assert ended.returncode == 1
        assert "TypeError: 'str' object cannot be interpreted as an integer" in ended.stderr


class TestRecycledWorkers:
    """Processes that a pool starts and ends."""

    @needs_fork
    @pytest.mark.parametrize("package", [*TERMINATING, "billiard"])
    def test_of_a_pool_send_before_they_are_replaced(
        self, program: Program, receiver: Receiver, package: str
    ) -> None:
        """Each worker does one task and ends by os._exit, as Celery's do: ten tasks, ten spans."""
        pytest.importorskip(package, reason=f"needs {package}, of the dependency group `test`")
        program.run(
            receiver.url,
            f"""
            import {package} as multiprocessing
            instrument()
            def task(index):
                message("task" + str(index), "b", "c")
            if __name__ == "__main__":
                with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
                    pool.map(task, range(10), chunksize=1)
                    pool.close()
                    pool.join()
            """,
        )
        assert sorted(receiver.names) == sorted(f"send_message task{i}" for i in range(10))

    @pytest.mark.parametrize("package", [*TERMINATING, "billiard"])
    def test_that_are_spawned_send_too(
        self, program: Program, receiver: Receiver, package: str
    ) -> None:
        """A spawned process instruments itself and sends at its end."""
        pytest.importorskip(package, reason=f"needs {package}, of the dependency group `test`")
        program.run(
            receiver.url,
            f"""
            import {package} as multiprocessing
            def task():
                instrument()
                message("spawned", "b", "c")
            if __name__ == "__main__":
                process = multiprocessing.get_context("spawn").Process(target=task)
                process.start()
                process.join()
            """,
        )
        assert receiver.names == ["send_message spawned"]

    @needs_fork
    def test_of_celery_send_before_they_are_replaced(
        self, tmp_path: Path, receiver: Receiver
    ) -> None:
        """A real worker with one task to a process: ten tasks in, ten spans out."""
        pytest.importorskip("celery", reason="needs Celery, of the dependency group `test`")
        (tmp_path / "desk.py").write_text(
            textwrap.dedent(
                f"""
                import mast_trace
                from celery import Celery

                app = Celery("desk", broker="filesystem://")
                folder = {str(tmp_path)!r}
                app.conf.broker_transport_options = {{
                    "data_folder_in": folder, "data_folder_out": folder, "control_folder": folder,
                }}
                mast_trace.instrument(frameworks=[], endpoint={receiver.url!r})

                @app.task
                def work(index):
                    mast_trace.message(f"task{{index}}", "b", "c")

                if __name__ == "__main__":
                    for index in range(10):
                        app.signature("desk.work").delay(index)
                """
            )
        )
        celery = [sys.executable, "-m", "celery", "-A", "desk", "worker", "-c", "2"]
        quiet = ["-l", "error", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        subprocess.run([sys.executable, "desk.py"], cwd=tmp_path, check=True, timeout=60)
        worker = subprocess.Popen(
            [*celery, *quiet, "--max-tasks-per-child=1"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            for _ in range(10):
                # Either all arrive, or this says how many did.
                if not receiver.arrived.acquire(timeout=30):
                    break
        finally:
            worker.terminate()
            try:
                worker.wait(60)
            except subprocess.TimeoutExpired:
                # The worker's pool was once seen to wait for a lock of its own without an end, on 3.12.
                worker.kill()
                worker.wait(60)
        assert sorted(receiver.names) == sorted(f"send_message task{i}" for i in range(10))
