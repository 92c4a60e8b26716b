"""The tools of the MCP server; their docstrings are what a model reads about them."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer  # noqa: TC002  # it reads the annotations
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from mast_trace.exceptions import MastTraceError, StorageError
from mast_trace_collector.plugins import answers
from mast_trace_collector.storage.project_store import ProjectStore
from mast_trace_collector.storage.runs import record_outcome
from mast_trace_dashboards.mcp_server import reading
from mast_trace_dashboards.mcp_server.answers import NOTICE, fenced, short
from mast_trace_dashboards.mcp_server.reading import (
    StoreReading,
    acknowledge,
    pattern_of,
    patterns_of,
)
from mast_trace_dashboards.plugins import Plugin
from mast_trace_dashboards.printable import json_text
from mast_trace_dashboards.run_names import NotFound
from mast_trace_judge.store.labels import HumanLabel, save_labels

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.found_run import FoundRun
    from mast_trace_dashboards.plugins import StoreOf

logger = logging.getLogger(__name__)
_RUNS = "mast-trace://runs/{run}"
_WHY = (
    "Why did the last failed run fail? Call list_runs with outcome failure and limit 1, then get_run with its id. Say which "
    "agent erred in which step, with the quotes and the kind of evidence; where no step is asserted, say that the place to "
    "look at first is a suggestion. Call get_step only where a quote needs what surrounds it."
)
Run = Annotated[str, Field(description="The run's id, the beginning of it, or `last`.")]
Since = Annotated[str, Field(description="Only runs since then: 15m, 2h, 7d, or a time.")]
Step = Annotated[int, Field(ge=0, description="Number of the step, from 0.")]
First = Annotated[
    int, Field(ge=0, le=10**9, description="Number of the first item: `next` of the page before.")
]


def label_run(
    store: Store,
    found: FoundRun,
    annotator: str,
    *,
    outcome: str,
    modes: Sequence[str],
    step: int | None,
    note: str,
) -> Any:
    """Record an opinion of a run; a later one of the same annotator replaces it.

    Raises:
        ConfigurationError: the opinion is empty, or names an unknown failure mode or outcome.
        NotFound: the run has no such step.
    """
    count = found.stored.count
    if step is not None and not 0 <= step < count:
        raise NotFound(f"the run has no step {step}: its steps are 0 to {count - 1}")
    agent = "" if step is None else found.stored.outline.actor(step)
    run, project = found.stored.trace_id, found.stored.project
    chosen = tuple(sorted(set(modes)))
    label = HumanLabel(run, annotator, outcome, chosen, step, agent, note, project=project)
    save_labels(store, [label])
    return {"recorded": "label", "run": run, "annotator": annotator}


def set_outcome(
    store: Store, found: FoundRun, outcome: Literal["success", "failure"], reason: str
) -> Any:
    """Record a run's outcome; the run is judged again.

    Raises:
        StorageError: the database does not accept it.
    """
    # A project's store refuses all statements but inserts of rows; the run was found in it.
    whole = store.whole if isinstance(store, ProjectStore) else store
    record_outcome(whole, found.stored.trace_id, outcome, reason, project=found.stored.project)
    return {"recorded": "outcome", "run": found.stored.trace_id, "outcome": outcome}


class ReadingTools:
    """The tools that read.

    Args:
        store_of: returns the store that the sender of a request may see.
        idle: seconds after which a run without a root counts as finished.
    """

    def __init__(self, store_of: StoreOf, idle: float) -> None:
        self._store_of = store_of
        self._idle = idle

    def _ask(self, ctx: Context[Any, Any]) -> StoreReading:
        return StoreReading(self._store_of(ctx), idle=self._idle)

    def list_runs(
        self,
        ctx: Context[Any, Any],
        since: Since = "",
        outcome: Literal["", "success", "failure", "unknown", "suspect"] = "",
        mode: Annotated[str, Field(description="A failure mode shown, such as 2.6.")] = "",
        agent: Annotated[str, Field(description="An agent that acts in the run.")] = "",
        decisive_agent: Annotated[str, Field(description="The agent that decided it.")] = "",
        service: str = "",
        limit: Annotated[int, Field(ge=1, le=reading.MOST_RUNS)] = 20,
        after: Annotated[str, Field(description="`next` of the page before.")] = "",
    ) -> Any:
        """List runs of agents, newest first: outcome, failure modes, decisive agent and step."""
        chosen = {
            "outcomes": outcome,
            "modes": mode,
            "agents": agent,
            "decisive_agents": decisive_agent,
            "services": service,
        }
        filters = {name: [value] for name, value in chosen.items() if value}
        return self._ask(ctx).runs(since, limit, after, filters)

    def search_runs(
        self,
        ctx: Context[Any, Any],
        text: Annotated[str, Field(description="The text to find; case does not matter.")],
        since: Since = "",
        limit: Annotated[int, Field(ge=1, le=reading.MOST_RUNS)] = 20,
    ) -> Any:
        """Find runs by a text in messages, tool calls or answers, with the passage, or in names, ids and tags, newest first."""
        return self._ask(ctx).search(text, since, limit)

    def get_run(self, ctx: Context[Any, Any], run: Run = "last") -> Any:
        """Return a run, what is said of it (the cause or where to look, evidence, next commands), and its verdict.

        `evidence` tells how far to trust a finding: exact, heuristic or model. `abstained` means
        that no step is named as decisive; `calibrated` false means that probabilities only rank.
        """
        return self._ask(ctx).run(run)

    def list_steps(
        self,
        ctx: Context[Any, Any],
        run: Run = "last",
        first: First = 0,
        limit: Annotated[int, Field(ge=1, le=reading.MOST_STEPS)] = 50,
    ) -> Any:
        """List the steps of a run in order: messages, tool calls and model answers, texts clipped."""
        return self._ask(ctx).steps(run, first, limit)

    def get_step(
        self,
        ctx: Context[Any, Any],
        run: Run,
        step: Step,
        offset: Annotated[int, Field(ge=0, description="`next_offset` of the part before.")] = 0,
    ) -> Any:
        """Return one step with its whole text."""
        return self._ask(ctx).step(run, step, offset)

    def get_step_input(self, ctx: Context[Any, Any], run: Run, step: Step, first: First = 0) -> Any:
        """Return the messages that the model was shown when it produced a step: its exact input."""
        return self._ask(ctx).step_input(run, step, first)

    def compare_runs(self, ctx: Context[Any, Any], run: Run, other: Run) -> Any:
        """Compare two runs step by step, and return the first difference with its surroundings."""
        return self._ask(ctx).compare(run, other)

    def list_patterns(
        self,
        ctx: Context[Any, Any],
        since: Since = "",
        state: Literal["", "open", "acknowledged", "resolved", "reopened"] = "",
        service: str = "",
        first: First = 0,
    ) -> Any:
        """List failures that recur over runs: place, share with interval, trend, contrast with successes.

        `contrast` says whether its runs fail more often than others, corrected for all patterns; it is no proof
        of a cause. `confirm` in get_pattern proves one run.
        """
        return patterns_of(self._store_of(ctx), since, state, service, first)

    def get_pattern(
        self, ctx: Context[Any, Any], pattern: Annotated[str, Field(description="Its id.")]
    ) -> Any:
        """Return a pattern with its newest runs and the commands that confirm it or plant it."""
        return pattern_of(self._store_of(ctx), pattern)

    def list_queries(
        self,
        ctx: Context[Any, Any],  # noqa: ARG002  # every tool has it
        name: Annotated[str, Field(description="Only this one, in full.")] = "",
    ) -> Any:
        """List the named queries: trends, shares, costs, alerts, ingestion; of one, its parameters and columns."""
        return reading.queries(name)

    def run_query(
        self,
        ctx: Context[Any, Any],
        name: str,
        parameters: Annotated[
            dict[str, Any],
            Field(
                description="Values by name; list_queries with the query's name says which.",
                default={},
            ),
        ],
        first: First = 0,
    ) -> Any:
        """Run a named query and return its rows, by pages."""
        return self._ask(ctx).query(name, parameters, first)

    def list_failure_modes(self, ctx: Context[Any, Any]) -> Any:  # noqa: ARG002  # every tool has it
        """List the 14 MAST failure modes: code, name and definition."""
        return reading.failure_modes()


class WritingTools:
    """The tools that write a label, an outcome or the state of a pattern.

    Args:
        store_of: as in `ReadingTools`; raises `ToolError` if the sender may not write.
        annotator_of: returns the name under which the sender's labels are kept.
        idle: as in `ReadingTools`.
    """

    def __init__(
        self, store_of: StoreOf, annotator_of: Callable[[Context[Any, Any]], str], idle: float
    ) -> None:
        self._store_of = store_of
        self._annotator_of = annotator_of
        self._idle = idle

    def label_run(
        self,
        ctx: Context[Any, Any],
        run: Run,
        outcome: Literal["", "success", "failure"] = "",
        modes: Annotated[
            list[str] | None, Field(description="Codes such as 2.6, or `none`.")
        ] = None,
        decisive_step: Annotated[int | None, Field(ge=0)] = None,
        note: str = "",
    ) -> Any:
        """Record an opinion of a run: outcome, failure modes, decisive step. It replaces your earlier one."""
        store = self._store_of(ctx)
        found = StoreReading(store, idle=self._idle).find(run)
        return label_run(
            store,
            found,
            self._annotator_of(ctx),
            outcome=outcome,
            modes=modes or (),
            step=decisive_step,
            note=note,
        )

    def record_outcome(
        self,
        ctx: Context[Any, Any],
        run: Run,
        outcome: Literal["success", "failure"],
        reason: str = "",
    ) -> Any:
        """Record whether a run succeeded; it overrides what the program recorded, and it is judged again."""
        store = self._store_of(ctx)
        return set_outcome(store, StoreReading(store, idle=self._idle).find(run), outcome, reason)

    def acknowledge_pattern(
        self,
        ctx: Context[Any, Any],
        pattern: Annotated[str, Field(description="Its id.")],
        note: str = "",
    ) -> Any:
        """Record that a pattern is known, so that the alert on new patterns leaves it out."""
        return acknowledge(self._store_of(ctx), pattern, self._annotator_of(ctx), note)


def add_tools(
    server: MCPServer[Any], tools: ReadingTools | WritingTools, store_of: StoreOf
) -> None:
    """Add the public methods of a class of tools to a server.

    Args:
        server: the server.
        tools: the methods' object; those of plugins join the ones that read.
        store_of: returns the store that the sender of a request may read.
    """
    hints = ToolAnnotations(
        read_only_hint=isinstance(tools, ReadingTools),
        destructive_hint=False,
        open_world_hint=False,
    )
    functions = [getattr(tools, name) for name in vars(type(tools)) if not name.startswith("_")]
    names = {function.__name__ for function in functions}
    if isinstance(tools, ReadingTools):
        reads = _answering(tools.get_run, store_of)

        def run(run: str, ctx: Context[Any, Any]) -> str:
            return fenced((reads(ctx=ctx, run=run).structured_content or {}).get("answer"))

        server.resource(_RUNS, title="A run with its verdict", mime_type="text/plain")(run)
        server.prompt(title="Cause of the last failure")(why_did_the_last_run_fail)
        added = answers(Plugin, lambda each: tuple(each.tools(store_of)))
        further = (function for _, its in added for function in its)
        functions += [each for each in further if each.__name__ not in names]
    for function in functions:
        server.add_tool(_answering(function, store_of), annotations=hints, structured_output=False)


def why_did_the_last_run_fail() -> str:
    """Find the cause of the newest failed run."""
    return _WHY


def _answering(function: Callable[..., Any], store_of: StoreOf) -> Callable[..., CallToolResult]:
    """Return a function that answers with a fenced text and the same as data, and reports expected failures to the model."""

    @functools.wraps(function)
    def answer(*args: Any, **kwargs: Any) -> CallToolResult:
        try:
            found = short(function(*args, **kwargs))
            data = json.loads(json_text(found))
            return CallToolResult(
                content=[TextContent(text=fenced(found))],
                structured_content={"notice": NOTICE, "answer": data},
            )
        except StorageError as error:
            logger.warning("the tool %s failed: %s", function.__name__, error)
            if isinstance(store_of(kwargs["ctx"]), ProjectStore):
                # Its text about tables, limits and address is for the operator only.
                raise ToolError(
                    "The database does not answer. The operator's log says why."
                ) from None
            raise ToolError(f"The database does not answer: {error}") from error
        except MastTraceError as error:
            raise ToolError(str(error)) from error

    return answer
