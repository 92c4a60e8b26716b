"""AG2 classic: patterns of groups, selection by people, streaming models, chats inside of groups."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

import autogen_programs as programs
from autogen.agentchat import initiate_group_chat
from autogen.agentchat.group.patterns import AutoPattern, RoundRobinPattern
from scripted_llm import Call, Reply, ScriptedLLM, last_text, system_text

from mast_trace import semconv

if TYPE_CHECKING:
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("autogen")


def echo(request: dict[str, Any]) -> str:
    """Answer with the text."""
    return f"reply to {last_text(request)}"


def selections(spans: RecordedSpans) -> list[tuple[str, str]]:
    """Return the speakers, and who chose each."""
    return [
        (s.attributes[semconv.SELECTED_SPEAKER], s.attributes[semconv.SELECTED_BY])
        for s in spans.named("invoke_agent")
        if semconv.SELECTED_SPEAKER in s.attributes
    ]


def test_a_pattern_whose_model_selects(spans: RecordedSpans) -> None:
    """The hidden chat in which it is asked gives no message and no turn, only its model calls."""
    with ScriptedLLM(programs.group_script) as server:
        members = [programs.person(name, server.url) for name in ("coder", "tester", "boss")]
        pattern = AutoPattern(
            initial_agent=members[0],
            agents=members,
            group_manager_args={
                "llm_config": programs.model(server.url),
                "is_termination_msg": lambda m: m.get("content") == "TERMINATE",
            },
        )
        initiate_group_chat(pattern, "Print the sum of 2 and 3.", max_rounds=8)
        requests = len(server.requests)
    spans.check_shape()
    assert [sender for sender, _, _ in spans.sent_messages()] == [
        "_User",
        "coder",
        "tester",
        "boss",
    ]
    assert len(spans.named("chat")) == requests
    assert selections(spans) == [("coder", "code"), ("tester", "model"), ("boss", "model")]


def test_a_pattern_in_turn(spans: RecordedSpans) -> None:
    with ScriptedLLM(echo) as server:
        members = [programs.person(name, server.url) for name in ("first", "second")]
        pattern = RoundRobinPattern(initial_agent=members[0], agents=members)
        initiate_group_chat(pattern, "Go.", max_rounds=4)
    spans.check_shape()
    assert [sender for sender, _, _ in spans.sent_messages()][1:] == ["first", "second", "first"]
    assert {by for _, by in selections(spans)} == {"code"}
    assert spans.trajectory().termination_reason == "max_turns"


def test_a_person_selects(spans: RecordedSpans, monkeypatch) -> None:
    """With `manual` it is the user who says who speaks next."""
    chosen = iter(["2", "1"])
    monkeypatch.setattr("builtins.input", lambda *_: next(chosen))
    with ScriptedLLM(programs.group_script) as server:
        user, manager = programs.team(server.url, max_round=3, speaker_selection_method="manual")
        user.initiate_chat(manager, message="Print the sum of 2 and 3.")
    spans.check_shape()
    assert selections(spans) == [("tester", "user"), ("coder", "user")]


@pytest.mark.parametrize("program", ["two_agents", "pattern"])
def test_a_model_that_streams(spans: RecordedSpans, monkeypatch, program: str) -> None:
    """AutoGen puts the chunks together: the same spans, and the tokens that the server tells."""
    scripts = {"two_agents": programs.talk_script, "pattern": programs.pattern_script}
    with ScriptedLLM(scripts[program]) as server:
        getattr(programs, program)(server.url)
        whole = spans.counts()
        spans.exporter.clear()
        server.requests.clear()
        plain = programs.model
        monkeypatch.setattr(programs, "model", lambda url, **more: plain(url, stream=True, **more))
        getattr(programs, program)(server.url)
        assert all(request["stream"] for request in server.requests)
        shown = [sum(len(json.dumps(m)) for m in r["messages"]) // 4 + 1 for r in server.requests]
    spans.check_shape()
    assert spans.counts() == whole
    assert [s.attributes.get(semconv.INPUT_TOKENS) for s in spans.named("chat")] == shown


def test_a_nested_chat_inside_of_a_group(spans: RecordedSpans) -> None:
    """A nested chat is below the turn of the member that holds it; its messages go to nobody else."""

    def script(request: dict[str, Any]) -> str:
        return "nested answer" if "You are helper." in system_text(request) else echo(request)

    with ScriptedLLM(script) as server:
        user, manager = programs.team(
            server.url, max_round=3, speaker_selection_method="round_robin"
        )
        coder = manager.groupchat.agents[0]
        helper = programs.person("helper", server.url)
        coder.register_nested_chats(
            [{"recipient": helper, "max_turns": 1, "message": "Help me."}], trigger=manager
        )
        user.initiate_chat(manager, message="Print the sum of 2 and 3.")
    spans.check_shape()
    outer, inner = spans.named("invoke_workflow")
    assert spans.parent(outer) is None
    assert spans.parent(inner).name == "invoke_agent coder"
    assert [(sender, to) for sender, to, _ in spans.sent_messages()] == [
        ("user", ("coder", "tester", "boss")),
        ("coder", ("helper",)),
        ("helper", ("coder",)),
        ("coder", ("tester", "boss")),
        ("tester", ("coder", "boss")),
    ]


def test_an_agent_that_raises_in_a_group(spans: RecordedSpans) -> None:
    """The error of a reply function is on its turn, on the chat, and reaches the program."""

    def fail(*_args: Any, **_more: Any) -> Any:
        raise KeyError("missing")

    with ScriptedLLM(programs.group_script) as server:
        user, manager = programs.team(
            server.url, max_round=3, speaker_selection_method="round_robin"
        )
        manager.groupchat.agents[1].register_reply([object, None], fail, position=0)
        manager.groupchat.agents[1]._reply_func_list[0]["trigger"] = lambda _sender: True
        with pytest.raises(KeyError, match="missing"):
            user.initiate_chat(manager, message="Print the sum of 2 and 3.")
    spans.check_shape()
    failed = [s.name.split(" ")[0] for s in spans.all if not s.status.is_ok]
    assert failed == ["invoke_workflow", "invoke_agent", "invoke_agent"]
    assert spans.trajectory().error == "'missing'"


def test_a_swarm(spans: RecordedSpans) -> None:
    """The older name of a group with hand-offs: by the model's choice, and by a tool's result."""
    swarm = pytest.importorskip(
        "autogen.agentchat.contrib.swarm_agent", reason="this version has no swarms"
    )

    def script(request: dict[str, Any]) -> Reply | str:
        offered = [tool["function"]["name"] for tool in request.get("tools", ())]
        if "You are tester." in system_text(request):
            return "It prints 5."
        return Reply(calls=(Call(offered[0], {"code": "print(5)"} if "submit" in offered else {}),))

    with ScriptedLLM(script) as server:
        triage, coder, tester = (
            programs.person(name, server.url) for name in ("triage", "coder", "tester")
        )

        def submit(code: str) -> str:
            """Submit code."""
            return swarm.SwarmResult(values=f"submitted {code}", agent=tester)

        # AutoGen reads the annotations, which are texts in this module.
        submit.__annotations__ = {"code": str, "return": swarm.SwarmResult}
        coder._add_single_function(submit)
        swarm.register_hand_off(triage, [swarm.OnCondition(target=coder, condition="needs code")])
        swarm.register_hand_off(tester, [swarm.AfterWork(swarm.AfterWorkOption.TERMINATE)])
        swarm.initiate_swarm_chat(
            initial_agent=triage,
            agents=[triage, coder, tester],
            messages="Print the sum of 2 and 3.",
            max_rounds=10,
        )
    spans.check_shape()
    handoffs = [
        (s.attributes[semconv.HANDOFF_SOURCE], s.attributes[semconv.HANDOFF_TARGET])
        for s in spans.named("execute_tool")
    ]
    assert handoffs == [("triage", "coder"), ("coder", "tester")]
    assert selections(spans) == [
        ("triage", "code"),
        ("_Swarm_Tool_Executor", "code"),
        ("coder", "agent"),
        ("_Swarm_Tool_Executor", "code"),
        ("tester", "agent"),
    ]
    assert [sender for sender, _, _ in spans.sent_messages()] == [
        "_User",
        "triage",
        "_Swarm_Tool_Executor",
        "coder",
        "_Swarm_Tool_Executor",
        "tester",
    ]
