"""Writes samples of formats whose programs are not run here: the keys after public sources, every text ours.

`python record_by_hand.py` beside `recording.py` writes them all.
"""

from __future__ import annotations

import base64
import csv
import json
import zipfile
from typing import Any

from recording import ANSWER, ARGUMENTS, QUESTION, RESULT, SAMPLES, SYSTEM, write, write_lines

DAY = "2026-01-05T10:00:0{}.000Z"
USAGE = {"input_tokens": 8, "cache_read_input_tokens": 2, "output_tokens": 5}
MADE = {"input_tokens": 20, "output_tokens": 6}
OPENAI_CALL = {"id": "c1", "type": "function"}
BEGIN = 1_767_607_200_000_000_000


def claude_code() -> None:
    def line(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        inner = {key: more.pop(key) for key in ("id", "model", "usage") if key in more}
        return {
            "type": kind,
            "sessionId": "s1",
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "isSidechain": False,
            "timestamp": DAY.format(number),
            "message": {"role": kind, "content": content, **inner},
            **more,
        }

    task = {
        "type": "tool_use",
        "id": "t0",
        "name": "Task",
        "input": {"subagent_type": "stock_keeper"},
    }
    call = {"type": "tool_use", "id": "t1", "name": "count_stock", "input": ARGUMENTS}
    done = {"type": "tool_result", "tool_use_id": "t1", "content": RESULT}
    told = {
        "type": "tool_result",
        "tool_use_id": "t0",
        "content": [{"type": "text", "text": ANSWER}],
    }
    inside = {"isSidechain": True, "agentId": "a1"}
    write_lines(
        "claude-code.jsonl",
        [
            {"type": "summary", "summary": "Pens", "leafUuid": "u6"},
            {"type": "file-history-snapshot", "messageId": "u0", "snapshot": {}},
            line(0, "user", "<command-name>/clear</command-name>"),
            line(1, "user", QUESTION),
            line(2, "assistant", [{"type": "thinking", "thinking": "hm"}], id="m1", usage=USAGE),
            line(2, "assistant", [task], id="m1", usage=USAGE, model="claude-m"),
            line(3, "user", "Count them.", **inside),
            line(4, "assistant", [call], id="m2", usage=MADE, **inside),
            line(5, "user", [done], **inside),
            line(6, "user", [told], toolUseResult={"agentId": "a1", "status": "completed"}),
            line(7, "assistant", [{"type": "text", "text": ANSWER}], id="m3", usage=MADE),
            line(8, "user", "The talk so far.", isCompactSummary=True),
            {
                "type": "system",
                "sessionId": "s1",
                "subtype": "stop_hook",
                "timestamp": DAY.format(9),
            },
        ],
    )


def codex() -> None:
    def item(number: int, kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": DAY.format(number), "type": kind, "payload": payload}

    def says(role: str, text: str) -> dict[str, Any]:
        part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
        return {"type": "message", "role": role, "content": [part]}

    spent = {"last_token_usage": MADE, "total_token_usage": MADE}
    result = json.dumps({"output": RESULT, "metadata": {"exit_code": 0}})
    asked = {"name": "count_stock", "arguments": json.dumps(ARGUMENTS), "call_id": "c1"}
    write_lines(
        "codex.jsonl",
        [
            item(0, "session_meta", id="x", cli_version="1", instructions=None),
            item(0, "response_item", **says("user", "<environment_context>here")),
            item(1, "response_item", **says("user", QUESTION)),
            item(1, "event_msg", type="user_message", message=QUESTION),
            item(1, "turn_context", model="gpt-m", cwd="/"),
            item(2, "response_item", type="reasoning", summary=[], encrypted_content="x"),
            item(2, "response_item", type="function_call", **asked),
            item(2, "event_msg", type="token_count", info=spent),
            item(3, "response_item", type="function_call_output", call_id="c1", output=result),
            item(4, "response_item", **says("assistant", ANSWER)),
            item(4, "event_msg", type="token_count", info=spent),
        ],
    )


def metagpt() -> None:
    def message(identity: str, text: str, role: str, source: str, to: str) -> dict[str, Any]:
        known = {
            "cause_by": "metagpt.actions.add_requirement.UserRequirement",
            "instruct_content": None,
        }
        return {
            "id": identity,
            "content": text,
            "role": role,
            "sent_from": source,
            "send_to": [to],
            **known,
        }

    said = [
        message("1", QUESTION, "Human", "", "<all>"),
        message("2", ANSWER, "stock_keeper", "roles.StockKeeper", "<all>"),
    ]
    costs = {"total_prompt_tokens": 50, "total_completion_tokens": 17, "total_cost": 0.1}
    roles = {"Ann": {"name": "Ann", "rc": {"memory": {"storage": said}}}}
    env = {"desc": "", "roles": roles, "history": {"storage": said, "index": {}}}
    team = {"env": env, "investment": 3.0, "idea": QUESTION, "context": {"cost_manager": costs}}
    write("metagpt.json", team)


def crewai() -> None:
    shared = {"task_name": "count", "task": QUESTION, "agent": "stock_keeper"}
    write(
        "crewai.json",
        [
            {"timestamp": "2026-01-05 10:00:01", **shared, "status": "started"},
            {"timestamp": "2026-01-05 10:00:04", **shared, "status": "completed", "output": ANSWER},
        ],
    )


def crewai_text() -> None:
    known = f'task_name="count", task="{QUESTION}", agent="stock_keeper"'
    text = (
        f'2026-01-05 10:00:01: {known}, status="started"\n\n'
        f'2026-01-05 10:00:04: {known}, status="completed", output="{ANSWER}"\n\n'
    )
    (SAMPLES / "crewai.txt").write_text(text, encoding="utf-8")


def chatdev() -> None:
    def entry(second: int, text: str) -> str:
        return f"[2026-05-01 10:00:0{second} INFO] {text}\n\n"

    def spent(second: int, prompt: int, completion: int) -> str:
        told = f"prompt_tokens: {prompt}\ncompletion_tokens: {completion}\ntotal_tokens: 0\n"
        return entry(second, f"**[OpenAI_Usage_Info Receive]**\n{told}")

    plays = "| **assistant_role_name** | Stock Keeper |\n| **user_role_name** | Chief Officer |"
    begin = f"**ChatDev Starts** (1)\n\n**task_prompt**: {QUESTION}\n\n**project_name**: Pens"
    text = (
        entry(0, f"**[Preprocessing]**\n\n{begin}"),
        entry(1, f"System: **[chatting]**\n\n| Parameter | Value |\n| --- | --- |\n{plays}"),
        entry(1, "Chief Officer: **[Start Chat]**\n\n[You are Stock Keeper.]\n\nCount the pens."),
        entry(2, 'HTTP Request: POST https://models.example/v1 "HTTP/1.1 200 OK"'),
        spent(2, 30, 10),
        entry(
            3,
            "Stock Keeper: **Stock Keeper<->Chief Officer on : Counting, turn 0**\n\n"
            f"[You are Chief Officer.\nCount.]\n\n{ANSWER}",
        ),
        entry(3, f"**[Seminar Conclusion]**:\n\n {ANSWER}"),
        entry(4, f"**[Test Reports]**:\n\n{RESULT}"),
        spent(5, 10, 2),
    )
    (SAMPLES / "chatdev.log").write_text("".join(text), encoding="utf-8")


def adk() -> None:
    def event(number: int, author: str, part: dict[str, Any], **more: Any) -> dict[str, Any]:
        role = "user" if author == "user" or "functionResponse" in part else "model"
        said = {"content": {"role": role, "parts": [part]}, "timestamp": 1_767_607_200.5 + number}
        return {
            "id": f"e{number}",
            "author": author,
            "invocationId": "i",
            "actions": {},
            **said,
            **more,
        }

    spent = {
        "usageMetadata": {
            "promptTokenCount": 20,
            "candidatesTokenCount": 4,
            "thoughtsTokenCount": 2,
        }
    }
    call = {"functionCall": {"id": "f1", "name": "count_stock", "args": ARGUMENTS}}
    answer = {"functionResponse": {"id": "f1", "name": "count_stock", "response": RESULT}}
    events = [
        event(1, "user", {"text": QUESTION}),
        event(2, "stock_keeper", call, **spent),
        event(3, "stock_keeper", answer),
        event(4, "stock_keeper", {"text": ANSWER}, **spent),
    ]
    write(
        "google-adk.json",
        {"id": "s", "appName": "stock", "userId": "u", "state": {}, "events": events},
    )


def chat(**more: Any) -> list[dict[str, Any]]:
    """Return the run as messages of a chat."""
    call = {**OPENAI_CALL, "function": {"name": "count_stock", "arguments": json.dumps(ARGUMENTS)}}
    return [
        {"role": "system", "content": "You count."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "", "tool_calls": [call], **more},
        {"role": "tool", "content": RESULT, "tool_call_id": "c1"},
        {"role": "assistant", "content": ANSWER, **more},
    ]


def inspect() -> None:
    messages = chat()
    messages[2]["tool_calls"] = [{**OPENAI_CALL, "function": "count_stock", "arguments": ARGUMENTS}]
    messages[3]["function"] = "count_stock"
    sample = {
        "id": "pens",
        "epoch": 1,
        "input": QUESTION,
        "target": "12",
        "messages": messages,
        "output": {"model": "m", "choices": []},
        "scores": {"match": {"value": "C", "answer": "12", "explanation": "twelve"}},
        "model_usage": {
            "provider/m": {"input_tokens": 40, "output_tokens": 12, "total_tokens": 52}
        },
    }
    head = {"version": 2, "status": "success", "eval": {"task": "stock", "model": "m"}, "plan": {}}
    write("inspect.json", {**head, "samples": [sample]})
    with zipfile.ZipFile(SAMPLES / "inspect.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(head))
        archive.writestr("samples/pens_epoch_1.json", json.dumps(sample))


def swe_agent() -> None:
    history = chat(agent="main")
    history[3] = {**history[3], "tool_call_ids": [history[3].pop("tool_call_id")]}
    spent = {"tokens_sent": 40, "tokens_received": 12, "api_calls": 2, "instance_cost": 0.1}
    info = {"exit_status": "submitted", "submission": "diff", "model_stats": spent}
    write(
        "swe-agent.traj", {"environment": "e", "trajectory": [], "history": history, "info": info}
    )


def tau_bench() -> None:
    write("tau-bench.json", {"task_id": 3, "trial": 0, "reward": 1.0, "info": {}, "traj": chat()})


def atif() -> None:
    call = {"tool_call_id": "c1", "function_name": "count_stock", "arguments": ARGUMENTS}
    spent = {"metrics": {"prompt_tokens": 20, "completion_tokens": 6}}
    seen = {"observation": {"results": [{"source_call_id": "c1", "content": RESULT}]}}
    steps = [
        {"source": "user", "message": QUESTION},
        {"source": "agent", "message": "", "tool_calls": [call], **seen, **spent},
        {"source": "agent", "message": ANSWER, **spent},
    ]
    told = [{"step_id": n, "timestamp": DAY.format(n), **step} for n, step in enumerate(steps, 1)]
    agent = {"name": "stock_keeper", "version": "1", "model_name": "m"}
    write(
        "atif.json",
        {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": agent, "steps": told},
    )


def openhands() -> None:
    def event(number: int, source: str, **more: Any) -> dict[str, Any]:
        return {"id": number, "timestamp": f"2026-01-05T10:00:0{number}", "source": source, **more}

    used = {
        "llm_metrics": {"accumulated_token_usage": {"prompt_tokens": 40, "completion_tokens": 12}}
    }
    write(
        "openhands.json",
        [
            event(0, "agent", action="system", args={"content": "You count."}),
            event(1, "user", action="message", args={"content": QUESTION}),
            event(2, "agent", action="count_stock", args={**ARGUMENTS, "thought": ""}),
            event(3, "agent", observation="count_stock", cause=2, content=RESULT, extras={}),
            event(4, "environment", observation="agent_state_changed", content="", extras={}),
            event(5, "agent", action="finish", args={"final_thought": ANSWER}, **used),
        ],
    )


def base64_of(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()


def tempo() -> None:
    def span(number: int, name: str, **attributes: str) -> dict[str, Any]:
        told = {key.replace("__", "."): value for key, value in attributes.items()}
        known = [{"key": key, "value": {"stringValue": value}} for key, value in told.items()]
        times = {
            "startTimeUnixNano": str(BEGIN + number * 1000),
            "endTimeUnixNano": str(BEGIN + number * 1000 + 500),
        }
        ids = {"traceId": base64_of("a1" * 16), "spanId": base64_of(f"{number:016x}")}
        above = {"parentSpanId": base64_of(f"{1:016x}")} if number > 1 else {}
        return {
            **ids,
            **above,
            "name": name,
            "kind": "SPAN_KIND_INTERNAL",
            **times,
            "attributes": known,
        }

    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}])
    answer = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}])
    agent = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "stock_keeper"}
    call = {"gen_ai__tool__name": "count_stock", "gen_ai__tool__call__result": RESULT}
    spent = {"gen_ai__usage__input_tokens": "40", "gen_ai__usage__output_tokens": "12"}
    spans = [
        span(1, "invoke_agent stock_keeper", **agent, gen_ai__input__messages=asked),
        span(2, "execute_tool", **call, gen_ai__tool__call__arguments=json.dumps(ARGUMENTS)),
        span(3, "chat", gen_ai__request__model="m", gen_ai__output__messages=answer, **spent),
    ]
    scopes = [{"scope": {"name": "s"}, "spans": spans}]
    write("tempo.json", {"batches": [{"resource": {"attributes": []}, "scopeSpans": scopes}]})


def mlflow() -> None:
    def span(
        number: int, name: str, kind: str, inputs: Any, outputs: Any, **more: Any
    ) -> dict[str, Any]:
        known = {
            "mlflow.spanType": kind,
            "mlflow.spanInputs": inputs,
            "mlflow.spanOutputs": outputs,
            **more,
        }
        return {
            "trace_id": base64_of("b2" * 16),
            "span_id": base64_of(f"{number:016x}"),
            "parent_span_id": base64_of(f"{1:016x}") if number > 1 else None,
            "name": name,
            "start_time_unix_nano": BEGIN + number * 1000,
            "end_time_unix_nano": BEGIN + number * 1000 + 500,
            "status": {"code": "STATUS_CODE_OK", "message": ""},
            "attributes": {key: json.dumps(value) for key, value in known.items()},
        }

    asked = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    answer = {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}
    spent = {
        "mlflow.chat.tokenUsage": {"input_tokens": 40, "output_tokens": 12, "total_tokens": 52}
    }
    spans = [
        span(1, "stock_keeper", "AGENT", {"question": QUESTION}, ANSWER),
        span(2, "count_stock", "TOOL", ARGUMENTS, RESULT),
        span(3, "Completions", "CHAT_MODEL", asked, answer, **spent),
    ]
    write("mlflow.json", {"info": {"trace_id": "tr-1", "state": "OK"}, "data": {"spans": spans}})


def phoenix_csv() -> None:
    rows = [
        json.loads(line) for line in (SAMPLES / "phoenix.jsonl").read_text("utf-8").splitlines()
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    with (SAMPLES / "phoenix.csv").open("w", encoding="utf-8", newline="") as to:
        writer = csv.DictWriter(to, names)
        writer.writeheader()
        writer.writerows(rows)


def autogen_state() -> None:
    said = json.loads((SAMPLES / "autogen.json").read_text("utf-8"))["messages"]
    manager = {"type": "RoundRobinManagerState", "message_thread": said, "current_turn": 2}
    states = {
        "stock_keeper": {"type": "ChatAgentContainerState"},
        "RoundRobinGroupChatManager": manager,
    }
    write("autogen-state.json", {"type": "TeamState", "version": "1.0.0", "agent_states": states})


def at(second: int) -> str:
    return DAY.format(second)


def _calls() -> list[tuple[str, str, Any, Any, tuple[int, int] | None]]:
    """Return title, kind, input, output and usage of the agent, its two model calls and its tool."""
    call = {"id": "call_1", "function": {"name": "count_stock", "arguments": json.dumps(ARGUMENTS)}}
    asked = {"role": "user", "content": QUESTION}
    calls = {"role": "assistant", "content": None, "tool_calls": [call]}
    told = {"role": "tool", "tool_call_id": "call_1", "content": RESULT}
    said = {"role": "assistant", "content": ANSWER}
    return [
        ("stock_keeper", "agent", {"question": QUESTION}, ANSWER, None),
        ("chat", "llm", {"messages": [asked]}, {"choices": [{"message": calls}]}, (20, 7)),
        ("count_stock", "tool", ARGUMENTS, RESULT, None),
        (
            "chat",
            "llm",
            {"messages": [asked, calls, told]},
            {"choices": [{"message": said}]},
            (20, 5),
        ),
    ]


def trackers() -> None:
    """The four calls as Weave, Braintrust, Opik and Zipkin's exporter keep them."""
    kept: dict[str, list[Any]] = {"weave": [], "braintrust": [], "opik": [], "zipkin": []}
    for number, (title, kind, given, made, used) in enumerate(_calls()):
        begin, end = (at(second) for second in ((0, 9) if number == 0 else (number, number + 1)))
        above = None if number == 0 else "call-0"
        identity, model = f"call-{number}", "gpt-4o" if used else None
        usage = {"prompt_tokens": used[0], "completion_tokens": used[1]} if used else None
        shared = {"id": identity, "trace_id": "trace-1"}
        kept["weave"].append(
            {
                **shared,
                "op_name": f"weave:///team/pens/op/{title}:9f",
                "parent_id": above,
                "started_at": begin,
                "ended_at": end,
                "attributes": {"weave": {} if used else {"kind": kind}},
                "inputs": {**given, **({"model": model} if used else {})},
                "output": made,
                "exception": None,
                "summary": {"usage": {model: usage} if used else {}},
            }
        )
        kept["braintrust"].append(
            {
                "id": identity,
                "span_id": identity,
                "root_span_id": "call-0",
                "span_parents": [above] if above else None,
                "created": begin,
                "span_attributes": {"name": title, "type": "task" if kind == "agent" else kind},
                "input": given,
                "output": made,
                "metadata": {"model": model},
                "metrics": {
                    "start": 1795168800.5 + number,
                    "end": 1795168801.5 + number,
                    **(usage or {}),
                },
            }
        )
        kept["opik"].append(
            {
                **shared,
                "parent_span_id": above,
                "name": title,
                "type": "general" if kind == "agent" else kind,
                "start_time": begin,
                "end_time": end,
                "input": given,
                "output": made,
                "model": model,
                "usage": usage,
            }
        )
        operation = {"llm": "chat", "agent": "invoke_agent", "tool": "execute_tool"}[kind]
        messages = made["choices"] if used else []
        tags = {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name": title if kind == "agent" else "",
            "gen_ai.tool.name": title if kind == "tool" else "",
            "gen_ai.tool.call.arguments": json.dumps(given) if kind == "tool" else "",
            "gen_ai.tool.call.result": made if kind == "tool" else "",
            "gen_ai.input.messages": json.dumps([{"role": "user", "content": QUESTION}]),
            "gen_ai.output.messages": json.dumps([each["message"] for each in messages]),
            **({"gen_ai.usage.input_tokens": "20"} if used else {}),
        }
        kept["zipkin"].append(
            {
                "traceId": "0af7651916cd43dd8448eb211c80319c",
                "id": f"00000000000000a{number}",
                **({"parentId": "00000000000000a0"} if above else {}),
                "name": title,
                "timestamp": 1795168800000000 + 1000000 * number,
                "duration": 900000,
                "localEndpoint": {"serviceName": "pens"},
                "tags": {name: told for name, told in tags.items() if told not in {"", "[]"}},
            }
        )
    write_lines("weave.jsonl", kept["weave"])
    write("braintrust.json", {"events": kept["braintrust"], "cursor": None})
    write("opik.json", {"page": 1, "size": 4, "total": 4, "content": kept["opik"]})
    write("zipkin.json", kept["zipkin"])


def libraries() -> None:
    """The messages of pydantic-ai, the memory of smolagents and a session of Gemini CLI."""
    call = {"tool_name": "count_stock", "tool_call_id": "call_1"}
    request, response = {"kind": "request"}, {"kind": "response", "model_name": "gpt-4o"}
    usage = {"input_tokens": 20, "output_tokens": 6}
    write(
        "pydantic-ai.json",
        [
            {
                **request,
                "parts": [{"part_kind": "user-prompt", "content": QUESTION, "timestamp": at(0)}],
            },
            {
                **response,
                "parts": [{"part_kind": "tool-call", **call, "args": json.dumps(ARGUMENTS)}],
                "usage": usage,
                "timestamp": at(1),
            },
            {
                **request,
                "parts": [
                    {"part_kind": "tool-return", **call, "content": RESULT, "timestamp": at(2)}
                ],
            },
            {
                **response,
                "parts": [{"part_kind": "text", "content": ANSWER}],
                "usage": usage,
                "timestamp": at(3),
            },
        ],
    )
    steps = [("count_stock", ARGUMENTS, RESULT), ("final_answer", {"answer": ANSWER}, ANSWER)]
    write(
        "smolagents.json",
        [
            {"system_prompt": SYSTEM},
            {"task": QUESTION, "task_images": None},
            *(
                {
                    "step_number": number,
                    "timing": {
                        "start_time": 1795168800.0 + number,
                        "end_time": 1795168800.5 + number,
                    },
                    "tool_calls": [
                        {
                            "id": f"call_{number}",
                            "type": "function",
                            "function": {"name": name, "arguments": given},
                        }
                    ],
                    "error": None,
                    "model_output": "",
                    "observations": seen,
                    "action_output": seen if name == "final_answer" else None,
                    "token_usage": usage,
                    "is_final_answer": name == "final_answer",
                }
                for number, (name, given, seen) in enumerate(steps, 1)
            ),
        ],
    )
    answered = [
        {
            "functionResponse": {
                "id": "call_1",
                "name": "count_stock",
                "response": {"output": RESULT},
            }
        }
    ]
    done = {
        "id": "call_1",
        "name": "count_stock",
        "args": ARGUMENTS,
        "result": answered,
        "status": "success",
    }
    spent = {"input": 20, "output": 6, "cached": 0, "total": 26}
    write(
        "gemini-cli.json",
        {
            "sessionId": "session-1",
            "messages": [
                {"id": "1", "timestamp": at(0), "type": "user", "content": QUESTION},
                {
                    "id": "2",
                    "timestamp": at(1),
                    "type": "gemini",
                    "content": "",
                    "toolCalls": [done],
                    "tokens": spent,
                },
                {
                    "id": "3",
                    "timestamp": at(3),
                    "type": "gemini",
                    "content": ANSWER,
                    "tokens": spent,
                },
            ],
        },
    )


def claude_events() -> None:
    def event(number: int, name: str, **told: Any) -> dict[str, Any]:
        given = {"session.id": "s1", "event.name": name, "event.sequence": number, **told}
        return {
            "timeUnixNano": str(BEGIN + number),
            "body": {"stringValue": f"claude_code.{name}"},
            "attributes": [
                {"key": key, "value": {"stringValue": str(value)}} for key, value in given.items()
            ],
        }

    body = json.dumps({"role": "assistant", "content": [{"type": "text", "text": ANSWER}]})
    spent = {"input_tokens": 8, "cache_read_tokens": 32, "output_tokens": 12, "model": "claude-m"}
    inside = {"agent.name": "stock_keeper"}
    called = {"tool_name": "count_stock", "tool_use_id": "t1", "tool_input": json.dumps(ARGUMENTS)}
    events = [
        event(0, "user_prompt", prompt=QUESTION),
        event(1, "tool_decision", tool_name="count_stock", decision="accept"),
        event(2, "tool_result", **inside, **called, success="true"),
        event(3, "api_request", **inside, request_id="r1", **spent),
        event(4, "api_response_body", request_id="r1", body=body),
    ]
    scope = {"scope": {"name": "com.anthropic.claude_code.events"}, "logRecords": events}
    write("claude-events.json", {"resourceLogs": [{"scopeLogs": [scope]}]})


def codex_events() -> None:
    def done(**item: Any) -> dict[str, Any]:
        return {"type": "item.completed", "item": item}

    call = {"id": "item_1", "type": "mcp_tool_call", "server": "stock", "tool": "count_stock"}
    answer = {"content": [{"type": "text", "text": RESULT}], "structured_content": None}
    told = {"arguments": ARGUMENTS, "result": answer, "error": None, "status": "completed"}
    spent = {"input_tokens": 40, "cached_input_tokens": 5, "output_tokens": 12}
    write_lines(
        "codex-exec.jsonl",
        [
            {"type": "thread.started", "thread_id": "t1"},
            {"type": "turn.started"},
            done(id="item_0", type="reasoning", text="hm"),
            {"type": "item.started", "item": {**call, "status": "in_progress"}},
            done(**call, **told),
            done(id="item_2", type="agent_message", text=ANSWER),
            {"type": "turn.completed", "usage": spent},
        ],
    )


def chatgpt() -> None:
    def node(name: str, above: str | None, role: str, **message: Any) -> dict[str, Any]:
        author = {"role": role, "name": message.pop("by", None)}
        text = {"content_type": "text", "parts": [message.pop("text", "")]}
        told = {"id": name, "author": author, "content": text, "recipient": "all", "metadata": {}}
        return {"id": name, "parent": above, "children": [], "message": {**told, **message}}

    asked = {"content_type": "code", "language": "json", "text": json.dumps(ARGUMENTS)}
    found = {"content_type": "execution_output", "text": RESULT}
    hidden = {"is_visually_hidden_from_conversation": True}
    nodes = [
        {"id": "top", "parent": None, "children": ["a"], "message": None},
        node("a", "top", "system", metadata=hidden),
        node("b", "a", "user", text=QUESTION, create_time=1_767_607_200.5),
        node("c", "b", "assistant", content=asked, recipient="count_stock"),
        node("d", "c", "tool", content=found, by="count_stock"),
        node("left", "b", "assistant", text="An answer that was made anew."),
        node("e", "d", "assistant", text=ANSWER, metadata={"model_slug": "gpt-m"}),
    ]
    told = {"title": "Pens", "conversation_id": "v1", "current_node": "e"}
    write("chatgpt.json", [{**told, "mapping": {each["id"]: each for each in nodes}}])


def browser_use() -> None:
    def step(number: int, action: Any, **result: Any) -> dict[str, Any]:
        return {
            "model_output": {"memory": "", "next_goal": "", "action": [action]},
            "result": [result],
            "state": {"url": "https://example.com", "title": "", "tabs": []},
            "metadata": {"step_start_time": 1_767_607_200.5 + number, "step_number": number},
        }

    done = {"done": {"text": ANSWER, "success": True}}
    steps = [
        step(1, {"count_stock": ARGUMENTS}, is_done=False, extracted_content=RESULT),
        step(2, done, is_done=True, success=True, extracted_content=ANSWER),
    ]
    write("browser-use.json", {"history": steps})


ALL = (
    *(
        claude_code,
        codex,
        metagpt,
        crewai,
        crewai_text,
        chatdev,
        adk,
        inspect,
        swe_agent,
        tau_bench,
        atif,
        openhands,
    ),
    *(tempo, mlflow, phoenix_csv, autogen_state, trackers, libraries),
    *(claude_events, codex_events, chatgpt, browser_use),
)

if __name__ == "__main__":
    for make in ALL:
        make()
