"""DSPy: a desk asks a shipper through a tool. OpenInference makes the spans.

::

    pip install dspy openinference-instrumentation-dspy openinference-instrumentation-litellm
    pip install opentelemetry-exporter-otlp-proto-http
    python dspy_parcel.py                        # scripted model: all goes well
    python dspy_parcel.py no-tariff              # scripted model: a tool fails
    OPENAI_API_KEY=... python dspy_parcel.py
"""

from __future__ import annotations

import dspy
from openinference.instrumentation.dspy import DSPyInstrumentor
from openinference.instrumentation.litellm import LiteLLMInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from parcel import DESK, MODEL, SHIPPER, TASK, find_order, model_for, postage

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
DSPyInstrumentor().instrument(tracer_provider=provider)
LiteLLMInstrumentor().instrument(tracer_provider=provider)  # the tokens


class Shipper(dspy.Module):
    """Names the price."""

    def __init__(self) -> None:
        super().__init__()
        self.react = dspy.ReActV2(dspy.Signature("question -> answer", SHIPPER), [postage])

    def forward(self, question: str) -> dspy.Prediction:
        """Answer a question about a price."""
        return self.react(question=question)


class Desk(dspy.Module):
    """Knows the orders."""

    def __init__(self, shipper: Shipper) -> None:
        super().__init__()

        def ask_shipper(question: str) -> str:
            """Ask the shipper, who knows the tariff."""
            return str(shipper(question=question).answer)

        tools = [find_order, ask_shipper]
        self.react = dspy.ReActV2(dspy.Signature("question -> answer", DESK), tools)

    def forward(self, question: str) -> dspy.Prediction:
        """Answer a question about an order."""
        return self.react(question=question)


def main() -> None:
    """Ask the desk, which asks the shipper."""
    dspy.configure(lm=dspy.LM(f"openai/{MODEL}", cache=False))
    print(Desk(Shipper())(question=TASK).answer)


if __name__ == "__main__":
    question = "What does a parcel of 3 kg to Lisbon cost?"
    with model_for("ask_shipper", finish="submit", question=question):
        main()
