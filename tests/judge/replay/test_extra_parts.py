"""Parts of a recorded answer beside its text are served as the program had them."""

from __future__ import annotations

import json
import math

from mast_trace.replay.tape import Exchange
from mast_trace_instrumentations.replay.encoding import extra_of


def test_numbers_that_strict_json_lacks_stay_numbers() -> None:
    """A provider that writes ``-Infinity`` for an impossible token is read by its client as a number."""
    written = json.dumps({"logprobs": [{"token": "x", "logprob": -math.inf}]})
    extra = extra_of(Exchange("writer", (), None, extra=written))
    assert extra["logprobs"][0]["logprob"] == -math.inf


def test_parts_that_cannot_be_read_are_none() -> None:
    for extra in ("", "{", "[1]", "[" * 100_000):
        assert extra_of(Exchange("writer", (), None, extra=extra)) == {}
