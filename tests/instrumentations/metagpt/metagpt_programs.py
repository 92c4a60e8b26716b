"""Small MetaGPT programs, and the scripts that their models follow."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scripted_llm import Reply, Request, ScriptedLLM, last_text

if TYPE_CHECKING:
    from collections.abc import Callable

_HOME = Path(tempfile.mkdtemp(prefix="mast-trace-metagpt-"))

TASK = "an adder"
CODE = "def add(a, b): return a + b"


class Model(ScriptedLLM):
    """One server for the process: MetaGPT reads its address once, when it is imported.

    It is entered by several modules of tests and stays up when one of them is done.
    """

    def __enter__(self):
        return self if self._thread.is_alive() else super().__enter__()

    def __exit__(self, *_exc: object) -> None:
        pass

    def follow(self, script: Callable[[Request], Reply | str]) -> None:
        self.script = script
        self.requests.clear()


model = Model(lambda _request: "ok")
(_HOME / ".metagpt").mkdir()
(_HOME / ".metagpt" / "config2.yaml").write_text(
    f"llm:\n  api_type: openai\n  model: gpt-4o\n  base_url: {model.url}\n  api_key: scripted\n"
    "  stream: false\n"
)
os.environ.update(HOME=str(_HOME), METAGPT_PROJECT_ROOT=str(_HOME))

from jupyter_client.connect import ConnectionFileMixin
from metagpt.actions import Action
from metagpt.actions.add_requirement import UserRequirement
from metagpt.actions.di.execute_nb_code import ExecuteNbCode
from metagpt.context import Context
from metagpt.environment import Environment
from metagpt.roles.role import Role, RoleReactMode
from metagpt.schema import Message
from metagpt.team import Team

# Ports that are free when a kernel is given them may be taken when it binds them, by tests beside
# this one.
ConnectionFileMixin.transport.default_value = "ipc"


class WriteCode(Action):
    """Ask the model for code."""

    name: str = "WriteCode"

    async def run(self, instruction: str) -> str:
        return await self._aask(f"Write code for: {instruction}")


class ReviewCode(Action):
    """Ask the model for a review."""

    name: str = "ReviewCode"

    async def run(self, code: str) -> str:
        return await self._aask(f"Review this: {code}")


class Coder(Role):
    """Writes code when the user asks."""

    name: str = "Alice"
    profile: str = "Coder"
    goal: str = "write code"

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        self._watch([UserRequirement])
        self.set_actions([WriteCode])

    async def _act(self) -> Message:
        text = await self.rc.todo.run(self.rc.news[-1].content)
        return Message(content=text, role=self.profile, cause_by=type(self.rc.todo))


class Reviewer(Role):
    """Reviews what the coder wrote."""

    name: str = "Bob"
    profile: str = "Reviewer"
    goal: str = "review code"

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        self._watch([WriteCode])
        self.set_actions([ReviewCode])

    async def _act(self) -> Message:
        text = await self.rc.todo.run(self.rc.news[-1].content)
        return Message(content=text, role=self.profile, cause_by=type(self.rc.todo))


class Runner(Role):
    """Runs code in a Jupyter kernel, without a model."""

    name: str = "Carol"
    profile: str = "Runner"
    code: str = "print(6 * 7)"

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        self._watch([UserRequirement])
        self.set_actions([WriteCode])

    async def _act(self) -> Message:
        kernel = ExecuteNbCode()
        output, _ = await kernel.run(self.code)
        await kernel.terminate()
        return Message(content=output, role=self.profile, cause_by=ExecuteNbCode)


class TwoSteps(Role):
    """Takes two actions one after the other; only the last becomes a message."""

    name: str = "Dave"
    profile: str = "Stepper"

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        self._watch([UserRequirement])
        self.set_actions([WriteCode, ReviewCode])
        self._set_react_mode(react_mode=RoleReactMode.BY_ORDER.value)

    async def _act(self) -> Message:
        text = await self.rc.todo.run(self.rc.memory.get(k=1)[0].content)
        message = Message(content=text, role=self.profile, cause_by=type(self.rc.todo))
        self.rc.memory.add(message)
        return message


def team(*roles: Role) -> Team:
    """A team with a budget that is never reached."""
    context = Context()
    made = Team(context=context, env=Environment(context=context))
    made.hire(list(roles) or [Coder(), Reviewer()])
    made.invest(3.0)
    return made


async def run(made: Team, rounds: int = 4) -> object:
    """Let a team work on an adder."""
    made.run_project(TASK)
    return await made.run(n_round=rounds)


def script(request: Request) -> Reply | str:
    """Code for the coder, a verdict for the reviewer."""
    return "LGTM" if last_text(request).startswith("Review") else CODE


PLAN = """```json
[{"task_id": "1", "dependent_task_ids": [], "instruction": "multiply", "task_type": "other"},
 {"task_id": "2", "dependent_task_ids": ["1"], "instruction": "print it", "task_type": "other"}]
```"""


def analyst_script(code: str):
    """A plan of two tasks, and the same code for each."""

    def script(request: Request) -> Reply | str:
        return PLAN if "Available Task Types" in last_text(request) else f"```python\n{code}\n```"

    return script


def company_script(request: Request) -> Reply | str:
    """The example that each form of the software company's prompts holds; code for the engineer."""
    form = re.search(r"\[CONTENT\].*?\[/CONTENT\]", last_text(request), re.DOTALL)
    return form.group(0) if form else "## main.py\n```python\nprint(1)\n```"
