"""`mast-trace confirm` end to end: real processes on a model that reads its input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confirmations import REPORT, Failed, failed_shop

from mast_trace_dashboards.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failed]:
    """A stored failure of the shop."""
    with failed_shop(tmp_path_factory.mktemp("shop")) as made:
        yield made


def test_the_planted_error_is_confirmed(failed: Failed, capsys: pytest.CaptureFixture[str]) -> None:
    """The earliest step whose correction helps is the planted one."""
    capsys.readouterr()
    status = run(failed.arguments("--json"))
    captured = capsys.readouterr()
    assert status == 0, captured.err
    told = json.loads(captured.out)["confirmation"]
    assert (told["status"], told["origin"], told["origin_agent"]) == (
        "confirmed",
        REPORT,
        "counter",
    )
    assert told["live_calls"] == len(failed.server.requests) - 4
    assert not failed.executed.exists()
