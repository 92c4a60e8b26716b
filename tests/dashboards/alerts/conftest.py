"""A webhook and a page of metrics for every test that wants one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from collector_metrics import metrics_page
from webhook_receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector_metrics import Page
    from webhook_receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def page() -> Iterator[Page]:
    with metrics_page() as made:
        yield made
