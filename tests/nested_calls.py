"""Spans of tool calls that lie in each other: of one call, and of several."""

from __future__ import annotations

import json
from typing import Any


def call(tool: str | None = "look", **more: Any) -> dict[str, Any]:
    given = {"gen_ai.tool.name": tool} if tool else {}
    for name in ("arguments", "result", "id"):
        if name in more:
            value = more.pop(name)
            given[f"gen_ai.tool.call.{name}"] = value if name == "id" else json.dumps(value)
    return {**given, **more}


def request(tool: str | None = "look", **more: Any) -> dict[str, Any]:
    """The spans of both sides of the Model Context Protocol."""
    return {"mcp.method.name": "tools/call", **call(tool, **more)}


TURN = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
PARIS, ROME = {"city": "Paris"}, {"city": "Rome"}
OTHER = {"scope": "mcp"}

ONE_CALL = {
    "client and server of one name": [call(), request(), request(**OTHER)],
    "a name with the server's prefix": [call("geo_look"), request(), request(**OTHER)],
    "other separators": [call("mcp__geo__look"), request()],
    "arguments on the outer span alone": [call(arguments=PARIS), request()],
    "arguments in another order, none for what is null": [
        call(arguments={"a": 1, "b": 2, "c": None}),
        request(arguments={"b": 2, "a": 1}),
    ],
    "an id that nobody knows": [call(id="unknown"), request(id="call_1")],
    "two instrumentations of one function": [call(), call(scope="openinference")],
    "one id twice": [call(id="call_1"), call(id="call_1")],
    "the same arguments twice": [call(arguments=PARIS), call(arguments=PARIS)],
    "a client that does not say what it calls": [call(), request(None), request(**OTHER)],
    "a server below something of the transport": [
        call(),
        {"gen_ai.operation.name": "POST"},
        request(**OTHER),
    ],
    "a search that the tool makes": [
        call("answer"),
        {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "x"},
    ],
}
SEVERAL_CALLS = {
    "a tool that calls another": [call("plan"), call("look")],
    "a server's tool that calls another of a longer name": [request("web_look"), request("look")],
    "a name that merely ends alike": [call("overlook"), request("look")],
    "a prefix without the protocol": [call("cached_look"), call("look", **OTHER)],
    "other arguments": [call(arguments=PARIS), request(arguments=ROME)],
    "another id": [call(id="call_1", arguments=PARIS), call(id="call_2", arguments=PARIS)],
    "a tool that calls itself": [call(arguments={"depth": 2}), call(arguments={"depth": 1})],
    "a tool that calls itself, of which nothing is recorded": [call(), call()],
    "a tool without arguments that calls itself": [call(arguments={}), call(arguments={})],
    "an agent as a tool, whose agent has that tool": [call(), TURN, request(**OTHER)],
    "a model between them": [call(), {"gen_ai.operation.name": "chat"}, call(**OTHER)],
}

THEIRS: dict[str, Any] = {"scope": "openllmetry", "apart": 0}
"""A span of another instrumentation that has a tree of its own, which begins at the same time."""
BESIDE = {
    "two instrumentations beside each other": (
        1,
        [call(arguments=PARIS, result="7"), call(arguments=PARIS, result="7", **THEIRS)],
    ),
    "one id, of which one knows the arguments": (
        1,
        [call(arguments=PARIS, id="1"), call(arguments=PARIS, **THEIRS)],
    ),
    "two equal calls at a time, of which both saw both": (
        2,
        [
            *(call(arguments=PARIS, apart=0), call(arguments=PARIS, **THEIRS)),
            *(call(arguments=PARIS, apart=0), call(arguments=PARIS, **THEIRS)),
        ],
    ),
    "two equal calls one after the other": (
        2,
        [
            *(call(arguments=PARIS, apart=0), call(arguments=PARIS, **THEIRS)),
            *(call(arguments=PARIS, apart=5), call(arguments=PARIS, **{**THEIRS, "apart": 5})),
        ],
    ),
    "the second is seen by another instrumentation": (
        2,
        [call(arguments=PARIS), call(arguments=PARIS, **{**THEIRS, "apart": 5})],
    ),
    "other arguments at the same time": (
        2,
        [call(arguments=PARIS), call(arguments=ROME, **THEIRS)],
    ),
    "nothing is known but the name": (2, [call(), call(**THEIRS)]),
    "one instrumentation saw two at a time": (
        2,
        [call(arguments=PARIS, apart=0), call(arguments=PARIS, apart=0)],
    ),
    "an agent as a tool, whose agent uses it alike": (
        2,
        [call(arguments=PARIS), TURN, call(arguments=PARIS, **OTHER)],
    ),
}
"""The number of calls that spans are of; one that is ``apart`` has no parent, and begins so many seconds later."""
