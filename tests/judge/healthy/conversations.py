"""Healthy programs of people who trace their own agents: answers, reviews, debates, hand-overs and endings.

Each looks like a failure and is none, and is written the way a new user would write it.
"""

from __future__ import annotations

from judge.healthy.healthy_programs import call, fails, program, say

import mast_trace


@program
def one_agent_answers() -> None:
    asked = "What is the capital of Australia?"
    with mast_trace.run("capital", input=asked), mast_trace.agent("geographer") as agent:
        agent.reply("Canberra.")


@program
def one_agent_with_a_tool() -> None:
    asked = "Is it warm in Lisbon?"
    with mast_trace.run("weather", input=asked), mast_trace.agent("guide") as agent:
        call("get_weather", "24 degrees, sunny", city="Lisbon")
        agent.reply("Yes: it is 24 degrees and sunny in Lisbon.")


@program
def workers_of_one_name() -> None:
    with mast_trace.run("translate", input="Translate the chapters."):
        for chapter in range(5):
            with mast_trace.agent("translator", input=f"Chapter {chapter}") as agent:
                call("glossary", "spool: Spule; segment: Abschnitt", language="de")
                agent.reply(f"Kapitel {chapter}: Die Spule hat {chapter + 2} Abschnitte.")


@program
def a_debate() -> None:
    with mast_trace.run("debate", input="Is remote work better?"):
        say("pro", "con", "Remote work saves an hour a day on the road, which people can use.")
        say("con", "pro", "That is not correct for everybody: many miss the talk in the hall.")
        say("pro", "con", "Some do, yet the hour on the road is lost for all who travel.")
        say("con", "pro", "I stay with it: talk in the hall is where the best ideas come from.")
        say("judge", ("pro", "con"), "Both have a point: two days at home, three in the office.")


@program
def two_who_hold_their_ground() -> None:
    claim = "The bridge was opened in 1883, as the city's own archive says on its first page."
    with mast_trace.run("dispute", input="When was the bridge opened?"):
        say("historian", "sceptic", claim)
        say("sceptic", "historian", "That is wrong, is it not? I have read 1873 somewhere.")
        say("historian", "sceptic", "I have looked again: 1883, in the archive's own words.")
        say("sceptic", "historian", "Then I was mistaken. 1883.")


@program
def a_clarification() -> None:
    with mast_trace.run("booking", input="Book a table."):
        say("waiter", "user", "For how many people, and when?")
        say("user", "waiter", "Four, at eight.")
        with mast_trace.agent("waiter"):
            call("book_table", "table 12", people=4, at="20:00")
        say("waiter", "user", "Table 12 is yours at eight.")


@program
def a_correct_not_found() -> None:
    asked = "Is there an invoice 4711?"
    with mast_trace.run("lookup", input=asked), mast_trace.agent("clerk") as agent:
        call("find_invoice", "no such invoice", number=4711)
        agent.reply("I could not find an invoice 4711: there is none.")


@program
def a_question_without_an_answer() -> None:
    asked = "Who painted the zebra?"
    with mast_trace.run("zebra", input=asked), mast_trace.agent("curator") as agent:
        call("search", "no results", query="zebra painting")
        call("search", "no results", query="painter of zebra")
        agent.reply("It could not be determined who painted it; further research is needed.")


@program
def a_hand_over_to_people() -> None:
    with mast_trace.run("support", input="My order is broken."), mast_trace.agent("support"):
        call("find_order", '{"id": "#W2378156", "state": "delivered"}', user="yusuf_rossi_9620")
        call("transfer_to_human_agents", "Transfer successful", summary="broken order")


@program
def spanish() -> None:
    with mast_trace.run("viaje", input="¿Cuánto cuesta?"), mast_trace.agent("agente") as agent:
        call("precio", "1234.5", destino="Sevilla")
        agent.reply("El viaje a Sevilla cuesta 1.234,50 euros.")


@program
def chinese() -> None:
    with mast_trace.run("天气", input="北京天气怎么样?"), mast_trace.agent("助手") as agent:
        call("天气", "晴,25度", 城市="北京")
        agent.reply("北京今天晴,气温25度。")


@program
def a_report_that_only_writes() -> None:
    with mast_trace.run("report", input="Write the report."), mast_trace.agent("writer") as agent:
        call("write_file", "ok", path="report.md", text="# Report\nAll is well.")
        agent.reply("The report is in report.md.")


@program
def code_in_an_answer() -> None:
    asked = "How do I add two numbers?"
    with mast_trace.run("snippet", input=asked), mast_trace.agent("coder") as agent:
        agent.reply(
            "```python\ndef add(a, b):\n    total = a + b\n    return total\n```\nNo tests needed."
        )


@program
def structured_output() -> None:
    asked = "Extract name and age."
    with mast_trace.run("extract", input=asked), mast_trace.agent("extractor") as agent:
        agent.reply('{"name": "Ada", "age": 36}')


@program
def a_best_effort_at_the_end() -> None:
    with mast_trace.run("notify", input="Send the result."), mast_trace.agent("sender") as agent:
        agent.reply("The result is 42.")
        fails("log_metric", ConnectionError("no metrics server"), name="sent")


@program
def a_review_that_passes_good_work() -> None:
    with mast_trace.run("review", input="Build it."):
        with mast_trace.agent("coder"):
            call("run_tests", "12 passed", path="tests")
        say("coder", "reviewer", "Done, 12 tests pass.")
        say("reviewer", "coder", "Approved, it works as expected.")


@program
def planning_aloud() -> None:
    with mast_trace.run("plan", input="Plan the week."), mast_trace.agent("planner") as agent:
        agent.reply(
            "Let me see. We will start with the garden, then we will paint the fence on Friday."
        )


@program
def an_assumption_that_is_said() -> None:
    asked = "How long does it take?"
    with mast_trace.run("guess", input=asked), mast_trace.agent("driver") as agent:
        agent.reply("I assume that you go by car: then it takes two hours.")


@program
def ends_and_says_goodbye() -> None:
    with mast_trace.run("chat", input="Thank you."):
        say("helper", "user", "The task is complete. TERMINATE")
        say("user", "helper", "Goodbye.")


@program
def a_person_stops_it() -> None:
    with mast_trace.run("long", input="Read everything.") as run, mast_trace.agent("reader"):
        call("read", "chapter 1", number=1)
        run.stopped("cancelled")
