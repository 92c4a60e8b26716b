"""`mast_trace.instrument()`: discovery, settings, what it raises and what it only warns of."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import mast_trace
from mast_trace._session import current_session
from mast_trace._settings import SDKSettings
from mast_trace.content_settings import content_from_environment
from mast_trace.exceptions import ConfigurationError, InstrumentationError, UnsupportedVersion
from mast_trace_instrumentations.base import Instrumentor, Patch

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace.content import Capture


class Team(Instrumentor):
    """Instruments a stand-in for a framework that is always installed: the JSON module."""

    framework = "team"
    distributions = ("pytest",)
    versions = ("1", "1000")
    patches = (
        Patch("json", "dumps", wrapper="wrap"),
        Patch("colorsys", "rgb_to_yiq", wrapper="wrap"),
    )

    def wrap(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        run = self.telemetry.run("team")
        try:
            return wrapped(*args, **kwargs)
        finally:
            run.end()


class TooNew(Team):
    """A framework in a version that is not supported yet."""

    framework = "too_new"
    versions = ("1", "2")


class Absent(Team):
    """A framework that is not installed."""

    framework = "absent"
    distributions = ("mast-trace-no-such-distribution",)


class Broken(Team):
    """An instrumentation with a defect."""

    framework = "broken"

    def started(self) -> None:
        raise KeyError("defect")


def names(exporter: InMemorySpanExporter) -> list[str]:
    return [span.name for span in exporter.get_finished_spans()]


@pytest.fixture
def memory() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(memory: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    return provider


class TestDiscovery:
    """The frameworks that are turned on."""

    def test_reports_what_is_on_what_waits_and_what_is_not(
        self, known: Callable[..., None], provider: TracerProvider
    ) -> None:
        """Everything that is known is in the report, with the reason where it is not on."""
        known(Team, TooNew, Absent)
        report = mast_trace.instrument(tracer_provider=provider)
        status = {each.name: each.status for each in report.frameworks}
        assert status == {"team": "on", "too_new": "unsupported", "absent": "not installed"}
        assert report.active == ("team",)
        team = next(each for each in report.frameworks if each.name == "team")
        assert team.patched == ("json:dumps",)
        assert team.waiting == ("colorsys",)
        assert "too_new" in str(report)
        assert "not supported" in str(report)

    @pytest.mark.parametrize("kind", [TooNew, Broken])
    def test_warns_once_of_one_that_is_not_recorded(
        self,
        known: Callable[..., None],
        provider: TracerProvider,
        caplog: pytest.LogCaptureFixture,
        kind: type[Instrumentor],
    ) -> None:
        """One line, which names the framework; a version or a defect keeps neither others nor the program from working."""
        known(kind, Team)
        with caplog.at_level(logging.WARNING, "mast_trace"):
            report = mast_trace.instrument(tracer_provider=provider)
        (line,) = caplog.messages
        assert kind.framework in line
        assert report.active == ("team",)

    @pytest.mark.parametrize(
        ("kind", "error", "says"),
        [
            (Absent, InstrumentationError, "pip install mast-trace-no-such-distribution"),
            (TooNew, UnsupportedVersion, "not supported"),
            (Broken, InstrumentationError, "KeyError"),
        ],
    )
    def test_raises_for_a_framework_that_was_named(
        self,
        known: Callable[..., None],
        provider: TracerProvider,
        kind: type[Instrumentor],
        error: type[Exception],
        says: str,
    ) -> None:
        """A framework that is asked for explicitly must work; nothing stays half done."""
        import json

        known(Team, kind)
        before = json.dumps
        with pytest.raises(error, match=says):
            mast_trace.instrument(frameworks=["team", kind.framework], tracer_provider=provider)
        assert json.dumps is before
        assert current_session() is None

    def test_raises_for_a_name_that_nobody_knows(
        self,
        known: Callable[..., None],
        provider: TracerProvider,
        memory: InMemorySpanExporter,
    ) -> None:
        """A typing error is answered with what there is, and ends no session that is on."""
        known(Team)
        for _ in range(2):
            before = current_session()
            with pytest.raises(ConfigurationError, match=r"'taem'.*known: team"):
                mast_trace.instrument(frameworks=["taem"], tracer_provider=provider)
            assert current_session() is before
            mast_trace.instrument(frameworks=[], tracer_provider=provider)
        mast_trace.message("a", "b", "c")
        assert names(memory) == ["send_message a"]

    @pytest.mark.parametrize(
        ("names", "active"),
        [("mast_trace_team", ()), ("flask, mast_trace_team", ()), ("*", ()), ("team", ("team",))],
    )
    def test_the_environment_switches_frameworks_off(
        self,
        known: Callable[..., None],
        provider: TracerProvider,
        monkeypatch: pytest.MonkeyPatch,
        names: str,
        active: tuple[str, ...],
    ) -> None:
        """By the name under which OpenTelemetry knows our entry point; ``team`` would be another tool's."""
        known(Team)
        monkeypatch.setenv("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", names)
        report = mast_trace.instrument(tracer_provider=provider)
        assert report.active == active
        assert report.frameworks[0].status == ("on" if active else "switched off")


class TestIdempotence:
    """Calling it more than once, and undoing it."""

    def test_a_second_call_records_nothing_twice(
        self,
        known: Callable[..., None],
        provider: TracerProvider,
        memory: InMemorySpanExporter,
    ) -> None:
        """One call of the framework is one run."""
        import json

        known(Team)
        first = mast_trace.instrument(tracer_provider=provider)
        assert mast_trace.instrument() == first
        json.dumps(1)
        assert names(memory) == ["invoke_workflow team"]

    def test_a_second_call_adds_frameworks(
        self, known: Callable[..., None], provider: TracerProvider
    ) -> None:
        """First none, then all."""
        known(Team)
        assert mast_trace.instrument(frameworks=[], tracer_provider=provider).active == ()
        assert mast_trace.instrument().active == ("team",)

    def test_a_second_call_with_other_settings_says_that_they_are_ignored(
        self,
        known: Callable[..., None],
        provider: TracerProvider,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """The warning lists only settings that were given and differ."""
        known(Team)
        mast_trace.instrument(tracer_provider=provider, capture_content=False)
        mast_trace.instrument()
        mast_trace.instrument(capture_content=False)
        assert caplog.messages == []
        mast_trace.instrument(capture_content="full", service_name="other")
        assert "service_name and capture_content" in caplog.text

    def test_uninstrument_puts_everything_back(
        self,
        known: Callable[..., None],
        provider: TracerProvider,
        memory: InMemorySpanExporter,
    ) -> None:
        """The framework, the manual functions; twice is harmless."""
        import json

        known(Team)
        before = json.dumps
        mast_trace.instrument(tracer_provider=provider)
        assert json.dumps is not before
        mast_trace.uninstrument()
        mast_trace.uninstrument()
        assert json.dumps is before
        assert mast_trace.message("a", "b", "c") == ""
        assert names(memory) == []

    def test_it_takes_over_from_opentelemetry_instrument(
        self,
        known: Callable[..., None],
        provider: TracerProvider,
        memory: InMemorySpanExporter,
    ) -> None:
        """An instance that something else turned on before does not make every span double."""
        import json

        known(Team)
        other = Team()
        other.instrument(tracer_provider=provider)
        mast_trace.instrument(tracer_provider=provider)
        json.dumps(1)
        assert names(memory) == ["invoke_workflow team"]


class TestProviders:
    """The tracer provider that makes the spans."""

    def test_the_global_one_is_left_alone(self, closed_port: int) -> None:
        """An application's own tracing is not mast-trace's to set up."""
        before = trace.get_tracer_provider()
        mast_trace.instrument(frameworks=[], endpoint=f"http://127.0.0.1:{closed_port}")
        assert trace.get_tracer_provider() is before

    def test_one_that_is_handed_in_is_used(
        self,
        provider: TracerProvider,
        memory: InMemorySpanExporter,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Spans go its way, and `flush` asks it, in milliseconds."""
        report = mast_trace.instrument(frameworks=[], tracer_provider=provider)
        mast_trace.message("a", "b", "c")
        assert names(memory) == ["send_message a"]
        asked: list[int] = []
        monkeypatch.setattr(provider, "force_flush", lambda wait: asked.append(wait) or wait > 9)
        assert [mast_trace.flush(seconds) for seconds in (2.5, 0.001)] == [True, False]
        assert asked == [2500, 1]
        assert report.endpoint == ""
        mast_trace.uninstrument()
        provider.get_tracer("app").start_span("still alive").end()
        assert names(memory) == ["send_message a", "still alive"]

    def test_one_that_is_handed_in_has_its_own_endpoint(self, provider: TracerProvider) -> None:
        """An endpoint and a tracer provider together are refused."""
        with pytest.raises(ConfigurationError, match="endpoint="):
            mast_trace.instrument(tracer_provider=provider, endpoint="http://127.0.0.1:1")

    def test_runs_are_children_of_the_applications_span(
        self, captured_spans: Any, provider: TracerProvider
    ) -> None:
        """Runs are recorded even if the application does not sample its span."""
        from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

        tracer = TracerProvider(sampler=ALWAYS_OFF).get_tracer("app")
        with tracer.start_as_current_span("request") as request, mast_trace.run("inside"):
            pass
        (run,) = captured_spans.spans
        assert run.parent.span_id == request.get_span_context().span_id


class TestEnvironment:
    """OpenTelemetry's own variables."""

    def test_the_sdk_can_be_switched_off(
        self, known: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The SDK's own switch turns everything off."""
        known(Team)
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
        report = mast_trace.instrument()
        assert "OTEL_SDK_DISABLED" in str(report)
        assert current_session() is None

    @pytest.mark.parametrize(
        "given", ["collector", "localhost:4318", "ftp://c", "http://[::1", "//"]
    )
    def test_an_endpoint_that_is_none_is_answered_with_one(
        self, monkeypatch: pytest.MonkeyPatch, given: str
    ) -> None:
        """The message names the source of the address, and shows a valid one."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", given)
        expected = r"OTEL_EXPORTER_OTLP_ENDPOINT.*[Gg]ive one such as http://127\.0\.0\.1:4318"
        with pytest.raises(ConfigurationError, match=expected):
            mast_trace.instrument(frameworks=[])

    @pytest.mark.parametrize(
        ("variables", "argument", "endpoint"),
        [
            ({}, None, "http://127.0.0.1:4318/v1/traces"),
            ({"ENDPOINT": "http://c:9"}, None, "http://c:9/v1/traces"),
            ({"ENDPOINT": "http://c:9/otlp/"}, None, "http://c:9/otlp/v1/traces"),
            (
                {"ENDPOINT": "http://c:9", "TRACES_ENDPOINT": "http://d:8/in"},
                None,
                "http://d:8/in",
            ),
            *(
                ({"TRACES_ENDPOINT": "http://d:8/in"}, f"http://c:9{path}", "http://c:9/v1/traces")
                for path in ("", "/", "/v1/traces")
            ),
            ({"PROTOCOL": "grpc"}, None, "http://127.0.0.1:4317"),
            (
                {"PROTOCOL": "grpc", "TRACES_PROTOCOL": "http/protobuf"},
                "http://c",
                "http://c/v1/traces",
            ),
            ({"PROTOCOL": "grpc", "ENDPOINT": "c:9"}, None, "https://c:9"),
            ({"PROTOCOL": "grpc", "TRACES_ENDPOINT": "http://c:9"}, None, "http://c:9"),
        ],
    )
    def test_the_endpoint_follows_otlp(
        self,
        monkeypatch: pytest.MonkeyPatch,
        variables: dict[str, str],
        argument: str | None,
        endpoint: str,
    ) -> None:
        """The general address is a base, the one for traces is complete and wins, and an argument may be either.

        One for gRPC has no path, and is a secure one if it has no scheme.
        """
        for name, value in variables.items():
            monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
        assert SDKSettings.resolve(endpoint=argument).endpoint.value == endpoint

    @pytest.mark.parametrize(
        ("name", "general", "of_traces", "read"),
        [
            ("HEADERS", "z=9", "a=1,B=x%20y", {"a": "1", "b": "x y"}),
            ("TIMEOUT", "9", "0.5", 0.5),
            ("COMPRESSION", "none", "GZip", "gzip"),
            ("CERTIFICATE", "/z", "/c", "/c"),
            ("CLIENT_CERTIFICATE", "/z", "/c", "/c"),
            ("CLIENT_KEY", "/z", "/k", "/k"),
        ],
    )
    def test_the_variable_for_traces_wins(
        self, monkeypatch: pytest.MonkeyPatch, name: str, general: str, of_traces: str, read: Any
    ) -> None:
        """The general one counts where it is not set."""
        for variable, value in ((name, general), (f"TRACES_{name}", of_traces)):
            monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{variable}", value)
            found = getattr(SDKSettings.resolve(), name.lower())
            assert found.origin == f"OTEL_EXPORTER_OTLP_{variable}"
        assert found.value == read
        assert SDKSettings.resolve(headers={"c": "3"}).headers.value == {"c": "3"}

    def test_the_service_is_named_after_the_variable_or_the_program(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No run appears as unknown_service."""
        program = mast_trace.instrument(frameworks=[]).service_name
        assert program
        assert not program.startswith("unknown_service")
        mast_trace.uninstrument()
        monkeypatch.setenv("OTEL_SERVICE_NAME", "desk")
        assert mast_trace.instrument(frameworks=[]).service_name == "desk"

    @pytest.mark.parametrize(
        ("variable", "value", "says"),
        [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:port", "scheme://user"),
            *(
                ("OTEL_EXPORTER_OTLP_TIMEOUT", value, "seconds")
                for value in ("soon", "0", "-1", "nan", "inf")
            ),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "rar", "gzip"),
            ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "1 MiB", "number of bytes"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "nope", "no_content"),
        ],
    )
    def test_a_value_that_cannot_be_used_is_named(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
    ) -> None:
        """With its variable, and with what would do."""
        monkeypatch.setenv(variable, value)
        with pytest.raises(ConfigurationError, match=says) as raised:
            mast_trace.instrument(frameworks=[])
        assert variable in str(raised.value)
        # An address may hold a password.
        assert (value in str(raised.value)) != variable.endswith("ENDPOINT")

    def test_grpc_without_its_package_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Grpcio comes with an extra."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        monkeypatch.setitem(sys.modules, "grpc", None)
        with pytest.raises(ConfigurationError, match=r"mast-trace\[grpc\]"):
            mast_trace.instrument(frameworks=[])

    @pytest.mark.parametrize(
        ("values", "captured"),
        [
            ("true 1 SPAN_ONLY SPAN_AND_EVENT", True),
            ("full FULL", "full"),
            ("false 0 NO_CONTENT EVENT_ONLY", False),
        ],
    )
    def test_content_follows_the_genai_variable(
        self, monkeypatch: pytest.MonkeyPatch, values: str, captured: Capture
    ) -> None:
        """Old spelling and new, by whatever reads it; an argument wins."""
        for value in values.split():
            monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
            assert SDKSettings.resolve().content.capture == captured
            assert content_from_environment().capture == captured
            for argument in (True, False, "full"):
                assert SDKSettings.resolve(capture_content=argument).content.capture == argument


def test_finding_frameworks_imports_none() -> None:
    """A program that uses one framework does not pay for the others that are installed."""
    program = """
import sys
import mast_trace
mast_trace.instrument()
loaded = {name.split(".")[0] for name in sys.modules} | {"google.genai"} & set(sys.modules)
frameworks = {"langgraph", "langchain_core", "ag2", "autogen", "crewai", "pydantic"}
print(loaded & (frameworks | {"openai", "anthropic", "google.genai", "litellm", "mcp"}))
"""
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            program,
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert found.stdout.strip() == "set()"


def test_a_program_without_metadata_runs_and_says_so(tmp_path: Path) -> None:
    """Frozen programs (PyInstaller) bring modules, and metadata only where they are told to."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "mast_trace").symlink_to(Path(mast_trace.__file__).parent)
    for one in Path(pytest.__file__).parents[1].iterdir():
        if not one.name.startswith("mast_trace"):
            (modules / one.name).symlink_to(one)
    program = "import mast_trace, sys; print(mast_trace.instrument(endpoint='http://127.0.0.1:9'))"
    result = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(modules)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "--copy-metadata mast-trace" in result.stderr
