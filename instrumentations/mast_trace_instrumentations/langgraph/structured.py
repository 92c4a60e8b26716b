"""Structured outputs: answers of a model in a form that the program prescribed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.messages import parsed
from mast_trace.untrusted_json import read_json
from mast_trace_instrumentations.langgraph.reading import leaf_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace.messages import Message

_FORMAT = "ls_structured_output_format"
"""Key under which LangChain's callbacks receive the options of `with_structured_output`."""


def is_structured(options: Mapping[str, Any]) -> bool:
    """Return whether a model is to answer in a given structure.

    Args:
        options: the keyword arguments of LangChain's callback.
    """
    params = options.get("invocation_params") or {}
    if (options.get("options") or {}).get(_FORMAT) or params.get(_FORMAT):
        return True
    if params.get("response_format"):
        return True
    # The model is forced to call one certain function: its arguments are the answer.
    forced = params.get("tool_choice")
    return isinstance(forced, dict) and bool(forced.get("name") or forced.get("function"))


def named_in(answer: Message) -> list[str]:
    """Return the texts in a structured answer, at any depth."""
    if answer.tool_calls:
        return leaf_texts([parsed(call.arguments) for call in answer.tool_calls])
    try:
        return leaf_texts(read_json(answer.content))
    except ValueError:
        return []
