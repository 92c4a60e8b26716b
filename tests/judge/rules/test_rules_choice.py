"""The rule for answers that name another option than the results favour."""

import json
from dataclasses import replace

import pytest
from judge.builders import RunBuilder

from mast_trace.messages import Message
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.local.rules.choice import unfavoured_choice
from mast_trace_judge.verdict import Evidence

TASK = "Which of Oslo, Riga and Bonn has the cheapest room? Name the city."
PRICES = {"Oslo": "210 EUR", "Riga": "96 EUR", "Bonn": "120 EUR"}


def rooms(task=TASK, answer="Bonn has the cheapest room.", *, prices=PRICES, **more):
    """A run in which an agent asks for a room's price in each city, and for more of each."""
    run = RunBuilder(task)
    for city, price in prices.items():
        run.calls("clerk", "room_price", {"city": city}, price)
    for tool, results in more.items():
        for city, result in results.items():
            run.calls("clerk", tool, {"city": city}, result)
    return run.says("clerk", answer)


def listed(task, answer, *rows):
    run = RunBuilder(task).calls("clerk", "search", {"q": "rooms"}, json.dumps(list(rows)))
    return run.says("clerk", answer)


def test_a_dearer_option_named_as_the_cheapest_is_found():
    (found,) = unfavoured_choice(rooms().build())
    assert (found.code, found.evidence, found.steps) == ("2.6", Evidence.HEURISTIC, (1, 2, 3))
    assert all(told in found.reason for told in ("bonn (120 EUR)", "riga (96 EUR)"))
    assert [mode.code for mode in find_modes(rooms().build())] == ["2.6"]


@pytest.mark.parametrize(
    "run",
    [
        rooms(answer="Oslo"),
        rooms("Where is the most expensive room: Oslo, Riga or Bonn?", "It is Riga, at 96 EUR."),
        rooms("Das g\u00fcnstigste Zimmer in Oslo, Riga und Bonn, bitte.", "In Bonn."),
        rooms("\u00bfD\u00f3nde est\u00e1 lo m\u00e1s barato, en Oslo, Riga o Bonn?", "Bonn."),
        rooms(
            "Where is the cheapest room in a city with sunny or mild weather?",
            "Bonn is mild and has the cheapest room.",
            weather={"Oslo": "rainy", "Riga": "sunny", "Bonn": "mild"},
        ),
        rooms(
            "Which city has the highest population: Oslo, Riga or Bonn?",
            "Bonn has.",
            prices={},
            get_population={"Oslo": "709037", "Riga": "605802", "Bonn": "335975"},
        ),
        rooms(
            "Which is the warmest: Oslo, Riga or Bonn?",
            "Oslo is the warmest.",
            prices={},
            temperature={"Oslo": "4 C", "Riga": "7 C", "Bonn": "11 C"},
        ),
        listed(
            "Find the cheapest room.",
            "Take the Anchor.",
            {"name": "Anchor", "price": 140, "breakfast": "yes"},
            {"name": "Swan", "price": 95, "breakfast": "yes"},
        ),
    ],
    ids=["bare", "dearest", "German", "Spanish", "as asked for", "noun", "warmth", "rows"],
)
def test_another_option_than_the_best_is_found(run):
    """By calls for each option and by rows of one result; by names of measures and by their units."""
    assert [each.code for each in unfavoured_choice(run.build())] == ["2.6"]


SUNNY = {"Oslo": "rainy", "Riga": "stormy", "Bonn": "sunny"}


@pytest.mark.parametrize(
    "run",
    [
        rooms(answer="Riga has the cheapest room."),
        rooms(prices={**PRICES, "Bonn": "96 EUR"}),
        rooms("Compare the rooms of Oslo, Riga and Bonn."),
        rooms("Which of Oslo and Bonn has the cheapest room?"),
        rooms("Which has the cheapest room but is not in Latvia?"),
        rooms("The cheapest room above 100 EUR, please."),
        rooms("The cheapest room, only in Oslo or Bonn."),
        rooms("The cheapest room in a city with sunny weather", weather=SUNNY),
        rooms("The cheapest room in a city with sunny weather", weather={"Bonn": "sunny"}),
        rooms("The cheapest room with the highest rating", rating={"Bonn": "9", "Riga": "4"}),
        rooms(answer="Bonn is dearer than Riga."),
        rooms(answer="Riga was full, so I booked Bonn instead."),
        rooms(answer="Riga 96 EUR, Bonn 120 EUR, Oslo 210 EUR."),
        rooms(answer="I could not find a room in Bonn."),
        rooms(answer="Shall I book Bonn?"),
        rooms(answer="Bonn is the most expensive of those that I like."),
        rooms(answer="Here you are."),
        rooms(prices={"Oslo": "210 EUR", "Riga": "96 USD", "Bonn": "120 EUR"}),
        rooms(prices={"Oslo": "210 EUR", "Riga": "sold out", "Bonn": "120 EUR"}),
        rooms(prices={"Oslo": "210 to 260 EUR", "Riga": "96 to 130 EUR", "Bonn": "120 to 125 EUR"}),
        rooms(prices={**PRICES, "Riga": "from 96 EUR"}),
        rooms(breakfast={"Oslo": "12 EUR", "Riga": "40 EUR", "Bonn": "0 EUR"}),
        rooms(prices={}, room_rating={"Oslo": "7", "Riga": "5", "Bonn": "6"}),
        rooms().calls("clerk", "room_price", {"city": "Riga"}, "180 EUR").says("clerk", "Bonn."),
        RunBuilder(TASK).asks("Rather near the Rhine.").says("clerk", "Bonn."),
        listed(
            "Find the cheapest room.",
            "Take the Anchor.",
            {"name": "Anchor", "price": 140, "free": True},
            {"name": "Swan", "price": 95, "free": False},
        ),
        listed(
            "Find the cheapest room.",
            "The price is 140 EUR at the Anchor.",
            {"name": "Anchor", "price": "140 EUR", "stars": 4},
            {"name": "Swan", "price": "95 EUR", "stars": 2},
        ),
    ],
    ids=[
        *("best", "tie", "nothing wanted", "not asked for", "but", "above", "only", "condition"),
        *("half known", "two wishes", "comparison", "instead", "list", "negation", "question"),
        *("opposite", "no name", "currencies", "sold out", "ranges", "from", "two costs"),
        *("no money", "changed", "user", "not free", "other stars"),
    ],
)
def test_an_answer_that_accuses_nobody(run):
    """Nothing is found if a condition, a doubt or something unknown may decide."""
    assert unfavoured_choice(run.build()) == []


def test_a_user_who_speaks_again_may_have_other_wishes():
    run = rooms(answer="Shall I take Riga?").asks("Rather near the Rhine.")
    run.asks("Please.")
    assert unfavoured_choice(run.says("clerk", "Bonn.").build()) == []


def test_an_instruction_may_prefer_an_option():
    run = rooms().build()
    told = {"s": Message("Recommend Bonn if you can.", role="system", id="s")}
    assert unfavoured_choice(run)
    assert unfavoured_choice(replace(run, texts={**run.texts, **told})) == []


def many(options):
    """A choice among so many cities."""
    prices = {
        f"City {chr(65 + n % 26)}{chr(65 + n // 26)}": f"{100 + n} EUR" for n in range(options)
    }
    return rooms("The cheapest room, please.", "City BA it is.", prices=prices).build()


def named(letters):
    """A choice in which the named option has a name of so many letters."""
    name = "B" * letters
    prices = {"Oslo": "210 EUR", name: "120 EUR", "Riga": "96 EUR"}
    return rooms("Which room is the cheapest?", f"It is {name}.", prices=prices).build()


@pytest.mark.parametrize(
    ("run", "beyond"), [(many(50), many(51)), (named(40), named(41))], ids=["options", "letters"]
)
def test_a_great_many_options_and_long_names_are_not_compared(run, beyond):
    """With so many the task cannot be about a choice among them; and a long text is no name."""
    assert [len(unfavoured_choice(run)), len(unfavoured_choice(beyond))] == [1, 0]
