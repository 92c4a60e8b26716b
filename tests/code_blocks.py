"""Finds the code blocks of documents by their fences, and runs them as a reader would.

The words after a block's language say what a test does with it: ``run`` runs a Python program against a
scripted model and a receiver, ``pytest`` hands it to pytest, ``replay`` replays the program of the block ``clerk``, ``framework=NAME`` leaves it to the tests of
this framework, in whose environment it is installed. A block without such a word is not run.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from program_runs import run_program
from receiver import receiving
from scripted_llm import Call, Reply, ScriptedLLM, messages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs"
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        place: the document and the line, for messages.
        language: the first word after the fence; empty if there is none.
        words: the words that follow.
        text: the text between the fences, without their indentation.
    """

    place: str
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def framework(self) -> str:
        """The framework in whose environment the block is run; empty if in the main one."""
        named = (word for word in self.words if word.startswith("framework="))
        return next(named, "").removeprefix("framework=")


def blocks_of(document: Path) -> Iterator[Block]:
    """Yield the blocks of a document in their order."""
    opened: re.Match[str] | None = None
    lines: list[str] = []
    begin = 0
    for number, line in enumerate(document.read_text("utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence:
                opened, lines, begin = fence, [], number
        elif fence and fence["fence"].startswith(opened["fence"]) and not fence["info"].strip():
            words = opened["info"].replace("{code-block}", "").split()
            place = f"{document.relative_to(ROOT)}:{begin}"
            yield Block(place, words[0] if words else "", tuple(words[1:]), "\n".join(lines) + "\n")
            opened = None
        else:
            lines.append(line.removeprefix(opened["indent"]))
    assert opened is None, f"{document}: the block of line {begin} does not end"


@dataclass(frozen=True)
class Ran:
    """The result of a program.

    Attributes:
        output: its standard output.
        errors: its standard error.
        spans: the spans that its receiver got.
    """

    output: str
    errors: str
    spans: list[Span]

    def named(self, operation: str) -> list[str]:
        """Return the names of the spans of one operation, such as ``invoke_agent``."""
        prefix = f"{operation} "
        return [
            span.name.removeprefix(prefix) for span in self.spans if span.name.startswith(prefix)
        ]


def run(
    block: Block,
    folder: Path,
    *command: str,
    prepare: Callable[[str], None] = lambda _address: None,
    **variables: str,
) -> Ran:
    """Run a block as a program of its own, and assert that it ends without an error.

    Args:
        block: the program.
        folder: an empty folder, in which the block is written to a file and runs.
        command: the command that runs the file; Python if none is given.
        prepare: called with the scripted model's address before the program is started.
        variables: further environment variables.
    """
    file = folder / "test_program.py"
    file.write_text(block.text, "utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    with receiving() as receiver, ScriptedLLM(obliging) as model:
        prepare(model.url)
        ended = run_program(
            *(command or (sys.executable,)),
            str(file),
            cwd=folder,
            env={
                **clean,
                "OPENAI_API_KEY": "scripted",
                "OPENAI_BASE_URL": model.url,
                "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
                "CREWAI_DISABLE_TELEMETRY": "true",
                "CREWAI_TRACING_ENABLED": "false",
                "CREWAI_TESTING": "true",
                **variables,
            },
            timeout=150,
        )
    told = f"{block.place}\n{ended.stdout}\n{ended.stderr}"
    assert ended.returncode == 0, told
    assert "Traceback" not in ended.stderr, told
    return Ran(ended.stdout, ended.stderr, receiver.spans)


def obliging(request: dict[str, Any]) -> Reply | str:
    """Answer as a model that calls the first tool offered to it once, and then answers in words."""
    messages = messages_of(request)
    answered = any(
        each.get("role") == "tool" or each.get("type") == "function_call_output"
        for each in messages
    )
    tools = [tool.get("function", tool) for tool in request.get("tools") or ()]
    if tools and not answered:
        return Reply(calls=(Call(tools[0]["name"], _arguments(tools[0].get("parameters") or {})),))
    return "The kettle of order 4711 costs 59 EUR."


def _arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that a schema allows."""
    samples = {"integer": 4711, "number": 2.5, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties") or {}
    return json.loads(
        json.dumps({name: samples.get(each.get("type"), "x") for name, each in properties.items()})
    )
