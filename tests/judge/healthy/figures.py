"""Healthy programs of people who trace their own agents: figures, sums and units, in several languages and number formats.

Each looks like a failure and is none, and is written the way a new user would write it.
"""

from __future__ import annotations

from judge.healthy.healthy_programs import Agent, asked, call, program

import mast_trace


@asked("trip", "Flight to Tunis, 2 hotel nights and the shuttle: what is the total?", "booker")
def a_sum_that_looks_like_an_addend(agent: Agent) -> None:
    call("lookup_flight", "$310", to="Tunis")
    call("lookup_hotel", "$40/night", city="Tunis")
    call("lookup_shuttle", "$20 each way", city="Tunis")
    agent.reply("$410")  # 310 + 2 * 40 + 20


@asked("trip", "Flight to Tunis, 2 hotel nights and the shuttle: what is the total?", "booker")
def a_sum_with_an_addend_repeated(agent: Agent) -> None:
    call("lookup_flight", "$310", to="Tunis")
    call("lookup_hotel", "$30/night", city="Tunis")
    call("lookup_shuttle", "$20", city="Tunis")
    agent.reply("With the shuttle at $20 the whole trip comes to $390.")


@program
def fan_out_with_a_total() -> None:
    sold = {"north": 1203.5, "south": 880.25, "west": 1411.0}
    with mast_trace.run("sales", input="What was sold in all?"):
        for region, value in sold.items():
            with mast_trace.agent(f"{region}_analyst"):
                call("regional_sales", f"{value} EUR", region=region)
            mast_trace.message(f"{region}_analyst", "lead", f"{region}: {value} EUR")
        mast_trace.message("lead", "user", f"In all {sum(sold.values())} EUR were sold.")


@asked("rechnung", "Was kostet das zusammen?", "kassierer")
def money_in_german(agent: Agent) -> None:
    call("preis", "47.9", artikel="Lampe")
    agent.reply("Die Lampe kostet 47,90 Euro.")


@asked("kurs", "Wie steht der Dollar?", "bank")
def a_rate_with_a_decimal_comma(agent: Agent) -> None:
    call("kurs", "1.0847", paar="EURUSD")
    agent.reply("Ein Euro sind 1,0847 Dollar.")


@asked("exchange", "Exchange the lamp.", "shop")
def a_refund_with_another_sign(agent: Agent) -> None:
    call("price_difference", "-16.63", order="#W2378156")
    agent.reply("You get a refund of $16.63 on your card.")


@asked("route", "How far is it, in kilometres?", "driver")
def miles_and_kilometres(agent: Agent) -> None:
    call("distance", "26.2 miles", to="the coast")
    agent.reply("According to the tool it is 42.2 km.")


@asked("weather", "How warm is it?", "guide")
def degrees(agent: Agent) -> None:
    call("temperature", "72 F", city="Boston")
    agent.reply("The tool reports 22.2 degrees Celsius.")


@asked("share", "Which share is open?", "clerk")
def a_share_in_percent(agent: Agent) -> None:
    call("count_open", "42", table="invoices")
    call("count_all", "168", table="invoices")
    agent.reply("A quarter of the invoices is open: 25 %.")


@asked("trip", "What does the trip cost?", "agent")
def sums_of_many(agent: Agent) -> None:
    call("flight", "$502", to="Prague")
    call("flight", "$361", to="Osaka")
    call("hotel", "$165/night", city="Prague")
    call("hotel", "$270/night", city="Osaka")
    agent.reply("Two nights each: 502 + 361 + 2 * 165 + 2 * 270 = $1733.")


@asked("crore", "How many?", "clerk")
def indian_numbers(agent: Agent) -> None:
    call("count", "1234567", of="people")
    agent.reply("There are 12,34,567 people.")


@program
def ids_are_no_findings() -> None:
    with mast_trace.run("account", input="Find my account."):
        with mast_trace.agent("finder"):
            call("find_user", "mei_kovacs_8020", name="Mei", zip="28236")
        mast_trace.message("finder", "helper", "I have found her, please go on.")
        mast_trace.message("helper", "user", "Welcome back, Mei. What may I do for you?")


@asked("bills", "What do we owe?", "clerk")
def a_sum_that_is_written_out(agent: Agent) -> None:
    call("bill", "120.50 EUR", of="north")
    call("bill", "80.25 EUR", of="south")
    agent.reply("We owe, in all: 120.50 + 80.25 = 200.75 EUR.")


@asked("rechnung", "Was macht das?", "kasse")
def a_sum_in_german(agent: Agent) -> None:
    call("preis", "1200.5", artikel="Schrank")
    call("preis", "80.25", artikel="Lampe")
    agent.reply("Zusammen: 1.200,50 + 80,25 = 1.280,75 Euro.")


@asked("quote", "What does it cost?", "sales")
def a_total_with_a_tax(agent: Agent) -> None:
    call("price", "310 EUR", of="desk")
    call("price", "145 EUR", of="chair")
    agent.reply("The total is 541.45 EUR including VAT.")


@asked("shares", "How is it split?", "analyst")
def shares_that_are_rounded(agent: Agent) -> None:
    call("share", "33.3 %", of="a")
    call("share", "33.3 %", of="b")
    call("share", "33.3 %", of="c")
    agent.reply("Rounded it is 33 + 33 + 33 = 100 percent.")


@asked("growth", "Did we grow?", "analyst")
def two_years_in_another_order(agent: Agent) -> None:
    call("revenue", {"2019": 120, "2020": 150}, unit="million")
    agent.reply("Yes: 150 million in 2020, compared to 2019, when it was 120.")


@asked("load", "How busy are we?", "operator")
def a_peak_and_an_average(agent: Agent) -> None:
    call("load", "average: 41 %, peak: 97 %", host="db1")
    agent.reply("The average is far below the peak of 97 %: it is 41 %.")


@asked("regions", "Which is ahead?", "analyst")
def a_share_that_is_told_as_a_difference(agent: Agent) -> None:
    call("sales", "north: 120, south: 150", year=2020)
    agent.reply("The south, by 30: the north was 30 short.")


@program
def a_figure_through_four_hands() -> None:
    with mast_trace.run("room", input="What do three nights cost?"):
        with mast_trace.agent("reader"):
            call("room_price", "118 EUR per night", city="Lisbon")
        mast_trace.message("reader", "writer", "A night costs 118 EUR.")
        mast_trace.message("writer", "checker", "Three nights: 3 x 118 = 354 EUR.")
        mast_trace.message("checker", "lead", "I have verified 354 EUR, it is correct.")
        mast_trace.message("lead", "user", "Three nights cost 354 EUR.")
