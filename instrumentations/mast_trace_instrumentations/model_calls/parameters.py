"""Parameters of a model request that are no messages: sampling, tools and the form of the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mast_trace import semconv
from mast_trace.content import content_hash, data_mark, shown
from mast_trace.spans import guarded, open_chat

_NAMES: Final = (
    *("temperature", "top_p", "top_k", "seed", "n", "stop", "stop_sequences", "logit_bias"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens"),
    *("presence_penalty", "frequency_penalty", "tools", "tool_choice", "parallel_tool_calls"),
    *("functions", "function_call", "response_format", "text", "text_format", "output_format"),
    *("output_config", "reasoning", "reasoning_effort", "thinking", "verbosity"),
)
_WORDS: Final = {"tool_choice", "function_call", "reasoning_effort", "verbosity"}
"""Parameters whose texts are words of the provider's interface."""
_LEFT_OUT: Final = {"NotGiven", "Omit"}
"""Types by which OpenAI's and Anthropic's clients mark parameters that are not sent."""


def field(item: Any, name: str) -> Any:
    """Read a field of a mapping or of one of the client's own objects."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def media_mark(kind: str, data: Any) -> str:
    """Return the placeholder for a picture, a sound or a document in a recorded text.

    Args:
        kind: media type, or the client's name for such a part.
        data: the bytes, their encoded text, or an address. An address is kept as it is; the others
            are represented by length and a hash, so that two pictures remain different.
    """
    if data is None:
        return f"[{kind}]"
    if isinstance(data, str) and "://" in data[:16]:
        return f"[{kind} {data}]"
    if not isinstance(data, str | bytes):
        # Files, paths and the like: the client reads them.
        return f"[{kind} {type(data).__name__}]"
    return f"[{kind}, {data_mark(data)}]"


def parameters_of(request: Mapping[str, Any]) -> list[str]:
    """Return the parameters of a request as ``name=value``; texts and structures as a hash.

    Args:
        request: the arguments of a client's call.
    """
    found = []
    for name in _NAMES:
        value = request.get(name)
        if value is None or type(value).__name__ in _LEFT_OUT:
            continue
        if isinstance(value, bool | int | float) or (name in _WORDS and isinstance(value, str)):
            found.append(f"{name}={value}")
        else:
            found.append(f"{name}={content_hash(_text(value))}")
    return found


def note_parameters(request: Mapping[str, Any]) -> None:
    """Write the parameters on the span of the open model call, which a framework has begun.

    The outermost client counts: it has what the program, or the framework, has asked for.
    """
    with guarded("noting a model's parameters"):
        span = open_chat()
        if span is None or not span.is_recording():
            return
        if semconv.REQUEST_PARAMETERS not in (getattr(span, "attributes", None) or {}):
            span.set_attribute(semconv.REQUEST_PARAMETERS, parameters_of(request))


def _text(value: Any) -> str:
    # Frameworks collect tools in sets, so that each execution may list them in another order.
    parts = sorted(map(_spelt, value)) if isinstance(value, list | tuple) else [_spelt(value)]
    return "\n".join(parts)


def _spelt(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    schema = getattr(value, "model_json_schema", None)
    if isinstance(value, type) and schema is not None:
        return schema()
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return type(value).__name__ if callable(value) else shown(value)
