"""Failures of calls in words without texts of the run, for what is kept longer than the run."""

from __future__ import annotations

import re
from typing import Final

_BEFORE: Final = r"(?:the model's endpoint (?:failed \d+ times, last|refuses the request): )?"
_KNOWN: Final = re.compile(
    rf"{_BEFORE}(?:HTTP \d+|no connection: .*|no answer within [\d.e+]+ s|no attempt was allowed"
    r"|the prompt exceeds the model's context window|the account's quota is used up|the answer has no choices|the answer is not the API's"
    r"|the day's cap of [\d.]+ USD is reached.*"
    r"|the model refused|a content filter stopped the model"
    r"|the answer was cut at the limit of output tokens"
    r"|there is no complete JSON object in the answer|the call was cancelled)",
    re.DOTALL,
)


def without_texts(failure: str) -> str:
    """Return as much of a call's failure as is known to hold no text that the call was about.

    Servers repeat a rejected request in their errors, and models speak of the run as they refuse. Words that are not
    known are dropped, so that a new failure cannot tell anything.
    """
    if not failure:
        return ""
    known = _KNOWN.match(failure)
    return known.group() if known else "the call failed, or its answer cannot be read"
