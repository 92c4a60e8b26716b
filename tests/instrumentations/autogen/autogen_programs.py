"""Programs on AG2 classic, with the scripted server as their model.

Each takes the server's URL and returns what the program computed, so that runs with and without
instrumentation can be compared.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from autogen import (
    ConversableAgent,
    GroupChat,
    GroupChatManager,
    UserProxyAgent,
    register_function,
)
from autogen.agentchat import a_initiate_group_chat, initiate_group_chat
from autogen.agentchat.group import (
    AgentTarget,
    ContextExpression,
    ContextVariables,
    ExpressionContextCondition,
    OnCondition,
    OnContextCondition,
    StringLLMCondition,
    TerminateTarget,
)
from autogen.agentchat.group.patterns import DefaultPattern
from autogen_tools import submit_to
from scripted_llm import Call, Reply, ScriptedLLM, last_text, messages_of, system_text

if TYPE_CHECKING:
    from collections.abc import Callable


def model(url: str, **more: Any) -> dict[str, Any]:
    """The scripted model."""
    return {
        "config_list": [
            {
                "model": "scripted",
                "base_url": url,
                "api_key": "scripted",
                "price": [0, 0],
                "max_retries": 0,
                **more,
            }
        ],
        "cache_seed": None,
    }


def serve(program: Callable[[str], Any], script: Callable[[dict[str, Any]], Any]) -> Any:
    """Run a program to its end against its model."""
    with ScriptedLLM(script) as server:
        result = program(server.url)
        return asyncio.run(result) if asyncio.iscoroutine(result) else result


def person(name: str, url: str | None, **more: Any) -> ConversableAgent:
    """An agent that its script knows by name; without a model if there is no URL."""
    settings = {"human_input_mode": "NEVER", "code_execution_config": False, **more}
    return ConversableAgent(
        name,
        system_message=f"You are {name}.",
        llm_config=model(url) if url else False,
        **settings,
    )


def history(result: Any) -> list[str]:
    """Return the messages of a chat, as AutoGen keeps them; a call has no text, or the text "None"."""
    return [
        f"{m.get('name')}: {'' if m.get('content') in {None, 'None'} else m.get('content')}"
        for m in result.chat_history
    ]


def spoken(manager: GroupChatManager) -> list[str]:
    """Return the messages of a group."""
    return [f"{m.get('name')}: {m.get('content')}" for m in manager.groupchat.messages]


# -- two agents -------------------------------------------------------------------------------------


def talk_script(request: dict[str, Any]) -> str:
    """Bob answers; Alice ends the talk after the second answer."""
    if "You are bob" in system_text(request):
        return f"Bob heard: {last_text(request)}"
    return "TERMINATE" if len(messages_of(request)) > 4 else "Alice agrees."


def pair(url: str) -> tuple[ConversableAgent, ConversableAgent]:
    """Two agents, of which Bob knows when to stop."""
    bob = person("bob", url, is_termination_msg=lambda m: m.get("content") == "TERMINATE")
    return person("alice", url), bob


def two_agents(url: str) -> list[str]:
    """A talk that a word ends."""
    alice, bob = pair(url)
    return history(alice.initiate_chat(bob, message="Hello Bob."))


async def a_two_agents(url: str) -> list[str]:
    """Two agents, awaited."""
    alice, bob = pair(url)
    return history(await alice.a_initiate_chat(bob, message="Hello Bob."))


def limited(url: str) -> list[str]:
    """A talk that its limit of turns ends."""
    alice, bob = pair(url)
    return history(alice.initiate_chat(bob, message="Hello Bob.", max_turns=2))


def model_error(url: str) -> str:
    """The model answers with an error."""
    alice, bob = pair(url)
    try:
        alice.initiate_chat(bob, message="Hello Bob.")
    except Exception as error:
        return type(error).__name__
    return "no failure"


def failing_script(_request: dict[str, Any]) -> Reply:
    """The model is out of order."""
    return Reply("down", status=500)


# -- tools ------------------------------------------------------------------------------------------

TOOL_CALLS = (
    Call("add", {"a": 2, "b": 3}, id="c1"),
    Call("boom", id="c2"),
    Call("no_such_tool", {"x": 1}, id="c3"),
    Call("look_up", {"key": "k"}, id="c4"),
    Call("add", '{"a": 2, ', id="c5"),
)


def tools_script(request: dict[str, Any]) -> Reply | str:
    """Ask for five calls at once, then answer."""
    if messages_of(request)[-1]["role"] == "tool":
        return "The sum is 5. TERMINATE"
    return Reply(calls=TOOL_CALLS)


def with_tools(url: str) -> tuple[ConversableAgent, ConversableAgent]:
    """A solver and the user's proxy that executes its calls."""
    ended: Callable[[Any], bool] = lambda m: "TERMINATE" in (m.get("content") or "")  # noqa: E731
    user = person("user", None, is_termination_msg=ended)
    solver = person("solver", url)

    def add(a: int, b: int) -> int:
        return a + b

    def boom() -> str:
        raise ValueError("out of order")

    async def look_up(key: str) -> str:
        await asyncio.sleep(0)
        return f"value of {key}"

    for function in (add, boom, look_up):
        register_function(function, caller=solver, executor=user, description=function.__name__)
    return user, solver


def tools(url: str) -> list[str]:
    """Parallel, raising, unknown, async and malformed calls."""
    user, solver = with_tools(url)
    return history(user.initiate_chat(solver, message="What is 2 + 3?"))


async def a_tools(url: str) -> list[str]:
    """The calls of `tools`, awaited."""
    user, solver = with_tools(url)
    return history(await user.a_initiate_chat(solver, message="What is 2 + 3?"))


def code_script(request: dict[str, Any]) -> str:
    """Write code that works, then code that fails, then end."""
    seen = len(messages_of(request))
    if seen <= 2:
        return "```python\nprint(2 + 3)\n```"
    return "```python\nraise SystemExit(3)\n```" if seen <= 4 else "TERMINATE"


def code(url: str, folder: str) -> list[str]:
    """Code that an agent writes and the user's proxy runs."""
    from autogen.coding import LocalCommandLineCodeExecutor

    executor = LocalCommandLineCodeExecutor(work_dir=folder)
    user = person(
        "user",
        None,
        code_execution_config={"executor": executor},
        is_termination_msg=lambda m: m.get("content") == "TERMINATE",
    )
    return history(user.initiate_chat(person("coder", url), message="Print the sum of 2 and 3."))


# -- groups -----------------------------------------------------------------------------------------


def group_script(request: dict[str, Any]) -> str:
    """Each says a thing of its own; the selector goes round."""
    system = system_text(request)
    if "role play game" in system:
        return _next_speaker(request)
    for name, words in (("coder", "print(5)"), ("tester", "It prints 5."), ("boss", "TERMINATE")):
        if f"You are {name}." in system:
            return words
    raise AssertionError(system)


def _next_speaker(request: dict[str, Any]) -> str:
    speakers = [m.get("name") for m in messages_of(request) if m.get("name") in {"coder", "tester"}]
    return {None: "coder", "coder": "tester", "tester": "boss"}[speakers[-1] if speakers else None]


def team(url: str, **more: Any) -> tuple[ConversableAgent, GroupChatManager]:
    """A user and the manager of a group of three."""
    user = person("user", None)
    members = [person(name, url) for name in ("coder", "tester", "boss")]
    group = GroupChat(agents=members, messages=[], **{"max_round": 8, **more})
    manager = GroupChatManager(
        group,
        llm_config=model(url),
        is_termination_msg=lambda m: m.get("content") == "TERMINATE",
    )
    return user, manager


def group(url: str) -> list[str]:
    """A group whose speakers a model selects."""
    user, manager = team(url)
    user.initiate_chat(manager, message="Print the sum of 2 and 3.")
    return spoken(manager)


async def a_group(url: str) -> list[str]:
    """The group, awaited."""
    user, manager = team(url)
    await user.a_initiate_chat(manager, message="Print the sum of 2 and 3.")
    return spoken(manager)


def round_robin(url: str) -> list[str]:
    """A group that speaks in turn, with introductions, until its rounds are over."""
    user, manager = team(
        url, max_round=3, speaker_selection_method="round_robin", send_introductions=True
    )
    user.initiate_chat(manager, message="Print the sum of 2 and 3.")
    return spoken(manager)


def pattern_script(request: dict[str, Any]) -> Reply | str:
    """Triage transfers by a model's hand-off, the coder by a tool's result, the tester ends."""
    system, last = system_text(request), messages_of(request)[-1]
    if "You are triage." in system:
        return Reply(calls=(Call("transfer_to_coder_1", id="h1"),))
    if "You are coder." in system:
        if last["role"] == "tool":
            return "unreachable"
        return Reply(calls=(Call("submit", {"code": "print(5)"}, id="h2"),))
    if "You are tester." in system:
        return "It prints 5."
    return "All good."


def crew(url: str) -> DefaultPattern:
    """Triage, coder, tester and boss with four kinds of hand-over."""
    variables = ContextVariables({"submitted": False})
    triage, coder, tester, boss = (
        person(name, url) for name in ("triage", "coder", "tester", "boss")
    )

    coder.register_for_llm(description="Submit code")(submit_to(tester))
    triage.handoffs.add_llm_condition(
        OnCondition(target=AgentTarget(coder), condition=StringLLMCondition("needs code"))
    )
    tester.handoffs.set_after_work(AgentTarget(boss))
    boss.handoffs.set_after_work(TerminateTarget())
    return DefaultPattern(
        initial_agent=triage,
        agents=[triage, coder, tester, boss],
        context_variables=variables,
        group_after_work=TerminateTarget(),
    )


def pattern(url: str) -> list[str]:
    """A group with hand-offs."""
    return talk(crew(url))


def talk(members: DefaultPattern) -> list[str]:
    """Let a group speak."""
    result, _, last = initiate_group_chat(members, "Print the sum of 2 and 3.", max_rounds=12)
    return [*history(result), last.name]


async def a_pattern(url: str) -> list[str]:
    """The group with hand-offs, awaited."""
    result, _, last = await a_initiate_group_chat(
        crew(url), "Print the sum of 2 and 3.", max_rounds=12
    )
    return [*history(result), last.name]


def by_condition(url: str) -> list[str]:
    """A hand-off that a condition on the group's variables makes."""
    first, second = person("first", url), person("second", url)
    first.handoffs.add_context_condition(
        OnContextCondition(
            target=AgentTarget(second),
            condition=ExpressionContextCondition(ContextExpression("${urgent}")),
        )
    )
    result, _, _ = initiate_group_chat(
        DefaultPattern(
            initial_agent=first,
            agents=[first, second],
            context_variables=ContextVariables({"urgent": True}),
            group_after_work=TerminateTarget(),
        ),
        "Help!",
        max_rounds=5,
    )
    return history(result)


# -- chats within and after chats -------------------------------------------------------------------


def nested(url: str) -> list[str]:
    """Bob asks Carol in a chat of their own before he answers."""
    alice, bob, carol = (person(name, url) for name in ("alice", "bob", "carol"))
    bob.register_nested_chats(
        [{"recipient": carol, "max_turns": 1, "message": "Carol, what do you say?"}],
        trigger=alice,
    )
    return history(alice.initiate_chat(bob, message="Hello Bob.", max_turns=1))


def sequence(url: str) -> list[str]:
    """Two chats, the second with what came of the first."""
    alice, bob, carol = (person(name, url) for name in ("alice", "bob", "carol"))
    results = alice.initiate_chats(
        [
            {"recipient": bob, "message": "One?", "max_turns": 1},
            {"recipient": carol, "message": "Two?", "max_turns": 1},
        ]
    )
    return [line for result in results for line in history(result)]


def background(url: str) -> list[str]:
    """A chat in a thread, whose events the program reads."""
    alice, bob = pair(url)
    response = alice.run(bob, message="Hello Bob.", max_turns=1)
    kinds = [event.type for event in response.events]
    return [*kinds, str(response.summary)]


def background_sequence(url: str) -> list[str]:
    """Two chats one after the other in a thread."""
    alice, bob, carol = (person(name, url) for name in ("alice", "bob", "carol"))
    responses = alice.sequential_run(
        [
            {"recipient": bob, "message": "One?", "max_turns": 1},
            {"recipient": carol, "message": "Two?", "max_turns": 1},
        ]
    )
    return [event.type for response in responses for event in response.events]


def human(url: str) -> list[str]:
    """A human answers once and then leaves."""
    answers = iter(["More, please.", "exit"])

    class Human(UserProxyAgent):
        def get_human_input(self, prompt: str, **_more: Any) -> str:
            return next(answers)

    user = Human("user", human_input_mode="ALWAYS", code_execution_config=False)
    return history(user.initiate_chat(person("bob", url), message="Hello Bob."))
