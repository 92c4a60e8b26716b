"""Four MetaGPT roles, one of which runs code twice: 6 calls of the model and 2 of tools make a run."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripted_llm import Reply, last_text

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 8
"""Calls of the model and of tools in a run."""
FRAMEWORK = "metagpt"
PEERS = ()

_PAGE = "Quarterly revenue by region, in thousands of euros, with remarks. " * 12
_ROUNDS = 8
_WRONG, _RIGHT = "result = str(20 + 2)", "result = str(20 + 22)"
_SETTINGS = tempfile.TemporaryDirectory(prefix="mast-trace-overhead-")
"""MetaGPT reads its settings from a file while it is imported."""


def script(request: dict[str, Any]) -> Reply | str:
    """Answer as one of the four: the analyst's first code is wrong."""
    asked = last_text(request)
    if asked.startswith("Find"):
        return f"The figures are 20 and 22. {_PAGE}"
    if asked.startswith("Write code"):
        return _RIGHT if "wrong" in asked else _WRONG
    if asked.startswith("Answer"):
        return "The total is 42."
    return "The code is right." if _RIGHT in asked else "The sum is wrong."


def prepare(url: str) -> Callable[[], Any]:
    """Build the team; return a function that runs it once."""
    _configure(url)
    from metagpt.actions import Action
    from metagpt.actions.add_requirement import UserRequirement
    from metagpt.actions.run_code import RunCode
    from metagpt.const import MESSAGE_ROUTE_TO_ALL
    from metagpt.context import Context
    from metagpt.environment import Environment
    from metagpt.roles.role import Role
    from metagpt.schema import Message, RunCodeContext
    from metagpt.team import Team

    class Find(Action):
        """Ask the model for the figures."""

    class WriteCode(Action):
        """Ask the model for code."""

    class Test(Action):
        """Run the code, and ask the model about its result."""

    class Answer(Action):
        """Ask the model for the answer."""

    async def ask(role: Any, task: str) -> str:
        text: str = await role.rc.todo._aask(f"{task}\n\n{role.rc.news[-1].content}", [_PAGE])
        return text

    def said(role: Any, text: str, action: type, to: set[str] | None = None) -> Message:
        everybody = {MESSAGE_ROUTE_TO_ALL}
        return Message(content=text, role=role.profile, cause_by=action, send_to=to or everybody)

    class Researcher(Role):
        """Finds the figures."""

        async def _act(self) -> Message:
            return said(self, await ask(self, "Find the figures."), Find)

    class Analyst(Role):
        """Writes code that adds them up, and again when it is wrong."""

        async def _act(self) -> Message:
            return said(self, await ask(self, "Write code."), WriteCode)

    class Tester(Role):
        """Runs the code."""

        async def _act(self) -> Message:
            code = RunCodeContext(mode="text", code=self.rc.news[-1].content)
            run = RunCode(i_context=code, context=self.context, llm=self.llm)
            tested = await run.run()
            passed = "right" in tested.summary
            to = "Supervisor" if passed else "Analyst"
            return said(self, tested.summary, Test, {to})

    class Supervisor(Role):
        """Answers."""

        async def _act(self) -> Message:
            return said(self, await ask(self, "Answer."), Answer)

    members = (
        (Researcher, UserRequirement, Find),
        (Analyst, Find, WriteCode),
        (Tester, WriteCode, Test),
        (Supervisor, None, Answer),
    )
    loop = asyncio.new_event_loop()

    async def once() -> None:
        context = Context()
        team = Team(context=context, env=Environment(context=context))
        for kind, watched, action in members:
            name = kind.__name__
            role = kind(name=name, profile=name, goal=_PAGE)
            role._watch([watched] if watched else [])
            role.set_actions([action])
            team.hire([role])
        team.invest(3.0)
        await team.run(_ROUNDS, "What do the figures add up to?", auto_archive=False)

    return lambda: loop.run_until_complete(once())


def _configure(url: str) -> None:
    """Write MetaGPT's settings, once: they hold for the process."""
    settings = {"api_type": "openai", "model": "scripted", "base_url": url, "api_key": "scripted"}
    folder = Path(_SETTINGS.name, "config")
    folder.mkdir(exist_ok=True)
    # JSON is YAML. Streamed answers come without their tokens.
    (folder / "config2.yaml").write_text(json.dumps({"llm": {**settings, "stream": False}}))
    os.environ["METAGPT_PROJECT_ROOT"] = _SETTINGS.name
