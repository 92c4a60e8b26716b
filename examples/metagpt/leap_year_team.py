"""Two MetaGPT roles write a function: a coder writes it, a tester runs it and sends it back.

::

    python leap_year_team.py                     # scripted model: the second attempt passes
    python leap_year_team.py never-fixed         # scripted model: the coder repeats its mistake
    OPENAI_API_KEY=... python leap_year_team.py  # a real model (OPENAI_BASE_URL, OPENAI_MODEL)

The README beside this file says how to install MetaGPT.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).parents[1]))

from scripted_llm import ScriptedLLM, by_speaker

import mast_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from metagpt.team import Team

mast_trace.instrument()

TASK = (
    "Write a Python function is_leap(year) that says whether a year of the Gregorian calendar is "
    "a leap year. Answer with the code alone."
)
TESTS = "assert is_leap(2024) and is_leap(2000)\nassert not is_leap(2023)\nassert not is_leap(1900)"
PASSED = "All tests pass."
ROUNDS = 7

WRONG = "```python\ndef is_leap(year):\n    return year % 4 == 0\n```"
RIGHT = WRONG.replace("== 0", "== 0 and (year % 100 != 0 or year % 400 == 0)")
SCRIPTS = {"fixed": {"Coder": (WRONG, RIGHT)}, "never-fixed": {"Coder": (WRONG,) * ROUNDS}}


def team() -> Team:
    """Return the two roles. MetaGPT reads its settings while it is imported, so that is done here."""
    from metagpt.actions import Action
    from metagpt.actions.add_requirement import UserRequirement
    from metagpt.actions.di.execute_nb_code import ExecuteNbCode
    from metagpt.context import Context
    from metagpt.environment import Environment
    from metagpt.roles.role import Role
    from metagpt.schema import Message
    from metagpt.team import Team
    from metagpt.utils.common import CodeParser

    class WriteCode(Action):
        """Ask the model for code."""

        async def run(self, history: list[Message]) -> str:
            prompt = "\n\n".join(f"{message.role}: {message.content}" for message in history)
            return CodeParser.parse_code(block="", text=await self._aask(prompt))

    class RunTests(Action):
        """Run code and its tests in a Jupyter kernel."""

        async def run(self, code: str) -> tuple[str, bool]:
            kernel = ExecuteNbCode()
            output, passed = await kernel.run(f"{code}\n\n{TESTS}")
            await kernel.terminate()
            return output, passed

    class Coder(Role):
        """Writes, and writes again when the tests fail."""

        name: str = "Cora"
        profile: str = "Coder"
        goal: str = "write code that passes its tests"

        def __init__(self, **kwargs: object) -> None:
            super().__init__(**kwargs)
            self._watch([UserRequirement])
            self.set_actions([WriteCode])

        async def _act(self) -> Message:
            code = await self.rc.todo.run(self.rc.memory.get())
            return Message(content=code, role=self.profile, cause_by=WriteCode)

    class Tester(Role):
        """Runs what the coder wrote."""

        name: str = "Theo"
        profile: str = "Tester"
        goal: str = "find what does not work"

        def __init__(self, **kwargs: object) -> None:
            super().__init__(**kwargs)
            self._watch([WriteCode])
            self.set_actions([RunTests])

        async def _act(self) -> Message:
            output, passed = await self.rc.todo.run(self.rc.news[-1].content)
            if passed:
                return Message(PASSED, role=self.profile, cause_by=RunTests)
            failed = f"The tests fail:\n{output}"
            return Message(failed, role=self.profile, cause_by=RunTests, send_to={"Cora"})

    context = Context()
    made = Team(context=context, env=Environment(context=context))
    made.hire([Coder(), Tester()])
    made.invest(3.0)
    return made


@contextmanager
def model_for(name: str) -> Iterator[None]:
    """Write MetaGPT's settings: the user's own model where one is set up, else the scripted one."""
    with tempfile.TemporaryDirectory() as folder, ScriptedLLM(by_speaker(SCRIPTS[name])) as server:
        own = os.environ.get("OPENAI_API_KEY")
        public = "https://api.openai.com/v1"
        settings = {
            "llm": {
                "api_type": "openai",
                "model": os.environ.get("OPENAI_MODEL", "gpt-5-mini"),
                "base_url": os.environ.get("OPENAI_BASE_URL", public) if own else server.url,
                "api_key": own or "scripted",
                "stream": False,  # streamed answers come without their tokens
            }
        }
        config = Path(folder) / "config"
        config.mkdir()
        # JSON is YAML.
        (config / "config2.yaml").write_text(json.dumps(settings))
        os.environ["METAGPT_PROJECT_ROOT"] = folder
        yield


def main() -> None:
    """Have the function written, and check whether the tester accepted it in the end."""
    made = team()
    made.run_project(TASK)
    asyncio.run(made.run(n_round=ROUNDS))
    success = PASSED in made.env.history
    mast_trace.record_outcome(success, "" if success else "the tests do not pass")
    print(PASSED if success else "The tests still fail.")


if __name__ == "__main__":
    with model_for(sys.argv[1] if len(sys.argv) > 1 else "fixed"):
        main()
