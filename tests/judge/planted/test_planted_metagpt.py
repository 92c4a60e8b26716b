"""Roles on MetaGPT commit faults, and the rules prove them from the recorded spans.

The roles run code in MetaGPT's own kernel and write the prompts of their models themselves, as
MetaGPT's roles do; the faults are in what they leave out of these.
"""

from __future__ import annotations

from typing import Any

import pytest
from installed import installed
from judge.planted.planted_faults import CODE, FAILED_TEST, STOCK, blamed, check, exact, twins
from scripted_llm import Reply, in_turn

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT", allow_module_level=True)

import metagpt_programs as programs
from metagpt_programs import ExecuteNbCode, Message, ReviewCode, Role, WriteCode, model, team

pytestmark = [pytest.mark.framework("metagpt"), pytest.mark.mast_trace(frameworks=["metagpt"])]
TASK = "How many pieces of item 7 are in stock?"
LOOK_UP = "print(f'Stock of item 7: {673 * 7} pieces')"
RUN_TESTS = f"raise ValueError({FAILED_TEST!r})"
ALL = slice(None)


@pytest.fixture(autouse=True, scope="module")
def served():
    """The one model of the session: MetaGPT reads its address when it is imported."""
    with model as started:
        yield started


class Clerk(Role):
    """Does one move after the other: runs code, or asks its model on a part of all there was."""

    name: str = "Carol"
    profile: str = "Clerk"
    moves: tuple[Any, ...] = ()

    def __init__(self, **given) -> None:
        super().__init__(**given)
        self._watch([programs.UserRequirement])
        self.set_actions([WriteCode])

    async def _act(self) -> Message:
        kernel = ExecuteNbCode()
        history = [{"role": "user", "content": news.content} for news in self.rc.news]
        for move in self.moves:
            if isinstance(move, str):
                output, _ = await kernel.run(move)
                history.append({"role": "user", "content": output})
            else:
                reply = await self.llm.aask(history[move])
                history.append({"role": "assistant", "content": reply})
        await kernel.terminate()
        return Message(content=reply, role=self.profile, cause_by=WriteCode)


class Writer(Role):
    """Writes a report on what the others have written, or on the last of it."""

    name: str = "Walter"
    profile: str = "Writer"
    reads: int = 9

    def __init__(self, **given) -> None:
        super().__init__(**given)
        self._watch([WriteCode])
        self.set_actions([ReviewCode])

    async def _act(self) -> Message:
        read = "\n".join(news.content for news in self.rc.news[-self.reads :])
        reply = await self.rc.todo.run(read)
        return Message(content=reply, role=self.profile, cause_by=ReviewCode)


async def work(*roles: Role, says=("ok",), rounds: int = 5, idea: str = TASK) -> None:
    """A team works on an idea; its models say one thing after the other."""
    model.follow(in_turn(*says) if isinstance(says, tuple) else says)
    await team(*roles).run(n_round=rounds, idea=idea)


async def test_a_sound_run_shows_nothing(captured_spans):
    await work(says=programs.script)
    assert exact(captured_spans.trajectory()) == {}


@twins
async def test_a_repeated_call(captured_spans, faulty):
    """The clerk runs the same code three times."""
    again = (LOOK_UP, LOOK_UP) if faulty else ()
    await work(Clerk(moves=[LOOK_UP, *again, ALL]), says=("There are 4711 pieces.",))
    trajectory = captured_spans.trajectory()
    check(trajectory, "1.3", faulty, quoted=STOCK, tools=["ExecuteNbCode"] * 3)
    assert not faulty or blamed(trajectory).agent == "Clerk"


@twins
async def test_a_result_that_was_lost_and_looked_up_again(captured_spans, faulty):
    """Before it looks the stock up again, the clerk's model is not shown the result any more."""
    moves = [ALL, LOOK_UP, ALL, slice(1) if faulty else ALL, LOOK_UP, ALL]
    reply = ("Let me look.", "There are 4711 pieces.", "Let me look again.", "4711 pieces.")
    await work(Clerk(moves=moves), says=reply)
    lost = {"tools": ["ExecuteNbCode"] * 2, "follows": ["1.3", "2.1"]}
    check(captured_spans.trajectory(), "1.4", faulty, quoted=STOCK, **lost)


@twins
async def test_code_that_the_rounds_left_unreviewed(captured_spans, faulty):
    """One round is enough for the coder only: limit, idle reviewer, unchecked code."""
    says = in_turn(CODE, "LGTM")
    await work(says=says, rounds=1 if faulty else 5)
    check(captured_spans.trajectory(), "1.5", faulty, follows=["3.2"])


@twins
async def test_a_role_that_forgets_the_conversation(captured_spans, faulty):
    reply = ("Part one.", "Part two.", "Part three.", "First of all, part one.")
    await work(Clerk(moves=[ALL, ALL, ALL, slice(1) if faulty else ALL]), says=reply)
    check(captured_spans.trajectory(), "2.1", faulty, quoted=reply[-1])


@twins
async def test_a_finding_that_is_never_passed_on(captured_spans, faulty):
    reply = "I have done what was asked." if faulty else "There are 4711 pieces."
    await work(Clerk(moves=[LOOK_UP, ALL]), Writer(), says=(reply, "That is all we know."))
    check(captured_spans.trajectory(), "2.4", faulty, quoted=STOCK)


@twins
async def test_a_message_that_never_arrives(captured_spans, faulty):
    """Two clerks write to the writer at once, and its prompt holds only what one of them says."""
    reply = ("The train leaves at noon today.", "The hotel has no free rooms.", "We do neither.")
    clerks = [Clerk(name=name, profile=name, moves=[ALL]) for name in ("Alice", "Bob")]
    await work(*clerks, Writer(reads=1 if faulty else 9), says=reply)
    trajectory = captured_spans.trajectory()
    check(trajectory, "2.5", faulty, quoted=trajectory.steps[1].text)


@twins
async def test_a_misstated_result(captured_spans, faulty):
    reply = f"The tool returned {4171 if faulty else 4711} pieces."
    await work(Clerk(moves=[LOOK_UP, ALL]), says=(reply,))
    check(captured_spans.trajectory(), "2.6", faulty, quoted="4171")


@twins
async def test_a_call_that_was_never_made(captured_spans, faulty):
    """The clerk says that it has run the code, before it does."""
    reply = "I ran ExecuteNbCode already." if faulty else "Somebody has to run the code."
    await work(Clerk(moves=[ALL, LOOK_UP, ALL]), says=(reply, "There are 4711 pieces."))
    check(captured_spans.trajectory(), "2.6", faulty, quoted="I ran ExecuteNbCode")


@twins
async def test_an_error_that_the_team_swallows(captured_spans, faulty):
    """MetaGPT goes on as if nothing had happened."""
    await work(says=(Reply("no such model", status=400),) if faulty else programs.script)
    check(captured_spans.trajectory(), "3.1", faulty)


@twins
async def test_code_that_nobody_checks(captured_spans, faulty):
    reviewer = () if faulty else (programs.Reviewer(),)
    await work(programs.Coder(), *reviewer, says=(CODE, "The code adds two numbers."))
    check(captured_spans.trajectory(), "3.2", faulty, quoted="Here it is")


@twins
async def test_a_review_that_passes_failed_tests(captured_spans, faulty):
    reply = "All tests passed. Approved!" if faulty else "The tests fail: rejected."
    await work(Clerk(profile="Reviewer", moves=[RUN_TESTS, ALL]), says=(reply,))
    check(captured_spans.trajectory(), "3.3", faulty, quoted="All tests passed")
