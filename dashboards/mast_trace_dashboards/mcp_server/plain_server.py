"""An MCP server that says in a sentence which arguments of a call are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp.server.mcpserver import Context

_KINDS: Final = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
}


class PlainServer(MCPServer[Any]):
    """Answers a call with wrong arguments in words of its own: the package's are those of a validator."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Any:
        """Call a tool by name.

        Raises:
            ToolError: the tool is unknown, its arguments are wrong, or it failed.
        """
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            # Those derived from ToolError are crashes, which may have the same cause.
            if type(error) is not ToolError or not isinstance(cause, ValidationError):
                raise
            schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
            wrong = {str(each["loc"][0]): each["type"] == "missing" for each in cause.errors()}
            raise ToolError(wrong_arguments(name, wrong, schemas[name])) from cause


def wrong_arguments(tool: str, wrong: Mapping[str, bool], schema: Mapping[str, Any]) -> str:
    """Return a sentence on the wrong arguments of a call.

    Args:
        tool: its name.
        wrong: the arguments' names, each with whether it is missing.
        schema: JSON schema of the tool's arguments.
    """
    told = [
        f"`{name}`{', which is missing,' if missing else ''} must be {_wanted(schema['properties'][name])}"
        for name, missing in wrong.items()
    ]
    return f"Wrong arguments of {tool}: {'; '.join(told)}."


def _wanted(schema: Mapping[str, Any]) -> str:
    """Return in words what a schema allows, with its description."""
    allowed = _allowed(schema)
    meaning = schema.get("description", "").rstrip(".")
    return f"{allowed} ({meaning[:1].lower()}{meaning[1:]})" if meaning else allowed


def _allowed(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        # A value that may be null may be left out as well.
        given = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return _either([_allowed(each) for each in given])
    if "enum" in schema:
        return _either([f'"{each}"' for each in schema["enum"]])
    if schema.get("type") == "array":
        return f"a list, in which each item is {_allowed(schema.get('items', {}))}"
    kind = _KINDS.get(schema.get("type", ""), "a value")
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return kind
    if high is None:
        return f"{kind} of at least {low:,}"
    return f"{kind} of at most {high:,}" if low is None else f"{kind} from {low:,} to {high:,}"


def _either(each: Sequence[str]) -> str:
    *first, last = each
    return f"{', '.join(first)} or {last}" if first else last
