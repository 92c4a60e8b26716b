"""Fixtures and hooks that all tests share."""

from __future__ import annotations

import gc
import logging
import os
import signal
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import skips

if TYPE_CHECKING:
    from collections.abc import Iterator

# A proxy of the machine must not stand between a test and the servers that it starts.
for _variable in ("no_proxy", "NO_PROXY"):
    os.environ[_variable] = "127.0.0.1,localhost,::1"

# A client of httpx reads the file of all authorities, which takes 30 ms; of the folder it reads those that it needs.
_folder, _file = ssl.get_default_verify_paths().capath, os.environ.get("SSL_CERT_FILE")
if _folder and (not _file or Path(_file).resolve().parent == Path(_folder).resolve()):
    os.environ["SSL_CERT_DIR"] = _folder
    os.environ.pop("SSL_CERT_FILE", None)


def pytest_configure(config: pytest.Config) -> None:
    """Have skipped tests counted, and interruptions heard.

    A shell starts what runs in the background with the signal of an interruption ignored. To look for garbage
    while all tests are imported takes a third of that time, and finds none.
    """
    gc.disable()
    skips.register(config)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Have garbage looked for again, but not among modules and tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def nothing_left_in_the_process() -> Iterator[None]:
    """Takes back a command's log and signal handlers, whose test has ended, and LangChain's kept clients.

    LangChain keeps one asynchronous client for each address: its connections belong to the event loop of
    the test that made them, and a later test's server may get the same port.
    """
    root = logging.getLogger()
    level, before = root.level, set(root.handlers)
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler_before in signals.items():
        signal.signal(number, handler_before)
    for handler in set(root.handlers) - before:
        if type(handler) is logging.StreamHandler:
            root.removeHandler(handler)
    root.setLevel(level)
    clients = sys.modules.get("langchain_openai.chat_models._client_utils")
    if clients is not None:
        clients._cached_async_httpx_client.cache_clear()


pytest.register_assert_rewrite("contract")
pytest_plugins = ["pytester", "migrated_store"]
