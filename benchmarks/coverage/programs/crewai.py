"""A crew of two: the writer delegates to the researcher, one of whose tools fails."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

from scripted_llm import Call, Reply, messages_of, system_text
from truth import Tool, Truth

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTION = "What do the figures add up to?"
DELEGATION = {"task": "Find the figures.", "context": "of this year", "coworker": "researcher"}
DELEGATE = "delegate_work_to_coworker"
TRUTH = Truth(
    messages=(
        ("user", QUESTION),
        ("writer", "Find the figures."),
        ("researcher", "The figures are 20 and 22."),
        ("writer", "The total is 42."),
    ),
    tools=(
        Tool("writer", DELEGATE, DELEGATION),
        Tool("researcher", "read", {"page": 1}),
        Tool("researcher", "read", {"page": 2}),
        Tool("researcher", "read", {"page": 3}, failed=True),
        Tool("researcher", "search", {"text": "figures"}, failed=True),
        Tool("writer", "add", {"a": 20, "b": 22}),
    ),
    handoffs=(("writer", "researcher"),),
)


def script(request: dict[str, Any]) -> Reply | str:
    """Answer as one of the two."""
    history = messages_of(request)
    answered = any(message["role"] == "tool" for message in history)
    if "You are researcher" in system_text(request):
        pages = [Call("read", {"page": page}) for page in (1, 2, 3)]
        calls = (*pages, Call("search", {"text": "figures"}))
        return "The figures are 20 and 22." if answered else Reply(calls=calls)
    rounds = sum(1 for message in history if message.get("tool_calls"))
    steps = (Call(DELEGATE, DELEGATION), Call("add", {"a": 20, "b": 22}))
    return Reply(calls=(steps[rounds],)) if rounds < len(steps) else "The total is 42."


@contextlib.contextmanager
def _traced(own: Any) -> Iterator[None]:
    """Switch on CrewAI's own traces of an execution, which otherwise go to its makers' service."""
    from crewai.telemetry.tracing import TraceSession
    from opentelemetry.sdk.trace import SpanProcessor

    class Forward(SpanProcessor):
        """Hands spans on and outlives the session, which shuts its processors down."""

        def on_end(self, span: Any) -> None:
            own._active_span_processor.on_end(span)

    session = TraceSession(str(uuid.uuid4()), processors=[Forward()])
    with session.activate():
        yield
    session.finish_spans()
    session.shutdown()


def run(url: str, own: Any = None) -> None:
    """Build the crew and set it to work once; with CrewAI's own traces if a provider is given."""
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    @tool("read")
    def read(page: int) -> str:
        """Read a page."""
        if page > 2:
            raise ValueError(f"there is no page {page}")
        return f"page {page}: {18 + 2 * page}"

    @tool("add")
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    model = LLM(model="openai/gpt-4o", base_url=url, api_key="scripted")
    researcher = Agent(
        role="researcher", goal="find figures", backstory="a reader", tools=[read], llm=model
    )
    writer = Agent(
        role="writer",
        goal="answer",
        backstory="an author",
        tools=[add],
        llm=model,
        allow_delegation=True,
    )
    task = Task(description=QUESTION, expected_output="a sentence", agent=writer)
    with _traced(own) if own else contextlib.nullcontext():
        answer = str(Crew(name="team", agents=[writer, researcher], tasks=[task]).kickoff())
    if answer != "The total is 42.":
        raise SystemExit(f"the program went wrong: {answer}")
