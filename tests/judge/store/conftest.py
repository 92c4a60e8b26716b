"""Tests of the store without a model of the developer."""

import pytest


@pytest.fixture(autouse=True)
def _no_model_of_the_developer(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MAST_TRACE_JUDGE_MODEL"):
        monkeypatch.delenv(name, raising=False)
