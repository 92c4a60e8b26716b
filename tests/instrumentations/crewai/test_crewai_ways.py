"""CrewAI: one trace per run with the same spans, in every way in which a crew can be run."""

from __future__ import annotations

import builtins
from importlib.metadata import version

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai_programs  # sets CrewAI's surroundings before it is imported
from crewai import Agent, Crew
from crewai.events.event_bus import crewai_event_bus
from crewai.events.types.crew_events import CrewKickoffStartedEvent
from crewai.flow.flow import Flow, listen, start
from crewai.tools import BaseTool
from crewai_programs import delegating_script, final, llm, managed, managed_script, solo, team, use
from crewai_programs import team_script as script
from scripted_llm import Call, ScriptedLLM, messages_of

from mast_trace import semconv
from mast_trace_instrumentations.crewai import state

pytestmark = pytest.mark.framework("crewai")

streams = pytest.mark.skipif(
    "stream" not in Crew.model_fields, reason="crews of this version do not stream"
)


def shape(recorded) -> list[list[tuple[str, str]]]:
    """Each trace's spans with those around them; tools that run at once come in any order."""
    return [
        sorted((span.name, getattr(recorded.parent(span), "name", "")) for span in spans)
        for spans in recorded.traces().values()
    ]


@pytest.fixture
def plain(recorded):
    """The trace of the team as `kickoff` gives it."""
    with ScriptedLLM(script) as server:
        team(server).kickoff()
    (spans,) = shape(recorded)
    recorded.exporter.clear()
    return spans


def test_a_hierarchy(recorded) -> None:
    """The manager hands over, the coworker works inside of that, and both speak to each other."""
    with ScriptedLLM(managed_script) as server:
        managed(server).kickoff()
    recorded.check_shape()
    (call,) = recorded.named("execute_tool")
    assert call.attributes[semconv.HANDOFF_SOURCE] == "Crew Manager"
    assert call.attributes[semconv.HANDOFF_TARGET] == "Researcher"
    assert [(sender, to) for sender, to, _ in recorded.sent_messages()] == [
        ("user", ("Crew Manager",)),
        ("Crew Manager", ("Researcher",)),
        ("Researcher", ("Crew Manager",)),
        ("Crew Manager", ("user",)),
    ]
    turns = {s.attributes[semconv.AGENT_NAME]: s for s in recorded.named("invoke_agent")}
    assert recorded.parent(turns["Researcher"]) is call
    root = next(s for s in recorded.all if s.parent is None)
    assert root.attributes["crewai.crew.process"] == "hierarchical"


@streams
def test_a_crew_that_streams(recorded, plain) -> None:
    """The program gets the same chunks in the same order, and the trace is the same."""
    with ScriptedLLM(script) as server:

        def chunks() -> tuple[list[str], str]:
            output = team(server, stream=True).kickoff()
            return [chunk.content for chunk in output], output.result.raw

        traced = chunks()
        recorded.check_shape()
        assert shape(recorded) == [plain]
        recorded.instrumentor.uninstrument()
        assert chunks() == traced


@streams
def test_a_stream_that_is_left_early(recorded, plain) -> None:
    """CrewAI lets the crew finish: what it did is one whole trace."""
    with ScriptedLLM(script) as server:
        output = team(server, stream=True).kickoff()
        next(iter(output))
        output._sync_iterator.close()
        assert len(server.requests) == 3
    recorded.check_shape()
    assert shape(recorded) == [plain]


async def test_one_run_for_each_input_at_the_same_time(recorded, plain) -> None:
    with ScriptedLLM(script) as server:
        await team(server).kickoff_for_each_async([{"n": 1}, {"n": 2}, {"n": 3}])
    recorded.check_shape(runs=3)
    assert shape(recorded) == [plain] * 3


def stop(*_: object) -> None:
    """Act like a person who presses Ctrl-C."""
    raise KeyboardInterrupt


def test_an_agent_by_itself_that_is_interrupted(recorded) -> None:
    """CrewAI reports no end then: the spans are closed where the agent was called."""

    def interrupting(request):
        return use(request, Call("stop", {}))

    class Stop(BaseTool):
        name: str = "stop"
        description: str = "Stops everything."

        def _run(self) -> str:
            stop()
            return "never"

    with ScriptedLLM(interrupting) as server:
        agent = Agent(role="Hermit", goal="g", backstory="b", llm=llm(server), tools=[Stop()])
        with pytest.raises(KeyboardInterrupt):
            agent.kickoff("Stop it.")
    recorded.check_shape()
    assert recorded.trajectory().termination_reason == "cancelled"
    assert state.frames() == ()


def test_a_replay_that_is_interrupted(recorded) -> None:
    """As a kickoff that is; earlier versions of CrewAI say nothing of a replay that begins."""
    tells = tuple(map(int, version("crewai").split(".")[:2])) >= (1, 15)
    with ScriptedLLM(script) as server:
        crew = team(server)
        crew.kickoff()
        crew.tasks[-1].callback = stop
        with pytest.raises(KeyboardInterrupt):
            crew.replay(str(crew.tasks[-1].id))
    runs = recorded.named("invoke_workflow")
    ended = [run.attributes[semconv.RUN_TERMINATION_REASON] for run in runs]
    assert ended == ["completed", "cancelled"][: 1 + tells]
    assert state.frames() == ()


def test_a_start_without_an_end_takes_no_later_crew_into_its_run(recorded, plain) -> None:
    """A crew that is prepared and never kicked off has begun a run; the next crew has one of its own."""
    with ScriptedLLM(script) as server:
        begun = prepared(team(server))
        team(server).kickoff()
        assert state.frames() == ()
        team(server).kickoff()
    recorded.check_shape(runs=3)
    assert [shape(recorded)[1:], begun.crew_name] == [[plain] * 2, "city"]


def test_a_crew_inside_of_a_flow_stays_in_its_run(recorded) -> None:
    """A run that a patched call surrounds is not taken for abandoned."""

    class Cities(Flow):
        @start()
        def city(self) -> str:
            return team(server).kickoff().raw

    with ScriptedLLM(script) as server:
        Cities().kickoff()
    recorded.check_shape()
    assert [s.name for s in recorded.named("invoke_workflow")][1:] == ["invoke_workflow city"]


def prepared(crew: Crew) -> CrewKickoffStartedEvent:
    """Report that a crew begins, as CrewAI does when it prepares one."""
    begun = CrewKickoffStartedEvent(crew_name=crew.name, inputs=None)
    crewai_event_bus.emit(crew, begun)
    return begun


# -- people ----------------------------------------------------------------------------------------


def test_a_person_comments_on_an_answer(recorded, monkeypatch) -> None:
    """The draft and the comment are messages; pressing Enter is none."""
    typed = iter(["make it shorter", ""])
    monkeypatch.setattr(builtins, "input", lambda *_: next(typed))
    with ScriptedLLM(lambda request: final(request, f"draft {len(server.requests)}")) as server:
        assert solo(server, human_input=True).kickoff().raw == "draft 2"
    recorded.check_shape()
    asked, draft, comment, answer = recorded.named("send_message")
    assert [(sender, to, text) for sender, to, text in recorded.sent_messages()[1:]] == [
        ("Solo", ("user",), "draft 1"),
        ("user", ("Solo",), "make it shorter"),
        ("Solo", ("user",), "draft 2"),
    ]
    chain = [asked, draft, comment, answer]
    assert [m.attributes.get(semconv.MESSAGE_IN_REPLY_TO) for m in chain[1:]] == [
        m.attributes[semconv.MESSAGE_ID] for m in chain[:-1]
    ]


def test_a_flow_asks_a_person(recorded, monkeypatch) -> None:
    feedback = pytest.importorskip("crewai.flow.human_feedback", reason="flows do not ask people")
    monkeypatch.setattr(builtins, "input", lambda *_: "too long")

    class Report(Flow):
        @start()
        @feedback.human_feedback(message="Is it good?")
        def write(self):
            return "a long report"

        @listen(write)
        def shorten(self, result):
            return f"shortened: {result.feedback}"

    assert Report().kickoff() == "shortened: too long"
    recorded.check_shape()
    question, answer = recorded.sent_messages()
    assert question[:2] == ("Report", ("user",))
    assert "a long report" in question[2]
    assert answer == ("user", ("Report",), "too long")


# -- guardrails and plans --------------------------------------------------------------------------


def test_a_guardrail_in_words_asks_an_agent_of_its_own(recorded) -> None:
    verdicts = iter(
        ['{"valid": false, "feedback": "too long"}', '{"valid": true, "feedback": null}']
    )

    def judged(request):
        checks = "complies with the given guardrail" in str(messages_of(request))
        return final(request, next(verdicts) if checks else "an answer")

    with ScriptedLLM(judged) as server:
        solo(server, guardrail="must be short").kickoff()
        assert len(recorded.named("chat")) == len(server.requests) == 4
    recorded.check_shape()
    checks = recorded.named("execute_tool")
    assert [s.status.is_ok for s in checks] == [False, True]
    assert [s.attributes["crewai.guardrail.retry_count"] for s in checks] == [0, 1]
    asked = [
        (sender, to) for sender, to, _ in recorded.sent_messages() if "guardrail" in (sender, *to)
    ]
    assert asked == [("guardrail", ("Guardrail Agent",)), ("Guardrail Agent", ("guardrail",))] * 2


def test_a_guardrail_that_nothing_satisfies_ends_the_run(recorded) -> None:
    def never(_output):
        return (False, "never good")

    options = {"guardrail_max_retries": 1}
    with (
        ScriptedLLM(lambda request: final(request, "no")) as server,
        pytest.raises(Exception, match="never good"),
    ):
        solo(server, guardrail=never, **options).kickoff()
    recorded.check_shape()
    assert [s.status.is_ok for s in recorded.named("execute_tool")] == [False, False]
    run = recorded.trajectory()
    assert run.termination_reason == "error"
    assert "never good" in run.error


def test_tasks_that_a_failed_run_has_left_are_open_items(recorded) -> None:
    """The crew's tasks are its plan."""

    def refuse(output):
        raise RuntimeError("guardrail broke")

    with ScriptedLLM(script) as server:
        crew = team(server)
        crew.tasks[1].guardrail = refuse
        crew.tasks[1]._guardrail = refuse
        with pytest.raises(RuntimeError, match="guardrail broke"):
            crew.kickoff()
    recorded.check_shape()
    assert recorded.trajectory().open_items == ("Write one line",)


def test_a_run_that_is_done_has_no_open_items(recorded) -> None:
    with ScriptedLLM(delegating_script("Researcher")) as server:
        crewai_programs.delegating(server).kickoff()
    assert recorded.trajectory().open_items == ()
