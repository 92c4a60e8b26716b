"""CrewAI: every message and every tool call exactly once, in one trace, under the right agent."""

from __future__ import annotations

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai_programs  # noqa: F401  # sets CrewAI's surroundings before it is imported
from crewai import Agent
from crewai.flow.flow import Flow, listen, start
from crewai_programs import (
    broken,
    delegating,
    delegating_script,
    final,
    has_result,
    llm,
    lookup,
    react,
    solo,
    team,
    team_script,
    use,
)
from scripted_llm import Call, ScriptedLLM, last_text

pytestmark = pytest.mark.framework("crewai")


def root(recorded):
    """The root of the one run that the test has made."""
    (only,) = [span for span in recorded.all if span.parent is None]
    return only


def agent_around(recorded, span):
    """The agent in whose turn a span lies."""
    while (span := recorded.parent(span)) is not None:
        if span.attributes["gen_ai.operation.name"] == "invoke_agent":
            return span.attributes["gen_ai.agent.name"]
    return None


def test_model_calls_and_tool_calls_are_the_acting_agents(recorded) -> None:
    with ScriptedLLM(team_script) as server:
        team(server).kickoff()
    assert all(
        agent_around(recorded, s) == s.attributes["gen_ai.agent.name"]
        for s in recorded.named("chat")
    )
    tools = {s.attributes["gen_ai.tool.name"]: s for s in recorded.named("execute_tool")}
    assert tools["lookup"].attributes["gen_ai.tool.call.result"] == "Paris: 2.1 million"
    assert '"city": "Paris"' in tools["lookup"].attributes["gen_ai.tool.call.arguments"]


def test_a_failing_tool_is_an_error_with_its_text(recorded) -> None:
    def script(request):
        if has_result(request) or "no data" in str(request):
            return final(request, "unknown")
        return use(request, Call("broken", {"city": "Rome"}))

    with ScriptedLLM(script) as server:
        solo(server, tools=(broken,)).kickoff()
    tools = recorded.named("execute_tool")
    assert tools
    assert {span.status.status_code.name for span in tools} == {"ERROR"}
    assert all("no data for Rome" in span.status.description for span in tools)


def test_a_delegation_is_a_hand_off_with_the_coworkers_turn_inside(recorded) -> None:
    with ScriptedLLM(delegating_script("Researcher")) as server:
        delegating(server).kickoff()
    recorded.check_shape()
    handed = recorded.named("execute_tool")[0].attributes
    assert handed["mast.handoff.source.name"] == "Writer"
    assert handed["mast.handoff.target.name"] == "Researcher"
    senders = [s.attributes["mast.message.sender"] for s in recorded.named("send_message")]
    assert senders == ["user", "Writer", "Researcher", "Writer"]
    assert "Researcher" in [
        s.attributes["gen_ai.agent.name"] for s in recorded.named("invoke_agent")
    ]


def test_an_unknown_coworker_is_an_error(recorded) -> None:
    with ScriptedLLM(delegating_script("Nobody")) as server:
        delegating(server).kickoff()
    call = recorded.named("execute_tool")[0]
    assert call.status.status_code.name == "ERROR"
    assert "unknown coworker: Nobody" in call.status.description


def test_a_text_is_written_once(recorded) -> None:
    with ScriptedLLM(team_script) as server:
        team(server).kickoff()
    inputs = [s.attributes.get("gen_ai.input.messages", "") for s in recorded.all]
    assert sum("Find the population of Paris" in text for text in inputs) <= 2


def test_kick_off_for_each_gives_one_trace_each(recorded) -> None:
    with ScriptedLLM(team_script) as server:
        team(server).kickoff_for_each([{"n": 1}, {"n": 2}])
    recorded.check_shape(runs=2)


def test_a_guardrail_that_blocks_is_a_failed_check_and_the_turn_is_repeated(recorded) -> None:
    answers = iter(["no number here", "it is 42"])

    def number_given(output):
        return ("42" in output.raw, output.raw if "42" in output.raw else "give a number")

    with ScriptedLLM(lambda request: final(request, next(answers))) as server:
        solo(server, guardrail=number_given).kickoff()
    checks = [
        s for s in recorded.named("execute_tool") if s.attributes["gen_ai.tool.type"] == "guardrail"
    ]
    assert [span.status.status_code.name for span in checks] == ["ERROR", "UNSET"]
    assert "give a number" in checks[0].status.description
    assert len(recorded.named("invoke_agent")) == 2
    recorded.check_shape()


def test_the_iteration_limit_is_the_termination_reason(recorded) -> None:
    def script(request):
        if "stop using any tools" not in last_text(request) and (
            request.get("tools") or react(request)
        ):
            return use(request, Call("lookup", {"city": f"city {len(server.requests)}"}))
        return final(request, "gave up")

    with ScriptedLLM(script) as server:
        solo(server, tools=(lookup,), max_iter=2).kickoff()
    assert root(recorded).attributes["mast.run.termination_reason"] == "max_turns"


def test_a_flow_is_the_root_of_the_crews_inside_it(recorded) -> None:
    with ScriptedLLM(team_script) as server:

        class Report(Flow):
            @start()
            def research(self):
                return team(server).kickoff().raw

            @listen(research)
            def shout(self, text):
                return text.upper()

        assert Report().kickoff() == "PARIS: 2.1 MILLION INHABITANTS."
    recorded.check_shape()
    assert root(recorded).name == "invoke_workflow Report"


def test_an_agent_by_itself_is_a_run(recorded) -> None:
    with ScriptedLLM(lambda request: final(request, "hello")) as server:
        Agent(role="Greeter", goal="greet", backstory="x", llm=llm(server)).kickoff("Say hello")
    recorded.check_shape()
    assert [s.attributes["mast.message.sender"] for s in recorded.named("send_message")] == [
        "user",
        "Greeter",
    ]
