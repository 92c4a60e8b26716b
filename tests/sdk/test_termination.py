"""A run that was answered is recorded, however the server or the program is stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest

from mast_trace.delivery.span_queue import TERMINATING

if TYPE_CHECKING:
    from pathlib import Path

    from receiver import Receiver

APP = """
    import os, pathlib, time
    import mast_trace
    mast_trace.instrument(frameworks=[])

    def answer():
        with mast_trace.run("desk", input="q"), mast_trace.agent("clerk") as turn:
            pathlib.Path("inside").touch()
            time.sleep(0.4)
            turn.reply("a")
        return b"answer"

    def wsgi(environ, start):
        start("200 OK", [("content-length", "6")])
        return [answer()]

    async def asgi(scope, receive, send):
        while scope["type"] == "lifespan":
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return
        body = answer()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        await send({"type": "http.response.body", "body": body})

    if __name__ == "__main__":
        import uvicorn
        uvicorn.run(asgi, port=int(os.environ["PORT"]), log_level="error")
"""
SERVERS = {
    "uvicorn": "-m uvicorn app:asgi --port {port} --log-level error",
    "uvicorn --reload": "-m uvicorn app:asgi --port {port} --log-level error --reload",
    "uvicorn --workers": "-m uvicorn app:asgi --port {port} --log-level error --workers 2",
    "uvicorn.run": "app.py",
    "hypercorn": "-m hypercorn app:asgi --bind 127.0.0.1:{port}",
    "gunicorn": "-m gunicorn app:wsgi -b 127.0.0.1:{port}",
    "gunicorn gthread": "-m gunicorn app:wsgi -b 127.0.0.1:{port} -k gthread --threads 2",
    "gunicorn uvicorn_worker": "-m gunicorn app:asgi -b 127.0.0.1:{port} -k uvicorn_worker.UvicornWorker",
    "granian": "-m granian app:asgi --interface asgi --port {port}",
    "granian wsgi": "-m granian app:wsgi --interface wsgi --port {port}",
}


class Slow(threading.Event):
    """Lets the receiver answer after a second."""

    def wait(self, _timeout: float | None = None) -> bool:
        time.sleep(1)
        return True


def stop_while_answering(command: str, folder: Path, **variables: str) -> tuple[bytes, int]:
    """Return the answer that a server gives while SIGTERM stops it, and its exit status."""
    (folder / "app.py").write_text(textwrap.dedent(APP))
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, *command.format(port=port).split()],
        cwd=folder,
        env={**os.environ, "PORT": str(port), **variables},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    answers: list[bytes] = []

    def ask() -> None:
        while not answers and server.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
                    answers.append(answer.read())
            except OSError:
                time.sleep(0.05)

    asking = threading.Thread(target=ask)
    asking.start()
    while not (folder / "inside").exists() and server.poll() is None:
        time.sleep(0.02)
    server.send_signal(signal.SIGTERM)
    status = server.wait(60)
    asking.join(60)
    (folder / "inside").unlink()
    return b"".join(answers), status


@pytest.mark.parametrize("server", SERVERS)
def test_a_request_answered_while_a_server_stops_is_recorded(
    server: str, tmp_path: Path, receiver: Receiver
) -> None:
    command = SERVERS[server]
    pytest.importorskip(
        server.partition(" ")[0].partition(".")[0], reason="needs the dependency group `frameworks`"
    )
    receiver.held = Slow()
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    recorded = stop_while_answering(command, tmp_path, **endpoint)
    assert recorded[0] == b"answer"
    assert sorted(receiver.names) == ["invoke_agent clerk", "invoke_workflow desk"]
    assert recorded == stop_while_answering(command, tmp_path, OTEL_SDK_DISABLED="true")


BARE = """
    import os, signal, sys, threading, time
    import mast_trace

    def leave(number, frame):
        if callable(earlier):
            earlier(number, frame)
        os._exit(5)

    def instrument():
        mast_trace.instrument(frameworks=[])

    {before}
    mast_trace.message("a", "b", "c")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(30)
"""
CATCH = "earlier = signal.signal(signal.SIGTERM, leave)"


@pytest.mark.parametrize(
    ("before", "status", "sent"),
    [
        ("instrument()", -signal.SIGTERM, True),
        (f"instrument(); {CATCH}", 5, True),
        (f"{CATCH}; instrument()", 5, True),
        ("instrument(); mast_trace.uninstrument()", -signal.SIGTERM, False),
        ("os.environ['MAST_TRACE_FLUSH_ON_SIGTERM'] = 'false'; instrument()", -15, False),
        ("t = threading.Thread(target=instrument); t.start(); t.join()", -15, False),
        (
            "import faulthandler; faulthandler.register(signal.SIGTERM, chain=True); instrument()",
            -signal.SIGTERM,
            False,
        ),
    ],
)
def test_a_bare_program_sends_and_ends_as_without_recording(
    tmp_path: Path, receiver: Receiver, before: str, status: int, *, sent: bool
) -> None:
    """Handlers of others decide as before, those in C included."""
    (tmp_path / "program.py").write_text(textwrap.dedent(BARE).replace("{before}", before))
    variables = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    ended = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=variables, timeout=60, check=False
    )
    assert ended.returncode == status
    assert receiver.names == ["send_message a"] * sent


@pytest.mark.parametrize("pool", ["prefork", "solo", "threads"])
def test_a_task_that_ends_while_celery_stops_is_recorded(
    pool: str, tmp_path: Path, receiver: Receiver
) -> None:
    pytest.importorskip("celery", reason="needs Celery, of the dependency group `test`")
    (tmp_path / "desk.py").write_text(
        textwrap.dedent(f"""
        import pathlib, time
        import mast_trace
        from celery import Celery

        app = Celery("desk", broker="filesystem://")
        folder = {str(tmp_path)!r}
        app.conf.broker_transport_options = {{
            "data_folder_in": folder, "data_folder_out": folder, "control_folder": folder,
        }}
        mast_trace.instrument(frameworks=[], endpoint={receiver.url!r})

        @app.task
        def work():
            with mast_trace.run("desk"):
                pathlib.Path("inside").touch()
                time.sleep(0.4)

        if __name__ == "__main__":
            app.signature("desk.work").delay()
    """)
    )
    receiver.held = Slow()
    subprocess.run([sys.executable, "desk.py"], cwd=tmp_path, check=True, timeout=60)
    command = f"-m celery -A desk worker -P {pool} -c 1 -l error --without-gossip --without-mingle"
    worker = subprocess.Popen(
        [sys.executable, *command.split()], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    while not (tmp_path / "inside").exists() and worker.poll() is None:
        time.sleep(0.02)
    worker.terminate()
    assert worker.wait(60) == 0
    assert receiver.names == ["invoke_workflow desk"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("descends", [False, True], ids=["worker", "worker of a child"])
@pytest.mark.parametrize("package", TERMINATING)
def test_a_worker_ends_whose_main_thread_does_not_notice_the_signal(
    tmp_path: Path, receiver: Receiver, method: str, package: str, *, descends: bool
) -> None:
    """It waits for a lock already: Python's handlers run in that thread alone, and without us the child would end."""
    pytest.importorskip(package, reason=f"needs {package}, of the dependency group `test`")
    (tmp_path / "program.py").write_text(
        f"import {package} as multiprocessing"
        + textwrap.dedent("""
        import os, signal, sys, threading
        import mast_trace

        method, descends = sys.argv[1], sys.argv[2] == "True"

        def instrument():
            mast_trace.instrument(frameworks=[])

        def wait(ready):
            instrument()
            with mast_trace.run("job"):
                mast_trace.message("a", "b", "c")
            # As if the signal had come a moment before.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
            ready.set()
            threading.Lock().acquire() and threading.Event().wait()

        def ended(target):
            ready = multiprocessing.get_context(method).Event()
            child = multiprocessing.get_context(method).Process(
                target=target, args=(ready,), daemon=True
            )
            child.start()
            assert ready.wait(40)
            child.terminate()
            child.join(20)
            code = child.exitcode
            child.kill()
            return code

        def descend():
            instrument()
            os._exit(ended(wait) != -signal.SIGTERM)

        if __name__ == "__main__":
            instrument()
            if descends:
                child = multiprocessing.get_context(method).Process(target=descend)
                child.start()
                child.join()
                sys.exit(child.exitcode)
            sys.exit(ended(wait) != -signal.SIGTERM)
        """)
    )
    variables = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    command = [sys.executable, "program.py", method, str(descends)]
    done = subprocess.run(command, cwd=tmp_path, env=variables, timeout=120, check=False)
    assert done.returncode == 0
    assert receiver.names.count("send_message a") == 1
