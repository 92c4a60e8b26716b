"""Healthy programs of people who trace their own agents: answers, reviews, debates, hand-overs and endings.

Each looks like a failure and is none, and is written the way a new user would write it.
"""

from __future__ import annotations

from judge.healthy.healthy_programs import Agent, asked, call, fails, program, say

import mast_trace


@asked("capital", "What is the capital of Australia?", "geographer")
def one_agent_answers(agent: Agent) -> None:
    agent.reply("Canberra.")


@asked("weather", "Is it warm in Lisbon?", "guide")
def one_agent_with_a_tool(agent: Agent) -> None:
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


@asked("lookup", "Is there an invoice 4711?", "clerk")
def a_correct_not_found(agent: Agent) -> None:
    call("find_invoice", "no such invoice", number=4711)
    agent.reply("I could not find an invoice 4711: there is none.")


@asked("zebra", "Who painted the zebra?", "curator")
def a_question_without_an_answer(agent: Agent) -> None:
    call("search", "no results", query="zebra painting")
    call("search", "no results", query="painter of zebra")
    agent.reply("It could not be determined who painted it; further research is needed.")


@asked("support", "My order is broken.", "support")
def a_hand_over_to_people(_: Agent) -> None:
    call("find_order", '{"id": "#W2378156", "state": "delivered"}', user="yusuf_rossi_9620")
    call("transfer_to_human_agents", "Transfer successful", summary="broken order")


@asked("viaje", "¿Cuánto cuesta?", "agente")
def spanish(agent: Agent) -> None:
    call("precio", "1234.5", destino="Sevilla")
    agent.reply("El viaje a Sevilla cuesta 1.234,50 euros.")


@asked("天气", "北京天气怎么样?", "助手")
def chinese(agent: Agent) -> None:
    call("天气", "晴,25度", 城市="北京")
    agent.reply("北京今天晴,气温25度。")


@asked("report", "Write the report.", "writer")
def a_report_that_only_writes(agent: Agent) -> None:
    call("write_file", "ok", path="report.md", text="# Report\nAll is well.")
    agent.reply("The report is in report.md.")


@asked("snippet", "How do I add two numbers?", "coder")
def code_in_an_answer(agent: Agent) -> None:
    agent.reply(
        "```python\ndef add(a, b):\n    total = a + b\n    return total\n```\nNo tests needed."
    )


@asked("extract", "Extract name and age.", "extractor")
def structured_output(agent: Agent) -> None:
    agent.reply('{"name": "Ada", "age": 36}')


@asked("notify", "Send the result.", "sender")
def a_best_effort_at_the_end(agent: Agent) -> None:
    agent.reply("The result is 42.")
    fails("log_metric", ConnectionError("no metrics server"), name="sent")


@program
def a_review_that_passes_good_work() -> None:
    with mast_trace.run("review", input="Build it."):
        with mast_trace.agent("coder"):
            call("run_tests", "12 passed", path="tests")
        say("coder", "reviewer", "Done, 12 tests pass.")
        say("reviewer", "coder", "Approved, it works as expected.")


@asked("plan", "Plan the week.", "planner")
def planning_aloud(agent: Agent) -> None:
    agent.reply(
        "Let me see. We will start with the garden, then we will paint the fence on Friday."
    )


@asked("guess", "How long does it take?", "driver")
def an_assumption_that_is_said(agent: Agent) -> None:
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
