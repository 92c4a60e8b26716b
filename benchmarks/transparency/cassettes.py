"""A pytest plugin that CrewAI's own tests need and its source distribution lacks: it locates cassettes.

The answers of models were recorded beside the tests, in folders that mirror theirs. A request that no
cassette holds fails; no request reaches a network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


class Cassettes:
    """The plugin: fixtures that pytest-recording asks for."""

    @pytest.fixture(scope="module")
    def vcr_cassette_dir(self, request: pytest.FixtureRequest) -> str:
        """The folder of a module's cassettes."""
        tests = request.config.invocation_params.dir / "tests"
        return str(tests / "cassettes" / request.path.parent.relative_to(tests))

    @pytest.fixture(scope="module")
    def vcr_config(self) -> dict[str, Any]:
        """The settings of pytest-recording: requests match by address alone, as bodies hold ids and dates."""
        return {"record_mode": "none", "match_on": ["method", "scheme", "host", "port", "path"]}

    @pytest.fixture(autouse=True)
    def storage(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give each test a storage directory of its own."""
        monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path))


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin after pytest-recording, so that its fixtures override those of that plugin."""
    config.pluginmanager.register(Cassettes(), "transparency-cassettes")
