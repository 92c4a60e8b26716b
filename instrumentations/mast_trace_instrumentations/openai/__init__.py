"""Instrumentation of the OpenAI client, for calls that nobody above it records.

Who makes the `chat` span of a call, and who is silent then:

========================================  =============================  =========================
the call comes from                       its span is made by            silent
========================================  =============================  =========================
LangChain's chat models in a graph        `langgraph`, from callbacks    this one
AG2, CrewAI, MetaGPT                      the framework's own            this one
a node, tool or agent with a client       this one                       nobody
of its own, in any run
another tool's instrumentation of the     that tool                      this one
client is around ours, on one provider
another tool's is around ours, and        both                           nobody
sends its spans elsewhere
another tool's is inside of ours          both; ours counts              nobody
outside of any run                        nobody                         this one
========================================  =============================  =========================

Frameworks mark the context of the calls that they record (`mast_trace.spans.run_state.chat_is_open`). Outside
of runs nothing is recorded, for such a call belongs to no agent's work: it would be a trace of its
own, of a program that may have nothing to do with agents.
"""

from mast_trace_instrumentations.openai.patches import OpenAIInstrumentor

__all__ = ["OpenAIInstrumentor"]
