"""Models for the five example programs that read what they are shown, so that a changed answer propagates.

The scenarios of the programs give replies in turn, whatever was said before. Planted faults and corrections
need models that go on from what they read, as real ones do. Each voice words the same reports otherwise::

    python team_policies.py langgraph_team.py 1  # prints its address, and serves until standard input ends
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import trip_policy
from scripted_llm import Call, Reply, ScriptedLLM, messages_of, system_text

if TYPE_CHECKING:
    from collections.abc import Callable

    Part = Callable[[str, int], Reply | str]

VOICES = 3
_MOST_TRANSFERS = 4


def shown_to(request: dict[str, Any]) -> str:
    """Return the texts, tool calls and tool results of a request, a line each."""
    lines = []
    for message in messages_of(request):
        content = message.get("content", message.get("output"))
        if isinstance(content, list):
            content = " ".join(str(part.get("text", "")) for part in content)
        if message.get("role") not in {"system", "developer"}:
            lines.append(str(content or ""))
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        lines += [f"[{call['name']} {call['arguments']}]" for call in calls]
        if message.get("type") == "function_call":
            lines.append(f"[{message['name']} {message['arguments']}]")
    return "\n".join(lines)


def supervisor(shown: str, voice: int) -> Reply | str:
    """Hand over until the reviewer agrees, then answer with the total that was reviewed."""
    transfers = shown.count("[transfer_to_")
    if "or of the first?" in shown and "Of all pages." not in shown:
        return Reply("Of all pages.", calls=(Call("transfer_to_analyst"),))
    totals = re.findall(r"Together ([\d,]+\.\d\d) (\w+)", shown)
    reviews = re.findall(r"The (?:list|total) is (wrong|complete)", shown)
    if transfers < _MOST_TRANSFERS:
        if not totals or (reviews and reviews[-1] == "wrong" and len(reviews) == len(totals)):
            return Reply(calls=(Call("transfer_to_analyst"),))
        if len(reviews) < len(totals):
            return Reply(calls=(Call("transfer_to_reviewer"),))
    if not totals:
        return "The team has not found out what Hartmann GmbH owes."
    total = " ".join(totals[-1])
    return (
        f"Hartmann GmbH owes {total} in its open invoices.",
        f"In all, the open invoices of Hartmann GmbH come to {total}.",
        f"The sum that Hartmann GmbH still has to pay us is {total}.",
    )[voice]


def analyst(shown: str, voice: int) -> Reply | str:
    """Read the pages and add them up: all of them, two at first, or as many as the supervisor wants."""
    if (
        voice == 2
        and "[open_invoices" not in shown
        and not re.search(r"of the first\?|assume|standard option|common value", shown)
    ):
        return "Do you want the invoices of all pages, or of the first?"
    last = max(shown.rfind("page 3 is missing"), 0)
    pages: dict[int, list[float]] = {}
    for page, text in re.findall(
        r'"page": (\d), "pages": \d, "invoices": (\{[^}]*\})', shown[last:]
    ):
        pages[int(page)] = list(json.loads(text).values())
    wanted = 2 if voice == 1 and not last else 1
    if voice == 0 or last or "Of all pages" in shown:
        wanted = 3
    for page in range(1, wanted + 1):
        if page not in pages and shown[last:].count("[open_invoices") <= wanted:
            asked = {"customer": "Hartmann GmbH", "page": page}
            return Reply(calls=(Call("open_invoices", asked),))
    amounts = [amount for page in sorted(pages) for amount in pages[page]]
    listed = ", ".join(f"{each:.2f}" for each in amounts)
    return (
        f"The open invoices on pages 1 to {len(pages)} are {listed} EUR. Together {sum(amounts):,.2f} EUR.",
        f"I have read pages 1 to {len(pages)}. They list {listed} EUR. Together {sum(amounts):,.2f} EUR.",
        f"Pages 1 to {len(pages)} hold these amounts: {listed} EUR. Together {sum(amounts):,.2f} EUR.",
    )[voice]


def reviewer(shown: str, voice: int) -> Reply | str:
    """Add the reported amounts up again, and compare; voice 0 trusts the sum, voice 2 the pages."""
    reports = re.findall(
        r"pages 1 to (\d)\b[^:\n]*?([\d., ]+\d) \w+\. Together ([\d,]+\.\d\d)",
        shown.replace("are ", "").replace("They list ", "").replace("hold these amounts: ", ""),
        re.IGNORECASE,
    )
    if not reports:
        return "There is no report that I could check. The list is wrong: page 3 is missing."
    pages, listed, total = reports[-1]
    amounts = [float(each) for each in re.findall(r"\d+\.\d+", listed)]
    checked = re.findall(r"^(\d+\.\d+)$", shown, re.MULTILINE)
    if not checked:
        return Reply(calls=(Call("add", {"amounts": amounts}),))
    if int(pages) < 3 and voice != 2:
        return "The list is wrong: page 3 is missing."
    if voice and abs(float(checked[-1]) - float(total.replace(",", ""))) > 0.005:
        return (
            f"The total is wrong: the amounts add up to {float(checked[-1]):,.2f}, not to {total}."
        )
    return (
        f"The list is complete, and adding it up again gives {total} EUR.",
        f"The list is complete: my own sum is {total} EUR as well.",
        f"The total is complete and right: {total} EUR.",
    )[voice]


def researcher(shown: str, voice: int) -> Reply | str:  # noqa: ARG001  # reports in one way
    """Look up both prices, and report them."""
    return trip_policy.researcher(shown)


def planner(shown: str, voice: int) -> Reply | str:
    """Add up the prices that the researcher has reported."""
    flight = re.search(r"costs (\d+) (\w+) for each", shown)
    room = re.search(r"costs (\d+) \w+ a night", shown)
    if flight is None or room is None:
        return "I need both prices before I can add them up."
    flights = trip_policy.TRAVELLERS * int(flight[1])
    hotel, unit = trip_policy.NIGHTS * int(room[1]), flight[2]
    left = trip_policy.BUDGET - flights - hotel
    added = (
        f"Flights 2 x {flight[1]} = {flights} {unit}, hotel 3 x {room[1]} = {hotel} {unit}, together "
        f"{flights + hotel} {unit}."
    )
    return (
        f"{added} That leaves {left} {unit} of the budget of 1,200 {unit}.",
        f"The budget is 1,200 {unit}. {added} {left} {unit} are left.",
        f"I have added the prices up. {added}",
    )[voice]


def auditor(shown: str, voice: int) -> Reply | str:
    """Work the sum out with the tool, and finish; voice 1 puts its own sum right, the others trust."""
    sums = re.findall(r"x (\d+) = \d+ \w+, hotel 3 x (\d+) = \d+ (\w+), together (\d+)", shown)
    if not sums:
        nothing = "There is no total that I could check."
        return (
            nothing if "[finish" in shown else Reply(calls=(Call("finish", {"answer": nothing}),))
        )
    flight, room, unit, total = sums[-1]
    worked = re.findall(r"^(\d+\.\d+)$", shown, re.MULTILINE)
    if not worked and "[calculate" not in shown:
        expression = f"2 * {flight} + 3 * {room}"
        return Reply(calls=(Call("calculate", {"expression": expression}),))
    if worked and voice == 1:
        total = f"{float(worked[-1]):.0f}"
    if "[finish" in shown:
        return f"Within the budget, and the sum was checked: {total} {unit}."
    return Reply(calls=(Call("finish", {"answer": f"The trip costs {total} {unit}."}),))


def clerk(shown: str, voice: int) -> Reply | str:
    """Look up the order and report it."""
    order = re.search(r"Order (\d+): kettle, (\d+) EUR, delivered (\d+) days ago", shown)
    if order is None:
        if "[look_up_order" in shown:
            return "I cannot find the order."
        number = re.search(r"order (\d+)", shown)
        return Reply(calls=(Call("look_up_order", {"number": int(number[1]) if number else 0}),))
    return (
        f"The kettle of order {order[1]} cost {order[2]} EUR and was delivered {order[3]} days ago. It leaks.",
        f"Order {order[1]}: a kettle, it cost {order[2]} EUR and was delivered {order[3]} days ago. It leaks.",
        f"The customer's kettle cost {order[2]} EUR, and was delivered {order[3]} days ago. It leaks.",
    )[voice]


def expert(shown: str, voice: int) -> Reply | str:
    """Look up the policy, and apply it to what the clerk has reported."""
    policy = re.search(r"full refund within (\d+) days", shown)
    facts = re.search(r"cost (\d+) (\w+),? and was delivered (\d+) days ago", shown)
    if policy is None:
        if "[refund_policy" in shown:
            return "The policy is not known: the customer gets nothing back."
        reason = "defect" if "leaks" in shown else "change-of-mind"
        return Reply(calls=(Call("refund_policy", {"reason": reason}),))
    if facts is None or int(facts[3]) > int(policy[1]):
        return f"The {policy[1]} days are over: the customer gets nothing back."
    return (
        f"A leak is a defect: the customer gets {facts[1]} {facts[2]} back.",
        f"After {facts[3]} of {policy[1]} days the customer gets {facts[1]} {facts[2]} back.",
        f"The policy applies. The customer gets {facts[1]} {facts[2]} back.",
    )[voice]


def writer(shown: str, voice: int) -> Reply | str:
    """Write to the customer what the expert has decided."""
    refund = re.findall(r"gets (\d+ \w+) back", shown)
    if not refund:
        return "We are sorry, but the time for a refund is over."
    return (
        f"We are sorry about the leak and return your {refund[-1]}.",
        f"Sorry for the leaking kettle: you get {refund[-1]} back.",
        f"You shall have your {refund[-1]} again, with our apologies.",
    )[voice]


def storekeeper(shown: str, voice: int) -> Reply | str:
    """Count, and report the count."""
    counted = re.findall(r"(\d+) pieces in stock", shown)
    if not counted:
        if "[count_stock" in shown:
            return "The stock cannot be counted."
        return Reply(calls=(Call("count_stock", {"item": "kettle"}),))
    return (
        f"There are {counted[-1]} kettles in stock.",
        f"I have counted. There are {counted[-1]} kettles in stock. The shelf is in order.",
        f"As counted today, there are {counted[-1]} kettles in stock.",
    )[voice]


def forecaster(shown: str, voice: int) -> Reply | str:
    """Multiply the sales of a week."""
    sold = re.findall(r"(\d+) pieces a week", shown)
    if not sold:
        if "[weekly_sales" in shown:
            return "The sales are not known."
        return Reply(calls=(Call("weekly_sales", {"item": "kettle"}),))
    weeks = re.search(r"in (\d+) weeks", shown)
    needed = int(sold[-1]) * (int(weeks[1]) if weeks else 1)
    return (
        f"At {sold[-1]} kettles a week we shall sell {needed} kettles.",
        f"I have looked the sales up. At {sold[-1]} a week we shall sell {needed} kettles.",
        f"{sold[-1]} go every week, so that we shall sell {needed} kettles.",
    )[voice]


def buyer(shown: str, voice: int) -> Reply | str:
    """Order the difference of what the others have reported."""
    there = re.findall(r"[Tt]here are (\d+) kettles in stock", shown)
    needed = re.findall(r"shall sell (\d+) kettles", shown)
    if not there or not needed:
        return f"Order {needed[-1] if needed else 100} kettles."
    missing = int(needed[-1]) - int(there[-1])
    return (
        f"{needed[-1]} will be sold and {there[-1]} are there: order {missing} kettles.",
        f"Order {missing} kettles: {needed[-1]} less the {there[-1]} that are there.",
        f"With {there[-1]} in stock we lack {missing} of {needed[-1]}: order {missing} kettles.",
    )[voice]


def coder(shown: str, voice: int) -> Reply | str:
    """Write code, and correct it once after its tests have failed."""
    right = "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"
    failures = shown.count("The tests fail")
    first = ("year % 4 == 0", "year % 4 == 0 and year % 100 != 0", right)[voice]
    if failures and voice == 2:
        right = first
    return f"```python\ndef is_leap(year):\n    return {right if failures else first}\n```"


PARTS: dict[str, dict[str, Part]] = {
    "langgraph_team.py": {
        "You are the supervisor": supervisor,
        "You are the analyst": analyst,
        "You are the reviewer": reviewer,
    },
    "ag2_group_chat.py": {
        "You are the researcher": researcher,
        "You are the planner": planner,
        "You are the auditor": auditor,
    },
    "autogen_group_chat.py": {
        "You are the clerk": clerk,
        "You are the expert": expert,
        "You are the writer": writer,
    },
    "crewai_stock.py": {
        "You are Storekeeper": storekeeper,
        "You are Analyst": forecaster,
        "You are Buyer": buyer,
    },
    "leap_year_team.py": {"Coder": coder},
}
"""The parts of each program, by a phrase of the agent's system prompt."""


def policy(program: str, voice: int = 0) -> Callable[[dict[str, Any]], Reply | str]:
    """Return the model of a program.

    Args:
        program: its file name.
        voice: the wording, from 0 to ``VOICES`` - 1.
    """
    parts = PARTS[program]

    def answer(request: dict[str, Any]) -> Reply | str:
        prompt = system_text(request)
        shown = shown_to(request)
        # An agent that was shown another's prompt acts by it: the last that is named counts.
        named = {phrase: prompt.find(phrase) for phrase in parts if phrase in prompt}
        if not named:
            return Reply(status=400, text=f"no agent of {program} is named in: {prompt[:200]}")
        return parts[min(named, key=named.__getitem__)](shown, voice)

    return answer


def main() -> None:
    """Serve until standard input is closed."""
    with ScriptedLLM(policy(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
