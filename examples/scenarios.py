"""Scripts of the model in the example programs: the same team, with and without a mistake.

Every scenario scripts each agent's replies in turn. Nothing else is staged: the frameworks, the
tools and the programs' own checks of the answer are real.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scripted_llm import Call, Reply, ScriptedLLM, by_speaker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True)
class Scenario:
    """One way in which an example program can go.

    Attributes:
        program: file name of the program.
        name: of the scenario, on the command line.
        story: one sentence on what the agents do.
        replies: of each agent, by a phrase of its system prompt.
    """

    program: str
    name: str
    story: str
    replies: dict[str, Sequence[Reply | str]]

    def serve(self) -> ScriptedLLM:
        """Return a server that plays this scenario once."""
        return ScriptedLLM(by_speaker(self.replies))


def _call(tool: str, **arguments: object) -> Reply:
    return Reply(calls=(Call(tool, arguments),))


def _page(number: int) -> Reply:
    return _call("open_invoices", customer="Hartmann GmbH", page=number)


_ASK_ANALYST = _call("transfer_to_analyst")
_ASK_REVIEWER = _call("transfer_to_reviewer")
_FLIGHT = _call("flight_price", origin="Vienna", destination="Lisbon")
_HOTEL = _call("hotel_price", city="Lisbon")

SCENARIOS = (
    Scenario(
        "langgraph_team.py",
        "verified",
        "The analyst reads every page, the reviewer adds the amounts up again.",
        {
            "supervisor": (
                _ASK_ANALYST,
                _ASK_REVIEWER,
                "Hartmann GmbH owes 9,260.75 EUR in eight open invoices.",
            ),
            "analyst": (
                _page(1),
                _page(2),
                _page(3),
                (
                    "Hartmann GmbH has eight open invoices on three pages: 1240.00, 860.50, 1310.00, "
                    "2075.00, 990.00, 455.25, 1610.00 and 720.00 EUR. Together 9,260.75 EUR."
                ),
            ),
            "reviewer": (
                _call("add", amounts=[1240.0, 860.5, 1310.0, 2075.0, 990.0, 455.25, 1610.0, 720.0]),
                (
                    "All three pages are in the list, and adding the eight amounts again gives "
                    "9,260.75 EUR. The analyst's total is right."
                ),
            ),
        },
    ),
    Scenario(
        "langgraph_team.py",
        "repeated-call",
        "The analyst asks for page 1 again and again, and takes it for the whole list.",
        {
            "supervisor": (
                _ASK_ANALYST,
                _ASK_REVIEWER,
                "Hartmann GmbH owes 3,410.50 EUR in three open invoices.",
            ),
            "analyst": (
                _page(1),
                _page(1),
                _page(1),
                _page(1),
                (
                    "I have read the list four times and it is always the same three open invoices of "
                    "Hartmann GmbH: 1240.00, 860.50 and 1310.00 EUR. Together 3,410.50 EUR."
                ),
            ),
            "reviewer": (
                _call("add", amounts=[1240.0, 860.5, 1310.0]),
                "1240.00 + 860.50 + 1310.00 is 3,410.50 EUR. The sum is right.",
            ),
        },
    ),
    Scenario(
        "langgraph_team.py",
        "unverified",
        "The analyst stops one page early, and the supervisor answers without the reviewer.",
        {
            "supervisor": (
                _ASK_ANALYST,
                (
                    "Six open invoices are on the analyst's list, which is plain enough to go without "
                    "further review. Hartmann GmbH owes 6,930.75 EUR."
                ),
            ),
            "analyst": (
                _page(1),
                _page(2),
                (
                    "Hartmann GmbH has six open invoices: 1240.00, 860.50, 1310.00, 2075.00, 990.00 "
                    "and 455.25 EUR. Together 6,930.75 EUR."
                ),
            ),
            "reviewer": (),
        },
    ),
    Scenario(
        "ag2_group_chat.py",
        "verified",
        "The researcher finds the prices, the planner adds them up, the auditor checks the sum.",
        {
            "researcher": (
                _FLIGHT,
                _HOTEL,
                (
                    "The return flight Vienna-Lisbon costs 198 EUR for each of you. The hotel search "
                    "says that a double room in Lisbon costs 118 EUR a night."
                ),
            ),
            "planner": (
                (
                    "Flights 2 x 198 = 396 EUR, hotel 3 x 118 = 354 EUR, together 750 EUR. That leaves "
                    "450 EUR of the budget."
                ),
            ),
            "auditor": (
                _call("calculate", expression="2 * 198 + 3 * 118"),
                _call("finish", answer="The trip costs 750 EUR."),
                "Within the budget, and the sum is right with the researcher's prices: 750 EUR.",
            ),
        },
    ),
    Scenario(
        "ag2_group_chat.py",
        "misread-price",
        "The researcher turns 118 EUR a night into 181, and nobody looks at the tool's answer.",
        {
            "researcher": (
                _FLIGHT,
                _HOTEL,
                (
                    "The return flight Vienna-Lisbon costs 198 EUR for each of you. The hotel search "
                    "says that a double room in Lisbon costs 181 EUR a night."
                ),
            ),
            "planner": (
                (
                    "Flights 2 x 198 = 396 EUR, hotel 3 x 181 = 543 EUR, together 939 EUR. That leaves "
                    "261 EUR of the budget."
                ),
            ),
            "auditor": (
                _call("calculate", expression="2 * 198 + 3 * 181"),
                _call("finish", answer="The trip costs 939 EUR."),
                "Within the budget, and the planner's sum is right: 939 EUR.",
            ),
        },
    ),
    Scenario(
        "ag2_group_chat.py",
        "early-end",
        "The planner ends the chat after the flights: no hotel, and the auditor never speaks.",
        {
            "researcher": (
                _FLIGHT,
                "The return flight Vienna-Lisbon costs 198 EUR for each of you.",
            ),
            "planner": (
                _call("finish", answer="The trip costs 396 EUR."),
                (
                    "The flights are well within the budget: 2 x 198 = 396 EUR. I will look up the "
                    "hotel and add it."
                ),
            ),
            "auditor": (),
        },
    ),
)


def find(program: str, name: str) -> Scenario:
    """Return a scenario of a program.

    Raises:
        SystemExit: there is none of this name; the text lists the names.
    """
    known = {s.name: s for s in SCENARIOS if s.program == program}
    if name not in known:
        raise SystemExit(f"no scenario {name!r} for {program}; there are: {', '.join(known)}")
    return known[name]


@contextmanager
def model_for(program: str, name: str) -> Iterator[None]:
    """Let a program run: on the user's own model where one is set up, else on the scripted one."""
    if os.environ.get("OPENAI_API_KEY"):
        yield
        return
    with find(program, name).serve() as server:
        os.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="scripted")
        yield
        del os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
