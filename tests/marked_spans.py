"""Spans of many emitters, the oldest and the newest forms of each, and what the marks on them say."""

from __future__ import annotations

MARKED: dict[str, tuple[dict[str, str], str]] = {
    "openllmetry before 0.55": (
        {"llm.request.type": "chat", "gen_ai.request.model": "m", "gen_ai.prompt.0.content": "q"},
        "chat",
    ),
    "openllmetry's completions": ({"llm.request.type": "completion"}, "chat"),
    "openllmetry from 0.55": ({"gen_ai.operation.name": "chat"}, "chat"),
    "openllmetry's embeddings": (
        {
            "llm.request.type": "embedding",
            "gen_ai.request.model": "m",
            "gen_ai.usage.prompt_tokens": "3",
        },
        "embedding",
    ),
    "a model with tokens": (
        {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": "3"},
        "chat",
    ),
    "a model with texts": ({"llm.model_name": "m", "gen_ai.output.messages": "[]"}, "chat"),
    "a model alone": ({"gen_ai.request.model": "m"}, ""),
    "tokens alone": ({"gen_ai.usage.input_tokens": "3"}, ""),
    "a tool": ({"gen_ai.tool.name": "look"}, "execute_tool"),
    "a chain that counts": (
        {"openinference.span.kind": "CHAIN", "llm.model_name": "m", "llm.token_count.prompt": "3"},
        "CHAIN",
    ),
    "langfuse's sdk": ({"langfuse.observation.type": "generation"}, "chat"),
    "mlflow": ({"mlflow.spanType": '"CHAT_MODEL"'}, "chat"),
    "vercel's sdk": ({"ai.operationId": "ai.streamText.doStream"}, "chat"),
    "vercel's sdk around it": (
        {"ai.operationId": "ai.streamText", "ai.model.id": "m"},
        "ai.streamText",
    ),
    "vercel's tools": (
        {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "look"},
        "execute_tool",
    ),
    "google adk without tokens": (
        {"gen_ai.request.model": "m", "gcp.vertex.agent.llm_response": "{}"},
        "chat",
    ),
    "the web": ({"http.request.method": "POST"}, ""),
}
