"""A local OpenAI-compatible server that answers from a script: real frameworks run against it.

The script is a function from a request (the parsed JSON body of `/v1/chat/completions` or of
`/v1/responses`) to a `Reply`. Streaming, tool calls, token usage, error statuses and delays are
served as the real API serves them; no key is checked and nothing leaves the machine.

Run it by itself to try a program by hand::

    python scripted_llm.py --port 8085
"""

from __future__ import annotations

import argparse
import itertools
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Request = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call that the model asks for; ``arguments`` may be JSON text to send it as it is."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True)
class Reply:
    """The model's answer.

    Attributes:
        text: the answer; empty beside tool calls.
        calls: tool calls.
        status: an HTTP status other than 200 makes it an error.
        delay: seconds before the answer.
        body: raw body, sent instead of anything well-formed.
        headers: more response headers (such as Retry-After).
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200
    delay: float = 0.0
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


Script = "Callable[[Request], Reply | str]"


def in_turn(*replies: Reply | str) -> Callable[[Request], Reply | str]:
    """Return a script that gives the replies one after the other, the last one for ever."""
    lock = threading.Lock()
    remaining = iter(replies)
    last: list[Reply | str] = []

    def script(_request: Request) -> Reply | str:
        with lock:
            last[:] = [next(remaining, last[0] if last else Reply(status=500))]
            return last[0]

    return script


def by_speaker(
    replies: Mapping[str, Sequence[Reply | str]],
) -> Callable[[Request], Reply | str]:
    """Return a script that gives each agent its replies in turn.

    The acting agent is the one whose name comes first in the system prompt. An agent without
    replies left gets an error that names it, so that a wrong script is found at once.
    """
    lock = threading.Lock()
    remaining = {name: list(texts) for name, texts in replies.items()}

    def script(request: Request) -> Reply | str:
        prompt = system_text(request)
        places = {name: prompt.find(name) for name in remaining if name in prompt}
        if not places:
            return Reply(status=400, text=f"no agent of the script is named in: {prompt[:200]}")
        speaker = min(places, key=places.__getitem__)
        with lock:
            if remaining[speaker]:
                return remaining[speaker].pop(0)
        return Reply(status=400, text=f"the script has no more replies for {speaker}")

    return script


def system_text(request: Request) -> str:
    """Return the system prompt of a request, in which scripts usually find the acting agent."""
    parts = [
        _flat(message.get("content"))
        for message in messages_of(request)
        if message.get("role") in {"system", "developer"}
    ]
    return "\n".join([str(request.get("instructions") or ""), *parts]).strip()


def last_text(request: Request) -> str:
    """Return the text of the last message of a request."""
    messages = messages_of(request)
    return _flat(messages[-1].get("content", messages[-1].get("output"))) if messages else ""


def messages_of(request: Request) -> list[dict[str, Any]]:
    """Return the messages of a request of either API."""
    if "messages" in request:
        return list(request["messages"])
    given = request.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(
        str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content or ()
    )


class ScriptedLLM:
    """The server. Use it as a context manager; ``url`` ends in ``/v1``.

    Attributes:
        requests: every request received so far, in order of arrival.
    """

    def __init__(self, script: Callable[[Request], Reply | str], port: int = 0) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._ids = itertools.count(1)
        owner = self

        class Handler(BaseHTTPRequestHandler):
            # Head and body go out in two segments: with Nagle's algorithm the second would wait for
            # the acknowledgement of the first, which clients delay by 40 ms.
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._json(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                request = json.loads(self.rfile.read(length) or b"{}")
                owner.requests.append(request)
                reply = owner.script(request)
                reply = Reply(text=reply) if isinstance(reply, str) else reply
                time.sleep(reply.delay)
                responses = self.path.rstrip("/").endswith("/responses")
                if reply.body is not None:
                    self._send(reply.status, "application/json", reply.body.encode(), reply.headers)
                elif reply.status != 200:
                    error = {
                        "error": {"message": reply.text or "scripted error", "type": "scripted"}
                    }
                    self._json(reply.status, error, reply.headers)
                elif request.get("stream"):
                    events = _responses_events if responses else _chat_events
                    whole = owner.answer(request, reply, responses=responses)
                    data = b"".join(events(whole, request))
                    self._send(200, "text/event-stream", data)
                else:
                    self._json(200, owner.answer(request, reply, responses=responses))

            def _json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
                self._send(status, "application/json", json.dumps(value).encode(), headers)

            def _send(
                self, status: int, kind: str, data: bytes, headers: dict[str, str] | None = None
            ) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def __enter__(self) -> ScriptedLLM:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: Request, reply: Reply, *, responses: bool) -> dict[str, Any]:
        """Return the body of a complete, not streamed answer."""
        number = next(self._ids)
        calls = [
            (
                call.id or f"call_{number}_{i}",
                call.name,
                call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
            )
            for i, call in enumerate(reply.calls)
        ]
        prompt = sum(len(json.dumps(m)) for m in messages_of(request)) // 4 + 1
        completion = (len(reply.text) + sum(len(c[2]) for c in calls)) // 4 + 1
        model = request.get("model", "scripted")
        if responses:
            return _responses_body(number, model, reply.text, calls, prompt, completion)
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if calls:
            message["tool_calls"] = [
                {"id": i, "type": "function", "function": {"name": n, "arguments": a}}
                for i, n, a in calls
            ]
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [
                {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
            ],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            },
        }


def _responses_body(
    number: int, model: str, text: str, calls: Sequence[tuple[str, str, str]], prompt: int, out: int
) -> dict[str, Any]:
    output: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "id": f"fc_{i}",
            "call_id": i,
            "name": n,
            "arguments": a,
            "status": "completed",
        }
        for i, n, a in calls
    ]
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": prompt,
            "output_tokens": out,
            "total_tokens": prompt + out,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _chat_events(whole: dict[str, Any], request: Request) -> Iterator[bytes]:
    """Cut a complete answer into the chunks of the streaming API."""
    base = {key: whole[key] for key in ("id", "created", "model")}
    base["object"] = "chat.completion.chunk"
    choice = whole["choices"][0]
    message = choice["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return b"data: " + json.dumps({**base, "choices": choices}).encode() + b"\n\n"

    yield chunk({"role": "assistant", "content": ""})
    text = message["content"] or ""
    for start in range(0, len(text), 16):
        yield chunk({"content": text[start : start + 16]})
    for index, call in enumerate(message.get("tool_calls", ())):
        yield chunk({"tool_calls": [{"index": index, **call}]})
    yield chunk({}, choice["finish_reason"])
    if (request.get("stream_options") or {}).get("include_usage"):
        yield (
            b"data: "
            + json.dumps({**base, "choices": [], "usage": whole["usage"]}).encode()
            + b"\n\n"
        )
    yield b"data: [DONE]\n\n"


def _responses_events(whole: dict[str, Any], _request: Request) -> Iterator[bytes]:
    sequence = itertools.count()

    def event(kind: str, **more: Any) -> bytes:
        data = {"type": kind, "sequence_number": next(sequence), **more}
        return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()

    yield event("response.created", response={**whole, "status": "in_progress", "output": []})
    for index, item in enumerate(whole["output"]):
        yield event("response.output_item.added", output_index=index, item=item)
        for part in item.get("content", ()):
            yield event(
                "response.output_text.delta",
                output_index=index,
                content_index=0,
                item_id=item["id"],
                delta=part["text"],
                logprobs=[],
            )
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=whole)


def main() -> None:
    """Answer every request with the last message, so that any program runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8085)
    options = parser.parse_args()
    with ScriptedLLM(lambda request: f"You said: {last_text(request)}", options.port) as server:
        print(f"OPENAI_BASE_URL={server.url} OPENAI_API_KEY=scripted")
        threading.Event().wait()


if __name__ == "__main__":
    main()
