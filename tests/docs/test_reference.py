"""The pages of the reference have everything that there is, and nothing else."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from code_blocks import PAGES
from starlette.routing import Mount, Route
from stores import new_store

import mast_trace
from mast_trace.experiment.lessons import KEY_VARIABLE, URL_VARIABLE
from mast_trace_collector.otlp.errors import RequestError
from mast_trace_dashboards.cli.app import app
from mast_trace_dashboards.mcp_server.endpoint import endpoints
from mast_trace_dashboards.web.app import web_app

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.documents

REFERENCE = Path(os.environ.get("MAST_TRACE_TEST_SITE", "")) / "reference"
SDK_VARIABLE = re.compile(r"OTEL_[A-Z_]+[A-Z]")


def test_the_api_is_whole() -> None:
    page = (REFERENCE / "python.html").read_text("utf-8")
    found = set(re.findall(r'id="mast_trace\.(\w+)"', page))
    assert found == {name for name in mast_trace.__all__ if name != "__version__"}


def test_every_command_has_its_section() -> None:
    page = (REFERENCE / "commands.html").read_text("utf-8")
    headings = set(re.findall(r"<h[2-5]>(mast-trace [^<]+)<", page))
    root = typer.main.get_command(app)
    context = root.make_context("mast-trace", [], resilient_parsing=True)
    assert headings == set(paths(root, context, "mast-trace"))


def paths(group: Any, context: Any, name: str) -> Iterator[str]:
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        yield f"{name} {each}"
        if hasattr(command, "list_commands"):
            yield from paths(command, context, f"{name} {each}")


def test_every_variable_of_the_sdk_is_named() -> None:
    page = (PAGES / "reference" / "settings.md").read_text("utf-8")
    sources = ("_settings.py", "content_settings.py")
    read = {
        name
        for source in sources
        for name in SDK_VARIABLE.findall((files("mast_trace") / source).read_text("utf-8"))
    }
    # Put together from a suffix, each for all signals and for traces alone; the general limit of
    # OpenTelemetry counts where that for spans is not set.
    settings = (files("mast_trace") / sources[0]).read_text("utf-8")
    suffixes = re.findall(r'_exporter_variable\("([A-Z_]+)"', settings)
    read |= {f"OTEL_EXPORTER_OTLP_{suffix}" for suffix in suffixes}
    read -= {"OTEL_EXPORTER_OTLP_TRACES", "OTEL_EXPORTER_OTLP", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"}
    named = set(SDK_VARIABLE.findall(page)) - {"OTEL_RESOURCE_ATTRIBUTES"}  # OpenTelemetry reads it
    assert named == read
    own = {URL_VARIABLE, KEY_VARIABLE, *re.findall(r'"(MAST_TRACE_[A-Z_]+)"', settings)}
    table = page.partition("## Traced programs")[2].partition("\n## ")[0]
    assert own == set(re.findall(r"MAST_TRACE_[A-Z_]+[A-Z]", table))


def test_every_page_of_the_web_view_is_named(tmp_path: Path) -> None:
    """With its methods; what is in braces is a part of the path."""
    with new_store(tmp_path / "db") as store:
        mounted = endpoints(store, writes=False, idle=1.0)
        routes = vars(web_app(store, mounted=mounted))["_app"].routes
    served = set()
    for route in routes:
        if isinstance(route, Mount):
            served.add(f"{'POST' if route.path in mounted else 'GET'} {route.path}")
        elif isinstance(route, Route):
            path = re.sub(r":\w+\}", "}", route.path)
            methods = (route.methods or set()) - {"HEAD"}
            served |= {f"{method} {path}" for method in methods if path != "/runbooks/"}
    assert requests_named("Web view") == served


def test_every_path_of_the_receivers_is_named() -> None:
    """Paths stand as texts in the modules that answer them."""
    receivers = files("mast_trace_collector") / "receivers"
    texts = (receivers / "otlp_http.py").read_text("utf-8")
    served = set(re.findall(r'[f"](/(?:v1/\w+|healthz|readyz|metrics))"', texts))
    served |= {"/v1/traces", "/v1/logs"}
    named = {request.partition(" ")[2] for request in requests_named("Receivers (4318)")}
    assert named == served


def test_every_status_of_a_refused_request_is_explained() -> None:
    page = section("Receivers (4318)")
    statuses = {each.status for each in [RequestError, *RequestError.__subclasses__()]}
    assert {str(status) for status in statuses} <= set(re.findall(r"\b\d{3}\b", page))


def section(title: str) -> str:
    page = (PAGES / "reference" / "http.md").read_text("utf-8")
    return page.partition(f"## {title}")[2].partition("\n## ")[0]


def requests_named(title: str) -> set[str]:
    return set(re.findall(r"`((?:GET|POST) /[^`]*)`", section(title)))
