"""A framework of forty lines, for the template of an instrumentation."""

from __future__ import annotations

from typing import Any


class Model:
    """A model that answers what it is asked."""

    name = "toy-1"

    async def complete(self, messages: list[dict[str, str]]) -> dict[str, Any]:
        text = f"answer to {messages[-1]['content']}"
        return {"text": text, "input_tokens": 7, "output_tokens": 3}


class Tool:
    """A tool that adds."""

    name = "add"

    def call(self, *, a: int, b: int) -> int:
        return a + b


class Agent:
    """An agent that calls its tool, then its model."""

    def __init__(self, name: str) -> None:
        self.name, self.model, self.tool = name, Model(), Tool()

    async def act(self, history: list[tuple[str, str]]) -> str:
        total = self.tool.call(a=len(history), b=1)
        answer = await self.model.complete([{"role": "user", "content": history[-1][1]}])
        return f"{answer['text']} ({total})"


class Team:
    """Two agents, one after the other."""

    name = "toy team"

    def __init__(self) -> None:
        self.first, self.second = Agent("first"), Agent("second")

    def deliver(self, sender: str, recipient: str, text: str) -> None:
        self.inbox = [(sender, text)]

    async def run(self, task: str) -> str:
        self.deliver("first", "second", await self.first.act([("user", task)]))
        return await self.second.act(self.inbox)

    async def stream(self, task: str) -> Any:
        self.deliver("first", "second", await self.first.act([("user", task)]))
        yield self.inbox[0][1]
        yield await self.second.act(self.inbox)
