"""A webhook for every test that wants one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from webhook_receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook_receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made
