"""A hand-made team that writes an order from two reports, whose model is at the environment's address.

The counter reports the stock and the pricer, who reads that report, the price; the buyer writes the order. The
order is right only if both reports are.
"""

from __future__ import annotations

import json
import sys

import openai

import mast_trace


def ask(who: str, said: str) -> str:
    """Ask the model in the name of an agent."""
    messages = [{"role": "system", "content": f"You are {who}."}, {"role": "user", "content": said}]
    client = openai.OpenAI(max_retries=1)
    answer = client.chat.completions.create(model="small", messages=messages)
    return answer.choices[0].message.content or ""


def main() -> None:
    """Write an order, and record whether it is right."""
    with mast_trace.run("quote", input="Order what is missing, at which price?"):
        with mast_trace.agent("counter") as counter:
            report = ask("counter", "130 kettles are left of 340. Report how many are missing.")
            counter.reply(report)
        with mast_trace.agent("pricer") as pricer:
            price = ask("pricer", f"{report} The list says 79 EUR. Report the price.")
            pricer.reply(price)
        with mast_trace.agent("buyer") as buyer:
            order = ask("buyer", f"{report} {price} Write the order.")
            buyer.reply(order)
    mast_trace.record_outcome("210" in order and "79" in order, "compared with list and stock")
    sys.stdout.write(json.dumps({"answer": order}) + "\n")


if __name__ == "__main__":
    mast_trace.instrument()
    main()
