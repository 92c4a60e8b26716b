"""The patches of the framework: the table, and one method for each kind of call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace_instrumentations.base import Args, Instrumentor, Kwargs, Patch
from mast_trace_instrumentations.template.agent import begin_turn
from mast_trace_instrumentations.template.chat import begin_chat
from mast_trace_instrumentations.template.message import record_message
from mast_trace_instrumentations.template.run import begin_run
from mast_trace_instrumentations.template.tool import begin_tool

if TYPE_CHECKING:
    from mast_trace.spans import Call


class ToyTeamInstrumentor(Instrumentor):
    """Records ToyTeam programs."""

    framework = "toyteam"
    distributions = ("toyteam",)
    versions = ("1.0", "2.0")
    patches = (
        # Functions, coroutines, generators and asynchronous generators take the same kind of row.
        Patch("toyteam", "Team.run", "begin_run"),
        Patch("toyteam", "Team.stream", "begin_run", optional="since 1.2"),
        Patch("toyteam", "Agent.act", "begin_turn"),
        Patch("toyteam", "Team.deliver", "begin_message"),
        Patch("toyteam", "Tool.call", "begin_tool"),
        Patch("toyteam", "Model.complete", "begin_chat"),
    )

    def begin_run(self, team: Any, args: Args, kwargs: Kwargs) -> Call:
        """Begin a run of a team."""
        return begin_run(self.telemetry, team, args[0] if args else kwargs["task"])

    def begin_turn(self, agent: Any, args: Args, kwargs: Kwargs) -> Call:
        """Begin a turn of an agent."""
        return begin_turn(self.telemetry, agent, args[0] if args else kwargs["history"])

    def begin_message(self, _team: Any, args: Args, _kwargs: Kwargs) -> None:
        """Record a message before it is delivered."""
        record_message(self.telemetry, *args)

    def begin_tool(self, tool: Any, _args: Args, kwargs: Kwargs) -> Call:
        """Begin an execution of a tool."""
        return begin_tool(self.telemetry, tool, kwargs)

    def begin_chat(self, model: Any, args: Args, kwargs: Kwargs) -> Call:
        """Begin a call of a model."""
        return begin_chat(self.telemetry, model, args[0] if args else kwargs["messages"])
