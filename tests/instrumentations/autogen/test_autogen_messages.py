"""Messages between AG2 classic agents: each once, in order, with sender and recipients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

import autogen_programs as programs
from scripted_llm import ScriptedLLM, last_text

from mast_trace import semconv
from mast_trace.trajectory import StepKind

if TYPE_CHECKING:
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("autogen")


def echo(request: dict) -> str:
    """Answer with the text."""
    return f"reply to {last_text(request)}"


TALK = [
    ("alice", ("bob",), "Hello Bob."),
    ("bob", ("alice",), "Bob heard: Hello Bob."),
    ("alice", ("bob",), "Alice agrees."),
    ("bob", ("alice",), "Bob heard: Alice agrees."),
    ("alice", ("bob",), "TERMINATE"),
]


@pytest.mark.parametrize("program", [programs.two_agents, programs.a_two_agents])
def test_two_agents(spans: RecordedSpans, program: Any) -> None:
    """A talk of two, also if it is awaited: flat below the run, each message answering the one before."""
    programs.serve(program, programs.talk_script)
    spans.check_shape()
    assert spans.sent_messages() == TALK
    assert spans.counts() == {
        "invoke_workflow": 1,
        "send_message": 5,
        "invoke_agent": 5,
        "chat": 4,
    }
    messages = spans.named("send_message")
    ids = [m.attributes[semconv.MESSAGE_ID] for m in messages]
    replies = [m.attributes.get(semconv.MESSAGE_IN_REPLY_TO) for m in messages]
    assert replies == [None, *ids[:4]]
    below = [*messages, *spans.named("invoke_agent")]
    assert {spans.parent(span).name for span in below} == {"invoke_workflow alice to bob"}
    run = spans.trajectory()
    assert run.task == "Hello Bob."
    assert run.termination_reason == "terminate_message"
    assert [step.kind for step in run.steps] == [StepKind.MESSAGE] * 5


@pytest.mark.parametrize("program", [programs.group, programs.a_group])
def test_a_group(spans: RecordedSpans, program: Any) -> None:
    """A group whose model selects: no relays, no hidden chat; the selecting calls are the manager's."""
    programs.serve(program, programs.group_script)
    spans.check_shape()
    assert spans.sent_messages() == [
        ("user", ("coder", "tester", "boss"), "Print the sum of 2 and 3."),
        ("coder", ("tester", "boss"), "print(5)"),
        ("tester", ("coder", "boss"), "It prints 5."),
        ("boss", ("coder", "tester"), "TERMINATE"),
    ]
    assert spans.counts() == {
        "invoke_workflow": 1,
        "send_message": 4,
        "invoke_agent": 4,
        "chat": 6,
    }
    manager = next(s for s in spans.named("invoke_agent") if s.name.endswith("chat_manager"))
    turns = [s for s in spans.named("invoke_agent") if s is not manager]
    assert {spans.parent(turn) for turn in turns} == {manager}
    selecting = [s for s in spans.named("chat") if spans.parent(s) is manager]
    assert [s.attributes[semconv.AGENT_NAME] for s in selecting] == ["chat_manager"] * 3
    selected = [
        (t.attributes[semconv.SELECTED_SPEAKER], t.attributes[semconv.SELECTED_BY]) for t in turns
    ]
    assert selected == [("coder", "model"), ("tester", "model"), ("boss", "model")]
    assert spans.trajectory().termination_reason == "terminate_message"


def test_an_introduction_is_one_message_of_the_manager(spans: RecordedSpans) -> None:
    """An introduction goes to everybody and the framework wrote it; rounds that run out end the chat."""
    programs.serve(programs.round_robin, programs.group_script)
    spans.check_shape()
    assert [(sender, to) for sender, to, _ in spans.sent_messages()] == [
        ("user", ("coder", "tester", "boss")),
        ("chat_manager", ("coder", "tester", "boss")),
        ("coder", ("tester", "boss")),
        ("tester", ("coder", "boss")),
    ]
    synthetic = [s.attributes.get(semconv.MESSAGE_SYNTHETIC) for s in spans.named("send_message")]
    assert synthetic == [None, True, None, None]
    by = [s.attributes[semconv.SELECTED_BY] for s in spans.named("invoke_agent")[1:]]
    assert by == ["code", "code"]
    assert spans.trajectory().termination_reason == "max_turns"


def test_a_limit_of_turns(spans: RecordedSpans) -> None:
    """AutoGen's words for the end stand beside the common one."""
    programs.serve(programs.limited, programs.talk_script)
    assert spans.trajectory().termination_reason == "max_turns"
    (root,) = spans.named("invoke_workflow")
    assert root.attributes["autogen.termination_reason"] == "Maximum turns (2) reached"


def test_a_human(spans: RecordedSpans) -> None:
    """A human's input is a message with the user's role; leaving ends the run."""
    programs.serve(programs.human, echo)
    spans.check_shape()
    roles = [s.attributes[semconv.MESSAGE_ROLE] for s in spans.named("send_message")]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert spans.trajectory().termination_reason == "user_ended"


def test_the_same_words_said_twice_are_two_messages(spans: RecordedSpans) -> None:
    """Repetition is what some failures consist of: it keeps its own ids."""
    programs.serve(programs.limited, lambda _request: "Hello Bob.")
    messages = spans.named("send_message")
    assert [m.attributes[semconv.MESSAGE_CONTENT] for m in messages] == ["Hello Bob."] * 4
    assert len({m.attributes[semconv.MESSAGE_ID] for m in messages}) == 4
    assert [step.kind for step in spans.trajectory().steps] == [StepKind.MESSAGE] * 4


def test_a_message_outside_of_any_chat_is_a_run(spans: RecordedSpans) -> None:
    """`send` without `initiate_chat` and a reply on request have a root like everything else."""
    with ScriptedLLM(lambda _request: "TERMINATE") as server:
        alice, bob = programs.pair(server.url)
        alice.send("Hello Bob.", bob, request_reply=True)
    spans.check_shape()
    assert [text for _, _, text in spans.sent_messages()] == ["Hello Bob.", "TERMINATE"]
    spans.exporter.clear()
    with ScriptedLLM(echo) as server:
        reply = programs.person("bob", server.url).generate_reply(
            [{"role": "user", "content": "Who are you?"}]
        )
    assert reply == "reply to Who are you?"
    spans.check_shape()
    assert spans.counts() == {"invoke_workflow": 1, "invoke_agent": 1, "chat": 1}


def test_a_resumed_group_does_not_say_it_all_again(spans: RecordedSpans) -> None:
    """Earlier messages are replayed to the agents without becoming messages of the new run."""
    with ScriptedLLM(programs.group_script) as server:
        user, manager = programs.team(server.url)
        user.initiate_chat(manager, message="Print the sum of 2 and 3.")
        earlier = list(manager.groupchat.messages)
        spans.exporter.clear()
        _, again = programs.team(server.url)
        again.groupchat.agents.append(user)
        speaker, message = again.resume(
            messages=earlier, remove_termination_string="TERMINATE", silent=True
        )
        speaker.initiate_chat(again, message=message, clear_history=False)
    spans.check_shape()
    texts = [text for _, _, text in spans.sent_messages()]
    assert len(texts) == len(again.groupchat.messages) - len(earlier) + 1
