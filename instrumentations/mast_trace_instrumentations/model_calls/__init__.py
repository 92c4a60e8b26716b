"""Model calls through a client, recorded unless something above them does so.

The instrumentations of clients share this package: the decision whether to record a call
(`is_to_be_recorded`), and its span from the request to the last piece of the answer (`ModelCall`).
The table shows which instrumentation makes the span of a call, and which is silent:

========================================  =============================  =========================
the call comes from                       its span is made by            silent
========================================  =============================  =========================
LangChain's chat models in a graph        `langgraph`, from callbacks    the client's
AG2, CrewAI, MetaGPT                      the framework's own            the client's
LiteLLM, through whatever client          `litellm`                      the client's under it
a node, tool or agent with a client       the client's                   nobody
of its own, in any run
another tool's instrumentation of the     that tool                      the client's
client is around ours, on one provider
another tool's is around ours, and        both                           nobody
sends its spans elsewhere
another tool's is inside of ours          both; ours counts              nobody
outside of any run                        the client's: a run of a       nobody
                                          kind of its own
========================================  =============================  =========================

Frameworks mark the context of the calls that they record (`mast_trace.spans.chat_is_open`).
"""

from mast_trace_instrumentations.model_calls.call import (
    Answer,
    Assembly,
    ModelCall,
    NotedSpan,
    field,
    is_theirs,
    is_to_be_recorded,
    items,
    media_mark,
    note_parameters,
    noted_span,
    parameters_of,
)

__all__ = [
    "Answer",
    "Assembly",
    "ModelCall",
    "NotedSpan",
    "field",
    "is_theirs",
    "is_to_be_recorded",
    "items",
    "media_mark",
    "note_parameters",
    "noted_span",
    "parameters_of",
]
