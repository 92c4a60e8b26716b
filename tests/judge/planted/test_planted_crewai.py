"""Agents on CrewAI commit faults, and the rules prove them from the recorded spans.

CrewAI before 1.0 refuses to run a call that is repeated, writes results into one text with the
model's thoughts, and has no hooks: there an agent cannot commit 1.3, no message is lost that holds
a result alone (1.4), and nothing can cut a conversation short (2.1). It commits 2.5 by itself: after
a task that runs beside others it forgets the ones before.
"""

from __future__ import annotations

import itertools

import pytest
from installed import installed
from judge.planted.planted_faults import CODE, FAILED_TEST, STOCK, blamed, check, exact, twins
from scripted_llm import Call, Reply, ScriptedLLM

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI", allow_module_level=True)

import crewai
from crewai.tools import tool
from crewai_programs import final, llm, use

pytestmark = [pytest.mark.framework("crewai"), pytest.mark.mast_trace(frameworks=["crewai"])]
LOOK_UP = Call("find_stock", {"item": 7})
RUN_TESTS = Call("run_tests", {"path": "tests"})
OVERFLOW = Reply("maximum context length: context_length_exceeded", status=400)
OLD = crewai.__version__.startswith("0.")
"""True if the version asks for tools in text, and answers a repeated call itself."""
RETRIED = ["1.3"] if OLD else []
"""Texts of a failing tool: old versions try it three times before the model gets the error."""


@tool("find_stock")
def find_stock(item: int) -> str:
    """Return the stock of an item."""
    return STOCK


@tool("run_tests")
def run_tests(path: str) -> str:
    """Run the tests."""
    raise ValueError(FAILED_TEST)


# CrewAI answers a repeated call from its own cache; a tool may refuse that.
find_stock.cache_function = lambda *_: False


def kick_off(*replies: Call | Reply | str, roles=("Clerk",), beside=(), max_iter=20) -> None:
    """A crew, of which everybody has both tools, does one task after the other.

    Args:
        replies: of the models, in turn.
        roles: of the agents, each with one task.
        beside: the roles whose tasks run beside the others.
        max_iter: number of model calls after which each must answer.
    """
    remaining = iter(replies)

    def script(request):
        reply = next(remaining)
        if isinstance(reply, Reply):
            return reply
        return use(request, reply) if isinstance(reply, Call) else final(request, reply)

    with ScriptedLLM(script) as server:
        model = llm(server)
        given = {"llm": model, "tools": [find_stock, run_tests], "max_iter": max_iter}
        agents = [crewai.Agent(role=r, goal="help", backstory="x", **given) for r in roles]
        tasks = [
            crewai.Task(
                description=f"Do the part of {agent.role}",
                expected_output="a line",
                agent=agent,
                async_execution=agent.role in beside,
            )
            for agent in agents
        ]
        crewai.Crew(agents=agents, tasks=tasks).kickoff()


@pytest.fixture
def before_call():
    """Return what registers a hook that may change what the next model call is shown."""
    hooks = pytest.importorskip("crewai.hooks", reason="this CrewAI has no hooks")
    registered = []

    def register(hook):
        registered.append(hook)
        hooks.register_before_llm_call_hook(hook)

    yield register
    for hook in registered:
        hooks.unregister_before_llm_call_hook(hook)


@pytest.mark.skipif(OLD, reason="this CrewAI refuses to repeat a call")
@twins
def test_a_repeated_call(captured_spans, faulty):
    """The clerk looks the same thing up again after another question."""
    other = Call("find_stock", {"item": 8})
    again = (LOOK_UP, other) if faulty else ()
    kick_off(LOOK_UP, other, *again, "There are 4711 pieces.")
    trajectory = captured_spans.trajectory()
    check(trajectory, "1.3", faulty, quoted=STOCK, tools=["find_stock"] * 4)


@pytest.mark.skipif(OLD, reason="this CrewAI refuses to repeat a call")
@twins
def test_a_result_that_was_lost_and_looked_up_again(captured_spans, faulty):
    """The conversation gets too long, CrewAI has it summarised, and the result is not in there."""
    summary = (OVERFLOW, "Somebody asked for the stock.") if faulty else ()
    kick_off(LOOK_UP, *summary, LOOK_UP, "There are 4711 pieces.")
    trajectory = captured_spans.trajectory()
    lost = {"tools": ["find_stock"] * 2, "follows": ["1.3"]}
    check(trajectory, "1.4", faulty, quoted=STOCK, **lost)


@pytest.mark.skipif(OLD, reason="this CrewAI refuses to repeat a call")
def test_a_result_that_the_summary_quotes_is_not_lost(captured_spans):
    """The summary holds the tool's result, so that nothing is lost."""
    kick_off(LOOK_UP, OVERFLOW, f"Found: {STOCK}.", LOOK_UP, "There are 4711 pieces.")
    assert exact(captured_spans.trajectory()) == {}


@twins
def test_work_that_only_its_limit_ends(captured_spans, faulty):
    """The clerk wants to look more up than it may."""
    others = [Call("find_stock", {"item": number}) for number in range(8, 10)]
    answer = "There are 4711 pieces."
    kick_off(LOOK_UP, *others, answer, answer, max_iter=3 if faulty else 20)
    check(captured_spans.trajectory(), "1.5", faulty)


@twins
def test_an_agent_that_forgets_the_conversation(captured_spans, faulty, before_call):
    calls = itertools.count()

    def forget(context):
        if next(calls) == 2 and faulty:
            del context.messages[2:]

    before_call(forget)
    kick_off(LOOK_UP, Call("find_stock", {"item": 8}), "There are 4711 pieces.")
    check(captured_spans.trajectory(), "2.1", faulty, quoted="4711")


@twins
def test_a_finding_that_is_never_passed_on(captured_spans, faulty):
    reply = "I have done what was asked." if faulty else "There are 4711 pieces."
    kick_off(LOOK_UP, reply, "That is all we know.", roles=["Clerk", "Writer"])
    check(captured_spans.trajectory(), "2.4", faulty, quoted=STOCK)


TALK = ("The train leaves at noon today.", "The hotel has no free rooms.", "We do neither.")


@pytest.mark.skipif(not OLD, reason="this CrewAI hands on the outputs of all tasks")
@twins
def test_a_message_that_the_crew_forgets(captured_spans, faulty):
    """The second task runs beside the others, and the third does not get the result of the first."""
    kick_off(*TALK, roles=["Alice", "Bob", "Writer"], beside=["Bob"] if faulty else [])
    check(captured_spans.trajectory(), "2.5", faulty, quoted=TALK[0])


@twins
def test_a_message_that_never_arrives(captured_spans, faulty, before_call):
    """A hook leaves what Alice wrote out of the writer's prompt."""

    def leave_out(context):
        for message in context.messages if faulty else ():
            message["content"] = str(message["content"]).replace(TALK[0], "")

    before_call(leave_out)
    kick_off(*TALK, roles=["Alice", "Bob", "Writer"])
    check(captured_spans.trajectory(), "2.5", faulty, quoted=TALK[0])


@twins
def test_a_misstated_result(captured_spans, faulty):
    kick_off(LOOK_UP, f"The tool returned {4171 if faulty else 4711} pieces.")
    trajectory = captured_spans.trajectory()
    check(trajectory, "2.6", faulty, quoted="4171")
    assert not faulty or "4171" in blamed(trajectory).text


@twins
def test_a_call_that_was_never_made(captured_spans, faulty):
    """The clerk says that it has run the tests; it is the writer who does."""
    reply = "I ran run_tests already." if faulty else "Somebody has to run the tests."
    kick_off(reply, RUN_TESTS, "The tests fail.", roles=["Clerk", "Writer"])
    check(captured_spans.trajectory(), "2.6", faulty, quoted="run_tests", follows=RETRIED)


@twins
def test_an_error_that_ends_the_run(captured_spans, faulty):
    if faulty:
        with pytest.raises(Exception, match=r"."):
            kick_off(LOOK_UP)
    else:
        kick_off(LOOK_UP, "There are 4711 pieces.")
    check(captured_spans.trajectory(), "3.1", faulty)


@twins
def test_code_that_nobody_checks(captured_spans, faulty):
    checked = () if faulty else ("Reviewer",)
    kick_off(CODE, "The code adds two numbers.", roles=["Coder", *checked])
    check(captured_spans.trajectory(), "3.2", faulty, quoted="Here it is")


@twins
def test_a_review_that_passes_failed_tests(captured_spans, faulty):
    reply = "All tests passed. Approved!" if faulty else "The tests fail: rejected."
    kick_off(RUN_TESTS, reply, roles=["Reviewer"])
    check(captured_spans.trajectory(), "3.3", faulty, quoted="All tests passed", follows=RETRIED)
