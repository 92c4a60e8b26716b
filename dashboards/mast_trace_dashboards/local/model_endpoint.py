"""Checks whether the model's endpoint accepts connections, for the message when a judge starts."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies

from mast_trace.urls import parse_url

if TYPE_CHECKING:
    from mast_trace_judge.config import JudgeConfig

_OPENAI: Final = "https://api.openai.com/v1"
_SECONDS: Final = 2.0


def unreachable(config: JudgeConfig) -> str:
    """Return why no connection to the endpoint can be made; empty if one can, or if none is needed.

    Nothing is sent. Behind a proxy nothing is tried, because only the proxy could test it.
    """
    url = parse_url(config.judge_base_url or _OPENAI)
    if not config.uses_model or {url.scheme, "all"} & getproxies().keys():
        return ""
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection((url.host.strip("[]"), port), timeout=_SECONDS).close()
    except OSError as error:
        return f"its endpoint {url.host}:{port} cannot be connected to: {error.strerror or error}"
    return ""
