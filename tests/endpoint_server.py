"""Serves the ClickHouse endpoint, or what stands for it, to a test's client."""

import socket
import threading
from contextlib import contextmanager

import uvicorn

PASSWORD = "reader's password"
WRITE_TOKEN = "writers-token"


def quick_listener():
    """Return a listener on a free port, without Nagle's algorithm, by which each answer would be 40 ms late."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    return listener


@contextmanager
def serve(app, **options):
    """Serve an ASGI application on a free port of this machine; yields host:port.

    Args:
        app: the application.
        **options: of uvicorn, such as a certificate.
    """
    listener = quick_listener()

    # Uvicorn looks at a signature, which mutmut hides in a class that it mutates.
    async def plainly(scope, receive, send):
        await app(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(plainly, log_level="warning", lifespan="off", **options))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
