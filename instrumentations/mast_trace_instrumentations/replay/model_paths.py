"""Paths of model APIs: those whose requests are answered, and those that are refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from mast_trace_instrumentations.replay import anthropic_messages, chat_completions, responses

if TYPE_CHECKING:
    from mast_trace.messages import Message
    from mast_trace.replay.tape import Exchange
    from mast_trace_instrumentations.replay.encoding import Encoded


class Interface(Protocol):
    """A provider's API, implemented by a module of this package."""

    def messages(self, request: Mapping[str, Any], /) -> list[Message]:
        """Return the messages that a request shows to the model."""

    def encode(
        self, request: Mapping[str, Any], exchange: Exchange, said: Message, number: int, /
    ) -> Encoded:
        """Encode an answer in the form that the request asks for."""


INTERFACES: dict[str, Interface] = {
    "/chat/completions": chat_completions,
    "/responses": responses,
    "/v1/messages": anthropic_messages,
}
"""Providers' APIs by the end of the request's path."""

EMBEDDINGS = "embeddings"
"""Name of requests for embeddings; among the live tools of a replay it lets them through."""
_REFUSED = (
    (r"/completions", "OpenAI's text completions"),
    (r"/embeddings|:(batch)?embedContents?|/api/embed(dings)?", EMBEDDINGS),
    (r":(stream)?generateContent", "Google's generateContent"),
    (r":(predict|rawPredict|streamRawPredict|serverStreamingPredict)", "Vertex AI"),
    (r"/model/[^/]+/(invoke|invoke-with-response-stream|converse|converse-stream)", "Bedrock"),
    (r"(:11434|ollama[^/]*)/api/(chat|generate)", "Ollama's own interface"),
    (r"cohere[^/]*/v[12]/(chat|rerank)", "Cohere's interface"),
    (r"/images/(generations|edits)", "images"),
    (r"/audio/(speech|transcriptions|translations)", "audio"),
    (r"/v1/(moderations|batches|threads/.+/runs)", "an interface of OpenAI"),
)
_PATTERNS = [(re.compile(f".*(?:{path})/?", re.IGNORECASE), name) for path, name in _REFUSED]


def answerable(method: str, path: str) -> Interface | None:
    """Return the API that answers a request; None if there is none."""
    path = path.rstrip("/")
    if method.upper() != "POST":
        return None
    return next((each for end, each in INTERFACES.items() if path.endswith(end)), None)


def refused(method: str, host: str, path: str) -> str:
    """Return the name of the model API that a request is for, if it cannot be answered; else nothing.

    Args:
        method: HTTP method.
        host: host and port, such as ``localhost:11434``.
        path: path of the URL, without a query.
    """
    if method.upper() != "POST" or answerable(method, path):
        return ""
    return next((name for pattern, name in _PATTERNS if pattern.fullmatch(host + path)), "")


def refusal(client: str, interface: str) -> str:
    """Return the text of a refusal.

    Args:
        client: name of the client library; empty for one that is answered in other interfaces.
        interface: as returned by `refused`.
    """
    if client:
        return (
            f"The program asks a model by {client} ({interface}). Only clients on httpx are answered from "
            "a recorded run."
        )
    hint = ""
    if interface == EMBEDDINGS:
        hint = (
            f" Vectors are not recorded; --set live_tools={EMBEDDINGS} lets these requests through."
        )
    return f"Requests for {interface} cannot be answered from a recorded run.{hint}"
