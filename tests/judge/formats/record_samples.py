"""Records the samples in `samples/`: what each tool writes of one small run with scripted models.

Run it in an environment of its own, which `samples/README.md` names; the tests only read the files.
"""

from __future__ import annotations

import sys
import tempfile

from record_messages import (
    anthropic,
    autogen,
    langchain,
    magentic,
    openai_chat,
    published,
    responses,
)
from record_spans import langfuse, langsmith, opentelemetry, phoenix
from recording import ANSWER, ARGUMENTS, QUESTION, RESULT, SAMPLES


def own() -> None:
    """Run in the project's environment: a run of hand-made agents, exported."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    import mast_trace
    from mast_trace.testing import capture_spans
    from mast_trace_collector.storage import Store, migrate
    from mast_trace_collector.storage.span_writer import SpanWriter
    from mast_trace_judge.store.labels import HumanLabel, save_labels
    from mast_trace_judge.transfer.exporting import export_runs, write_jsonl, write_parquet

    with capture_spans(frameworks=[]) as spans:
        with mast_trace.run("stock", input=QUESTION, conversation_id="talk-1"):
            mast_trace.message("user", "stock_keeper", QUESTION)
            with mast_trace.agent("stock_keeper"):
                with mast_trace.tool("count_stock", ARGUMENTS) as call:
                    call.result(RESULT)
                mast_trace.message("stock_keeper", "user", ANSWER)
            mast_trace.record_outcome(False, "they are red")
        (trace_id,) = [each.trace_id for each in spans.trajectories()]
        request = encode_spans(spans.spans).SerializeToString()
    with tempfile.TemporaryDirectory() as folder, Store.open(f"chdb://{folder}/store") as store:
        migrate(store)
        SpanWriter(store).write([request], token="sample")
        save_labels(store, [HumanLabel(trace_id, "ann", "failure", ("3.2",), 2, "stock_keeper")])
        write_jsonl(SAMPLES / "mast-trace.jsonl", export_runs(store))
        write_parquet(SAMPLES / "mast-trace.parquet", export_runs(store))


ALL = (
    *(openai_chat, responses, anthropic, langchain, autogen, magentic, published),
    *(opentelemetry, langsmith, langfuse, phoenix, own),
)

if __name__ == "__main__":
    SAMPLES.mkdir(exist_ok=True)
    for make in ALL:
        if make.__name__ in sys.argv[1:]:
            make()
