"""The MCP server: runs, verdicts, steps and named queries for programs that ask in a model's name.

`server.mcp_server` offers the functions of `tools` over stdio and HTTP; `answers` bounds every answer
and fences it, because recorded texts come from the observed agents and may hold instructions.
"""
