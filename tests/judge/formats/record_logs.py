"""Records logs and databases of AutoGen, AG2 and LangGraph, with a model that a server on this machine plays.

`python record_logs.py autogen`, `ag2` or `langgraph`, each in an environment with its packages (`samples/README.md`).
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import sqlite3
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from recording import ANSWER, ARGUMENTS, QUESTION, REPORT, SAMPLES, SYSTEM, count_stock


class _Model(BaseHTTPRequestHandler):
    """Asks for the tool, answers when it has its result, and reports where it has no tools."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        call = {"name": "count_stock", "arguments": json.dumps(ARGUMENTS)}
        if any("write" in str(each["content"]) for each in request["messages"][:1]):
            said: dict[str, Any] = {"content": REPORT}
        elif any(each["role"] == "tool" for each in request["messages"]):
            said = {"content": ANSWER}
        else:
            said = {
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": call}],
            }
        message = {"role": "assistant", **said}
        end = "tool_calls" if "tool_calls" in said else "stop"
        answer = {
            "id": "a",
            "object": "chat.completion",
            "created": 1_767_607_200,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": end}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 6, "total_tokens": 26},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def _address() -> str:
    server = HTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def _emptied(name: str) -> str:
    path = SAMPLES / name
    path.unlink(missing_ok=True)
    return str(path)


def _packed(path: str) -> None:
    """Store a database in small pages, in one file."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA page_size = 512")
        database.execute("VACUUM")


def autogen() -> None:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_agentchat.ui import Console
    from autogen_core import EVENT_LOGGER_NAME
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    log = logging.getLogger(EVENT_LOGGER_NAME)
    log.setLevel(logging.INFO)
    for name, form in (("jsonl", "%(message)s"), ("log", logging.BASIC_FORMAT)):
        handler = logging.FileHandler(_emptied(f"autogen-events.{name}"))
        handler.setFormatter(logging.Formatter(form))
        log.addHandler(handler)
    can = ("vision", "json_output", "structured_output")
    client = OpenAIChatCompletionClient(
        model="m",
        api_key="none",
        base_url=_address(),
        model_info={
            **dict.fromkeys(can, False),
            "function_calling": True,
            "family": "unknown",
        },
    )
    keeper = AssistantAgent(
        "stock_keeper",
        client,
        tools=[count_stock],
        reflect_on_tool_use=True,
        system_message=SYSTEM,
    )
    writer = AssistantAgent("writer", client, system_message="You write.")
    team = RoundRobinGroupChat([keeper, writer], termination_condition=MaxMessageTermination(3))
    with (
        Path(_emptied("autogen-console.txt")).open("w", encoding="utf-8") as out,
        contextlib.redirect_stdout(out),
    ):
        asyncio.run(Console(team.run_stream(task=QUESTION), output_stats=True))


def ag2() -> None:
    os.environ["OPENAI_BASE_URL"] = _address()
    import autogen as framework
    from autogen import runtime_logging

    path = _emptied("ag2-logging.db")
    runtime_logging.start(logger_type="sqlite", config={"dbname": path})
    settings = {"config_list": [{"model": "m", "api_key": "none"}], "cache_seed": None}
    keeper = framework.AssistantAgent("stock_keeper", system_message=SYSTEM, llm_config=settings)
    user = framework.UserProxyAgent(
        "user", human_input_mode="NEVER", code_execution_config=False, llm_config=False
    )
    framework.register_function(count_stock, caller=keeper, executor=user, description="Count.")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        user.initiate_chat(keeper, message=QUESTION, max_turns=2)
    Path(_emptied("ag2-console.txt")).write_text(out.getvalue(), encoding="utf-8")
    runtime_logging.stop()
    _packed(path)


def langgraph() -> None:
    from langchain_core.messages import AIMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    spent = {"input_tokens": 20, "output_tokens": 6, "total_tokens": 26}
    asked = [{"name": "count_stock", "args": ARGUMENTS, "id": "c1"}]

    def keeper(state: Any) -> Any:
        told = any(message.type == "tool" for message in state["messages"])
        said = AIMessage(
            ANSWER if told else "", tool_calls=[] if told else asked, usage_metadata=spent
        )
        return {"messages": [said]}

    graph = StateGraph(MessagesState)
    graph.add_node("stock_keeper", keeper)
    graph.add_node("tools", ToolNode([count_stock]))
    graph.add_edge(START, "stock_keeper")
    graph.add_edge("tools", "stock_keeper")
    graph.add_conditional_edges(
        "stock_keeper", lambda state: "tools" if state["messages"][-1].tool_calls else END
    )
    path = _emptied("langgraph.sqlite")
    with SqliteSaver.from_conn_string(path) as saver:
        graph.compile(checkpointer=saver).invoke(
            {"messages": [("user", QUESTION)]}, {"configurable": {"thread_id": "t1"}}
        )
    _packed(path)


if __name__ == "__main__":
    {"autogen": autogen, "ag2": ag2, "langgraph": langgraph}[sys.argv[1]]()
