"""No command shows a password, wherever it stands and however it is written."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import string
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_trace.exceptions import MastTraceError
from mast_trace_dashboards.alerts.evaluator import Collectors
from mast_trace_dashboards.alerts.outbox import Webhook
from mast_trace_dashboards.cli.app import run
from mast_trace_dashboards.grafana.dashboards import push

if TYPE_CHECKING:
    from pathlib import Path

    from clickhouse_connect.driver.client import Client

PASSWORDS = st.text(string.printable, max_size=12).map(lambda middle: f"Zq{middle}qZ")
FORMS = (
    "http://user:{}@127.0.0.1:1/db",
    "http://user:{}@127.0.0.1:1",
    "http://127.0.0.1:1/db?password={}",
    "clickhouse://127.0.0.1:1/db?user=me&password={}",
    "user:{}@127.0.0.1:1/db",
    "http://user:{}",
)
URLS = (
    st.tuples(st.sampled_from(FORMS), PASSWORDS, st.booleans())
    .map(lambda made: made[0].format(quote(made[1], safe="") if made[2] else made[1]))
    .filter(
        # Every reader takes the text after an @ there for a host.
        lambda url: not (url.startswith("http://user:") and url.endswith("qZ") and "@" in url)
    )
)


@pytest.fixture(autouse=True)
def one_attempt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The driver tries three times to reach a server: once is enough to hear what it says."""
    import clickhouse_connect

    real = clickhouse_connect.get_client

    def get_client(**options: object) -> Client:
        from clickhouse_connect.driver.httputil import get_pool_manager

        if os.environ.get("http_proxy"):
            return real(**options)
        return real(**{**options, "pool_mgr": get_pool_manager(retries=0)})

    monkeypatch.setattr(clickhouse_connect, "get_client", get_client)
    monkeypatch.setenv("MAST_TRACE_DATA_DIR", str(tmp_path / "none"))


def told(*arguments: str, **variables: str) -> str:
    """All that a command line writes and logs; it may fail, but not with a traceback."""
    out, err, log = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "2000")
            for name, value in variables.items():
                patch.setenv(name, value)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                run(arguments)
    finally:
        logging.getLogger().removeHandler(handler)
    text = out.getvalue() + err.getvalue() + log.getvalue()
    assert "Traceback" not in text
    assert text
    return text


def clean(text: str) -> None:
    flat = "".join(text.split())
    assert "Zq" not in flat
    assert "qZ" not in flat


quickly = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@quickly
@given(url=URLS, as_json=st.booleans())
def test_config(url: str, as_json: bool) -> None:
    shape = ("--json",) if as_json else ()
    clean(told("config", *shape, MAST_TRACE_DATABASE_URL=url))
    clean(told("config", *shape, MAST_TRACE_JUDGE_BASE_URL=url))
    clean(told("config", *shape, MAST_TRACE_ALERT_WEBHOOK=url))


@quickly
@given(url=URLS)
def test_commands_that_read_a_store(url: str) -> None:
    clean(told("runs", "--url", url))


@quickly
@given(url=URLS)
def test_doctor(url: str) -> None:
    clean(told("doctor", "--quick", "--endpoint", url))


@quickly
@given(url=URLS)
def test_what_talks_http(url: str) -> None:
    printed = []
    for act in (lambda: Collectors([url]).refused(0.0), lambda: list(push(url, "token"))):
        with pytest.raises(MastTraceError) as caught:
            act()
        printed.append(str(caught.value))
    clean("".join(printed))


@pytest.mark.parametrize("password", ["Zqsecret-secretqZ", "Zqse/cretqZ", "Zq@#secretqZ"])
def test_a_proxy_of_the_environment(password: str) -> None:
    """Nothing listens there; what cannot be read is refused before a library repeats it."""
    proxy = f"http://user:{password}@127.0.0.1:1"
    proxies = {"http_proxy": proxy, "no_proxy": "", "NO_PROXY": ""}
    clean(told("runs", "--url", "http://192.0.2.1/db", **proxies))
    clean(told("doctor", "--quick", "--endpoint", "http://192.0.2.1", **proxies))


def test_an_alert_that_cannot_be_delivered(caplog: pytest.LogCaptureFixture) -> None:
    webhook = Webhook("http://user:ZqsecretqZ@127.0.0.1:1/hook")
    problem = webhook.post({}, "key").problem
    assert problem
    clean(problem + webhook.label + caplog.text)


@pytest.mark.parametrize(
    ("command", "warned"), [(("collect",), True), (("alerts", "run"), True), (("runs",), False)]
)
def test_a_password_in_the_list_of_processes(command: tuple[str, ...], warned: bool) -> None:
    """A command that goes on says that everyone sees it; one that ends at once does not."""
    printed = told(*command, "--url", "http://user:secret@127.0.0.1:1/bad-name")
    assert ("the list of processes shows the password" in printed) is warned
    assert "secret" not in printed
    assert "MAST_TRACE_DATABASE_URL" in printed or not warned
