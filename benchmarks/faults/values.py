"""Draws the values of a task, and writes them as people and models do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from random import Random

Value: TypeAlias = str | int | float | date
Values: TypeAlias = Mapping[str, Value]

CURRENCIES = ("EUR", "USD", "CHF")


def misread_number(draw: Random, number: float) -> float:
    """Return the number with two neighbouring digits turned, or one of them another."""
    text = str(number)
    places = [n for n in range(len(text) - 1) if text[n : n + 2].isdigit()]
    turned = [n for n in places if text[n] != text[n + 1] and (n or text[1] != "0")]
    if turned:
        # The first digit stays where it can: a misread amount is of the right size.
        n = draw.choice(turned[1:] or turned)
        wrong = text[:n] + text[n + 1] + text[n] + text[n + 2 :]
    else:
        wrong = str((int(text[0]) % 9) + 1) + text[1:]
    return type(number)(wrong)


def misread_date(draw: Random, day: date) -> date:
    """Return the date with its digits turned, in the next month, or some days on."""
    turned = int(f"{day.day:02d}"[::-1])
    choices = [day + timedelta(days=draw.choice((10, 20))), day + timedelta(days=30)]
    if turned != day.day and 1 <= turned <= 28:
        choices.append(day.replace(day=turned))
    return draw.choice(choices)


def drawn(ranges: Mapping[str, Any], draw: Random) -> dict[str, Value]:
    """Draw the values of a task, each with a misread one beside it.

    Args:
        ranges: for each name a list of choices, a pattern whose # are digits, or bounds (with ``decimals``), or the
            ``year`` of a date.
        draw: decides.
    """
    values: dict[str, Value] = {"cur": draw.choice(CURRENCIES)}
    for name, given in ranges.items():
        wrong = f"bad_{name}"
        if isinstance(given, list):
            values[name] = draw.choice(given)
        elif isinstance(given, str):
            values[name] = re.sub("#", lambda _: str(draw.randint(1, 9)), given)
        elif "year" in given:
            # Days up to 28 exist in every month.
            day = date(given["year"], draw.randint(1, 12), draw.randint(1, 28))
            values |= {name: day, wrong: misread_date(draw, day)}
        else:
            low, high = given["between"]
            decimals = given.get("decimals", 0)
            amount = (
                round(draw.uniform(low, high), decimals) if decimals else draw.randint(low, high)
            )
            values |= {name: amount, wrong: misread_number(draw, amount)}
    return values


def number(values: Values, name: str) -> float:
    """Return a value that is a number."""
    value = values[name]
    assert isinstance(value, int | float)
    return value


def derived(team: str, values: Values) -> dict[str, Value]:
    """Return the values with those that follow from them."""
    more: dict[str, Value] = {}
    if team == "travel":
        stay, fare = number(values, "rate") * number(values, "nights"), number(values, "fare")
        # The budget is enough for the misread fare, too: that is not the error.
        budget = int((stay + max(fare, number(values, "bad_fare"))) // 50 * 50 + 150)
        more = {
            "stay": stay,
            "total": fare + stay,
            "bad_total": fare + stay + 100,
            "budget": budget,
        }
        nights = int(number(values, "nights"))
        more |= {"back": later(values, "out", nights), "bad_back": later(values, "bad_out", nights)}
        more["until"] = later(values, "out", -int(number(values, "free_days")))
    elif team == "research":
        exact = (number(values, "cap2") / number(values, "cap1") - 1) * 100
        more = {"exact": round(exact, 4), "growth": round(exact, 1), "about": round(exact)}
    elif team == "repair":
        more = {"less": number(values, "passed") - 1}
    else:
        amount = round(number(values, "price") - number(values, "fee"), 2)
        until = later(values, "delivered", int(number(values, "days")))
        more = {"amount": amount, "until": until, "less": round(amount - 10, 2)}
    return {**values, **more}


def later(values: Values, name: str, days: int) -> date:
    """Return the date so many days after a value that is one."""
    day = values[name]
    assert isinstance(day, date)
    return day + timedelta(days=days)


def written(value: Value, form: str, currency: str, draw: Random) -> str:
    """Return a value as text.

    Args:
        value: the value.
        form: ``m`` for money, ``d`` for a date, ``n`` for a number, each in a form drawn at random; empty as in JSON.
        currency: of money.
        draw: decides the form.
    """
    if form == "m":
        cents = ",.2f" if isinstance(value, float) else ","
        return draw.choice(
            (
                f"{value:{cents}} {currency}",
                f"{currency} {value:{cents}}",
                f"{value:,.2f} {currency}",
            )
        )
    if form == "n":
        return draw.choice((f"{value:,}", str(value)))
    if form == "d":
        assert isinstance(value, date)
        written_day = draw.choice(("%d %B %Y", "%B %d, %Y", "%Y-%m-%d", "%d %b %Y", "%a %d %B %Y"))
        return value.strftime(written_day).replace(" 0", " ").lstrip("0")
    return str(value)
