"""Builds short invented runs, step by step, as the instrumentations would record them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from mast_trace.messages import Message
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory


class RunBuilder:
    """A run under construction; every call adds a step and returns the builder.

    ::

        run = RunBuilder("Add up the bills.", outcome="failure")
        run.calls("clerk", "list_bills", {"page": 1}, "12.50 and 7.50")
        run.says("clerk", "Together 20.00.", to="boss")
        trajectory = run.build()
    """

    def __init__(self, task: str = "Find out.", *, spans: bool = True, **attributes: Any) -> None:
        self._task = task
        self._spans = spans
        self._attributes = attributes
        self._steps: list[Step] = []
        self._invocations: list[Invocation] = []
        self._texts: dict[str, Message] = {}
        self._parent = "root"
        self._clock = 0

    def asks(self, text: str | None = None, *, to: str = "") -> RunBuilder:
        """Add a message of the user's."""
        return self._add(agent="user", text=text or self._task, role="user", to=(to,) if to else ())

    def says(
        self, agent: str, text: str, *, to: str | tuple[str, ...] = (), **more: Any
    ) -> RunBuilder:
        """Add a message of an agent's."""
        recipients = (to,) if isinstance(to, str) else to
        return self._add(agent=agent, text=text, role="assistant", to=recipients, **more)

    def calls(
        self,
        agent: str,
        tool: str,
        arguments: dict[str, Any],
        result: str = "",
        *,
        error: str | None = None,
        **more: Any,
    ) -> RunBuilder:
        """Add a tool call with its result."""
        return self._add(
            kind=StepKind.TOOL,
            agent=agent,
            text=result or (error or ""),
            tool=tool,
            arguments=json.dumps(arguments),
            error=error,
            **more,
        )

    def hands_over(self, agent: str, to: str) -> RunBuilder:
        """Add a call of a tool that only passes control on."""
        return self.calls(
            agent, f"transfer_to_{to}", {}, f"Successfully transferred to {to}", handoff_to=to
        )

    def shown(
        self,
        agent: str,
        *steps: int,
        length: int | None = None,
        kind: str = "model",
        span: str = "",
        parent: str = "",
        output: int | None = None,
    ) -> RunBuilder:
        """Add a model call of the agent's, or a turn, that is shown the messages of these steps.

        Its output is the message of step ``output``.
        """
        ids = tuple(f"m{step}" for step in steps)
        self._clock += 1
        self._invocations.append(
            Invocation(
                kind=kind,
                agent=agent,
                span_id=span or f"i{len(self._invocations)}",
                parent_span_id=parent or self._parent,
                start=self._clock,
                end=self._clock,
                input_ids=ids if length is None else (),
                input_roles=("user",) * len(ids) if length is None else (),
                input_length=length,
                output_id="" if output is None else f"m{output}",
            )
        )
        return self

    def prompted(self, agent: str, prompt: str) -> RunBuilder:
        """Add a turn of the agent's that is shown a system prompt; it lasts until the next step."""
        name = f"p{len(self._invocations)}"
        self._texts[name] = Message(content=prompt, role="system")
        call = Invocation("agent", agent, name, self._parent, self._clock, self._clock + 1)
        self._invocations.append(replace(call, input_ids=(name,), input_roles=("system",)))
        return self

    def inside(self, parent: str) -> RunBuilder:
        """Let the following steps belong to another conversation."""
        self._parent = parent
        return self

    def build(self) -> Trajectory:
        """Return the run."""
        return Trajectory(
            trace_id="0" * 31 + "1",
            steps=tuple(self._steps),
            invocations=tuple(self._invocations),
            texts=self._texts,
            task=self._task,
            **self._attributes,
        )

    def _add(
        self,
        *,
        agent: str,
        text: str,
        kind: StepKind = StepKind.MESSAGE,
        to: tuple[str, ...] = (),
        role: str = "",
        **more: Any,
    ) -> RunBuilder:
        index = len(self._steps)
        self._clock += 1
        recorded = (
            {
                "span_id": f"s{index}",
                "parent_span_id": self._parent,
                "message_id": f"m{index}",
                "start": self._clock,
                "end": self._clock,
            }
            if self._spans
            else {}
        )
        step = Step(
            index=index,
            kind=kind,
            agent=agent,
            text=text,
            role=role,
            recipients=to,
            **{**recorded, **more},
        )
        self._steps.append(step)
        self._texts[f"m{index}"] = Message(content=text, role=role or "tool")
        return self


def found(findings: list[Any], code: str) -> list[Any]:
    """Return the findings of one mode."""
    return [finding for finding in findings if finding.code == code]
