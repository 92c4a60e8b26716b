"""A tool whose annotations AutoGen reads as objects: they must not be turned into text."""

from typing import Any

from autogen.agentchat.group import AgentTarget, ContextVariables, ReplyResult


def submit_to(agent: Any) -> Any:
    """Return a tool that notes the code and hands over to ``agent``."""

    def submit(code: str, context_variables: ContextVariables) -> ReplyResult:
        context_variables["submitted"] = True
        return ReplyResult(
            message=f"submitted {code}",
            target=AgentTarget(agent),
            context_variables=context_variables,
        )

    return submit
