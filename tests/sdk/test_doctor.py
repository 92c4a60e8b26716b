"""`mast_trace.doctor`: what is recorded, with which settings, and whether the collector takes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import mast_trace
from mast_trace import doctor
from mast_trace_instrumentations.base import Instrumentor, Patch

if TYPE_CHECKING:
    from collections.abc import Callable

    from receiver import Receiver


class Drifted(Instrumentor):
    """A framework that has renamed something since."""

    framework = "drifted"
    distributions = ("pytest",)
    versions = ("1", "1000")
    patches = (
        Patch("colorsys", "rgb_to_yiq", wrapper="wrap"),
        Patch("colorsys", "rgb_to_xyz", wrapper="wrap"),
    )

    def wrap(self, wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
        return wrapped(*args, **kwargs)


class Unimportable(Drifted):
    """A framework whose own import fails."""

    framework = "unimportable"
    patches = (Patch("test_doctor_no_such_module", "Team.run", wrapper="wrap"),)


class TestEndpoint:
    """The collector's answer."""

    def test_that_takes_spans_is_no_problem(
        self, known: Callable[..., None], receiver: Receiver
    ) -> None:
        """The collector is asked with a request that holds no span."""
        found = doctor.examine(endpoint=receiver.url)
        assert found.healthy
        assert found.endpoint.accepted
        assert receiver.spans == []
        assert len(receiver.bodies) == 1


class TestFrameworks:
    """The recorded frameworks."""

    def test_targets_that_a_version_lacks_are_found(
        self, known: Callable[..., None], receiver: Receiver
    ) -> None:
        """By importing the framework, and nothing stays patched."""
        import colorsys

        known(Drifted)
        before = colorsys.rgb_to_yiq
        found = doctor.examine(endpoint=receiver.url, load_frameworks=True)
        (framework,) = found.frameworks
        assert framework.patched == ("colorsys:rgb_to_yiq",)
        assert framework.missing == ("colorsys:rgb_to_xyz",)
        assert "rgb_to_xyz" in found.problems[0]
        assert colorsys.rgb_to_yiq is before

    def test_one_that_cannot_be_imported_is_a_problem(
        self, known: Callable[..., None], receiver: Receiver
    ) -> None:
        """With the reason."""
        known(Unimportable)
        found = doctor.examine(endpoint=receiver.url, load_frameworks=True)
        assert any("test_doctor_no_such_module" in problem for problem in found.problems)

    def test_that_are_recorded_by_this_process_are_left_alone(
        self, known: Callable[..., None], receiver: Receiver
    ) -> None:
        """A program may ask itself, and learns of its own losses."""
        known(Drifted)
        mast_trace.instrument(endpoint=receiver.url)
        receiver.answers.append((401, {}))
        mast_trace.message("a", "b", "c")
        assert not mast_trace.flush()
        found = doctor.examine()
        assert found.frameworks[0].status == "on"
        assert found.delivered is not None
        assert found.delivered.refused == 1
        assert any("1 spans of this process are lost" in problem for problem in found.problems)
        mast_trace.message("a", "b", "still on")
        assert mast_trace.flush()


class TestSettings:
    """The effective settings."""

    def test_show_where_they_come_from_and_hide_secrets(
        self, known: Callable[..., None], receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The name of a header is no secret, its value is; so is a password in an address."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2")
        address = receiver.url.replace("http://", "http://me:hunter2@")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        found = doctor.examine()
        settings = {each.name: each for each in found.settings}
        assert settings["headers"].value == "authorization=***"
        assert settings["headers"].origin == "OTEL_EXPORTER_OTLP_HEADERS"
        assert settings["timeout"].origin == "default"
        assert "hunter2" not in str(found) + json.dumps(found.to_dict())


class TestCommand:
    """``python -m mast_trace doctor``."""

    @staticmethod
    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mast_trace", *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def test_prints_json_and_returns_0_when_all_is_well(self, receiver: Receiver) -> None:
        """For scripts."""
        ended = self.run("doctor", "--quick", "--json", "--endpoint", receiver.url)
        found = json.loads(ended.stdout)
        assert (ended.returncode, found["healthy"]) == (0, True)
        assert found["versions"]["opentelemetry-sdk"]

    @pytest.mark.parametrize(
        ("arguments", "variables", "code", "told"),
        [
            (["doctor", "--quick", "--endpoint", "http://127.0.0.1:9"], {}, 1, "mast-trace up"),
            (
                ["doctor"],
                {"OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"},
                2,
                "OTEL_EXPORTER_OTLP_PROTOCOL",
            ),
        ],
    )
    def test_returns_a_code_and_tells_why(
        self, arguments: list[str], variables: dict[str, str], code: int, told: str
    ) -> None:
        """A problem is printed on standard output; a setting that cannot be used without a traceback."""
        ended = self.run(*arguments, **variables)
        assert ended.returncode == code
        assert told in (ended.stdout if code == 1 else ended.stderr)
        assert "Traceback" not in ended.stderr
