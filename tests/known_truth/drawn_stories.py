"""Two stories of teams. Each run draws its inputs, wordings, order of calls and rare branches."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from scripted_llm import Call, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    Acting = Iterator[Reply]

VARIANTS: Final = 10
"""Errors of each story."""
_RARE: Final = 0.12
_FAILS: Final = 0.15
_WARNING: Final = "Error: the service did not answer in time"


@dataclass
class Drawn:
    """The world of a run, and the chance in it.

    Attributes:
        draw: the source of chance.
        error: the number of the error that the model makes; -1 for none.
        version: of the program; the second looks at the calendar, too.
        wrong: a piece of the text, or the name of the tool, by which the error is found; and how many times it stands
            before.
        fails: the tool that does not answer at first.
        asked: how often each tool was called.
    """

    draw: Random
    error: int
    version: int
    wrong: tuple[str, int] = ("", 0)
    fails: str = ""
    asked: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Draw the world."""
        draw = self.draw
        self.item = draw.choice(("kettle", "lantern", "backpack", "toaster", "hammock", "monitor"))
        self.stock, self.reserved = draw.randrange(311, 968), draw.randrange(21, 97)
        self.weekly, self.weeks = draw.randrange(212, 489), draw.randrange(4, 9)
        self.supplier = draw.choice(("Brandt", "Okafor", "Lindqvist", "Moreau"))
        self.order = f"R-{draw.randrange(1000, 9999)}"
        self.customer = f"C-{draw.randrange(1000, 9999)}"
        self.amount, self.days = draw.randrange(3100, 89999) / 100, draw.randrange(12, 98)

    def say(self, *wordings: str) -> str:
        """Return one of several wordings, perhaps with a word before or behind."""
        before = self.draw.choice(("", "", "", "Well. ", "Done. ", "Right. "))
        return (
            before
            + self.draw.choice(wordings)
            + self.draw.choice(("", "", "", " So far.", " Cheers."))
        )

    def err(self, number: int, told: str, times: int = 0) -> bool:
        """Return whether this error is made; it is found by a text or a tool's name."""
        if self.error == number:
            self.wrong = told, times
        return self.error == number

    def look(self, *calls: Call) -> Acting:
        """Make calls in any order, and those that fail once more."""
        made = list(calls)
        self.draw.shuffle(made)
        if self.draw.random() < _RARE:
            made.insert(0, Call("read_handbook", {"topic": self.draw.choice(("hours", "forms"))}))
        if self.version > 1:
            made.append(Call("read_calendar", {"month": self.draw.randrange(1, 13)}))
        for call in made:
            yield Reply(calls=(call,))
            if self.fails == call.name and self.asked.get(call.name) == 1:
                yield Reply(calls=(call,))


class Story(ABC):
    """A team in sequence: what its agents do, and their tools."""

    name: ClassVar[str]
    roles: ClassVar[dict[str, tuple[str, ...]]]
    looks: ClassVar[tuple[str, ...]]

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        if drawn.error < 0 and drawn.draw.random() < _FAILS:
            drawn.fails = drawn.draw.choice(self.looks)

    @property
    @abstractmethod
    def task(self) -> str:
        """The task of the first agent."""

    @abstractmethod
    def result(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return what a tool returns."""

    def call(self, tool: str, given: dict[str, Any]) -> str:
        """Run a tool."""
        self.drawn.asked[tool] = self.drawn.asked.get(tool, 0) + 1
        if self.drawn.fails == tool and self.drawn.asked[tool] == 1:
            return _WARNING
        if tool == "read_handbook":
            return json.dumps({"topic": given["topic"], "chapter": "see the notice board"})
        if tool == "read_calendar":
            return json.dumps({"month": given["month"], "holidays": "none"})
        return json.dumps(self.result(tool, given))


class Stock(Story):
    """A team finds out how much is missing of an item, and orders it."""

    name = "stock"
    roles: ClassVar = {
        "storekeeper": ("count_stock", "count_reserved"),
        "analyst": ("weekly_sales",),
        "buyer": ("check_supplier", "place_order"),
    }
    looks = ("count_stock", "count_reserved", "weekly_sales", "check_supplier")

    @property
    def task(self) -> str:
        """The task of the first agent."""
        drawn = self.drawn
        return (
            f"Order as many pieces of the {drawn.item} at {drawn.supplier} as are missing for {drawn.weeks} weeks. "
            "Check the supplier before you order."
        )

    def result(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return what a tool returns."""
        drawn = self.drawn
        right = given.get("item", drawn.item) == drawn.item
        return {
            "count_stock": {"item": given.get("item"), "pieces": drawn.stock if right else 87},
            "count_reserved": {
                "item": given.get("item"),
                "reserved": drawn.reserved if right else 12,
            },
            "weekly_sales": {"item": given.get("item"), "sold_a_week": drawn.weekly},
            "check_supplier": {"supplier": given.get("supplier"), "open": True},
            "place_order": {
                "order": f"PO-{drawn.draw.randrange(100, 999)}",
                "pieces": given.get("pieces"),
            },
        }[tool]

    def storekeeper(self) -> Acting:
        """Count, and say what is free."""
        drawn, item = self.drawn, self.drawn.item
        counted = "wardrobe" if drawn.err(0, "count_stock") else item
        stock = 87 if counted != item else drawn.stock
        yield from drawn.look(
            Call("count_stock", {"item": counted}), Call("count_reserved", {"item": item})
        )
        if drawn.err(1, f"{stock + 140}"):
            stock += 140
        self.free = stock - drawn.reserved
        if drawn.err(2, f"{stock} {item}s and nothing is reserved"):
            self.free = stock
            yield Reply(f"We have {stock} {item}s and nothing is reserved.")
        yield Reply(
            drawn.say(
                f"There are {stock} pieces, {drawn.reserved} of them reserved: {self.free} are free.",
                f"{stock} on the shelves less {drawn.reserved} reserved leaves {self.free} of the {item}.",
                f"I count {stock}; {drawn.reserved} are promised already. Free: {self.free}.",
            )
        )

    def analyst(self) -> Acting:
        """Look the sales up, and multiply."""
        drawn = self.drawn
        sold = drawn.weekly
        if drawn.err(3, f"sell {sold + 63}"):
            sold += 63
        else:
            yield from drawn.look(Call("weekly_sales", {"item": drawn.item}))
        self.needed = sold * drawn.weeks
        if drawn.err(4, f"{self.needed + 900}"):
            self.needed += 900
        yield Reply(
            drawn.say(
                f"We sell {sold} a week, so {self.needed} in {drawn.weeks} weeks.",
                f"In {drawn.weeks} weeks we need {self.needed}, as we sell {sold} every week.",
                f"They sell {sold} weekly. That makes {self.needed} for {drawn.weeks} weeks.",
            )
        )

    def buyer(self) -> Acting:
        """Check the supplier, order, and say so."""
        drawn = self.drawn
        pieces = self.needed - self.free
        given = {"item": drawn.item, "supplier": drawn.supplier}
        if not drawn.err(5, "place_order"):
            yield from drawn.look(Call("check_supplier", {"supplier": drawn.supplier}))
        if drawn.err(6, "place_order"):
            pieces += 333
        if drawn.err(7, "place_order"):
            given["supplier"] = "Zimmer"
        if not drawn.err(8, "is ordered"):
            yield Reply(calls=(Call("place_order", {**given, "pieces": pieces}),))
        if drawn.err(9, "place_order", 1):
            yield Reply(calls=(Call("place_order", {**given, "pieces": pieces}),))
        yield Reply(
            drawn.say(
                f"The {drawn.item} is ordered: {pieces} pieces at {given['supplier']}.",
                f"{pieces} pieces of the {drawn.item}: it is ordered from {given['supplier']}.",
                f"It is ordered. {given['supplier']} will send {pieces}.",
            )
        )


class Refund(Story):
    """A team finds out what a customer gets back, and pays."""

    name = "refund"
    roles: ClassVar = {
        "clerk": ("find_order", "find_customer"),
        "expert": ("refund_policy", "fraud_check"),
        "cashier": ("pay_refund",),
    }
    looks = ("find_order", "find_customer", "refund_policy", "fraud_check")

    @property
    def task(self) -> str:
        """The task of the first agent."""
        return (
            f"Customer {self.drawn.customer} returns order {self.drawn.order}, which broke. "
            "Refund what our policy gives, after a fraud check."
        )

    def result(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return what a tool returns."""
        drawn = self.drawn
        mine = given.get("order") == drawn.order
        return {
            "find_order": {
                "order": given.get("order"),
                "price": drawn.amount if mine else 12.34,
                "days_ago": drawn.days,
            },
            "find_customer": {"customer": given.get("customer"), "since": 2016 + drawn.days % 8},
            "refund_policy": {
                "reason": given.get("reason"),
                "refund": "full" if given.get("reason") == "defect" else "half",
            },
            "fraud_check": {
                "customer": given.get("customer"),
                "suspicious": drawn.error == 6,
            },
            "pay_refund": {
                "receipt": f"PAY-{drawn.draw.randrange(1000, 9999)}",
                "amount": given.get("amount"),
            },
        }[tool]

    def clerk(self) -> Acting:
        """Find the order and the customer, and report both."""
        drawn = self.drawn
        order, price = drawn.order, drawn.amount
        if drawn.err(0, "find_order"):
            order, price = f"R-{order[3:]}{order[2]}", 12.34
        yield from drawn.look(
            Call("find_order", {"order": order}),
            Call("find_customer", {"customer": drawn.customer}),
        )
        if drawn.err(1, f"{price + 210:.2f}"):
            price = round(price + 210, 2)
        self.price = price
        days = drawn.days
        if drawn.err(2, f"{days + 700} days"):
            days += 700
        yield Reply(
            drawn.say(
                f"Order {order} cost {price:.2f} EUR and came {days} days ago. It is broken.",
                f"{drawn.customer} paid {price:.2f} EUR for {order}, {days} days ago; it broke.",
                f"The broken {order}: {price:.2f} EUR, bought {days} days ago.",
            )
        )

    def expert(self) -> Acting:
        """Look the policy up and check for fraud, and say what is paid."""
        drawn = self.drawn
        reason = "change of mind" if drawn.err(3, "refund_policy") else "defect"
        calls = [Call("refund_policy", {"reason": reason})]
        if not drawn.err(4, "nothing speaks against"):
            calls.append(Call("fraud_check", {"customer": drawn.customer}))
        yield from drawn.look(*calls)
        self.paid = self.price if reason == "defect" else round(self.price / 2, 2)
        if drawn.err(5, f"{self.paid + 95:.2f}"):
            self.paid = round(self.paid + 95, 2)
        drawn.err(6, "nothing speaks against")
        yield Reply(
            drawn.say(
                f"The customer gets {self.paid:.2f} EUR, nothing speaks against it.",
                f"Pay back {self.paid:.2f} EUR: nothing speaks against that.",
                f"As nothing speaks against it, {self.paid:.2f} EUR are due.",
            )
        )

    def cashier(self) -> Acting:
        """Pay, and tell the customer."""
        drawn, order, amount = self.drawn, self.drawn.order, self.paid
        if drawn.err(7, "pay_refund"):
            amount = round(amount + 18.5, 2)
        if not drawn.err(8, "are on the way"):
            yield Reply(calls=(Call("pay_refund", {"order": order, "amount": amount}),))
        if drawn.err(9, "pay_refund", 1):
            yield Reply(calls=(Call("pay_refund", {"order": order, "amount": amount}),))
        yield Reply(
            drawn.say(
                f"Your {amount:.2f} EUR are on the way.",
                f"We are sorry about {order}: {amount:.2f} EUR are on the way.",
                f"{amount:.2f} EUR are on the way to you.",
            )
        )
