"""Healthy programs of people who trace their own agents: repeated calls, retries, tests and checks.

Each looks like a failure and is none, and is written the way a new user would write it.
"""

from __future__ import annotations

from judge.healthy.healthy_programs import Agent, asked, call, fails, program, say

import mast_trace


@asked("export", "Export the report.", "exporter")
def polling_a_job(agent: Agent) -> None:
    call("start_export", "job 7", report="q3")
    for _ in range(6):
        call("job", "state: exporting", id=7)
    call("job", "state: finished, 3 files", id=7)
    agent.reply("The export has finished: 3 files.")


@asked("inbox", "Wait for Hanna's mail for a minute.", "secretary")
def polling_that_ends_without_news(agent: Agent) -> None:
    for _ in range(5):
        call("read_inbox", "no new mail", folder="inbox")
    agent.reply("No mail of Hanna's has come within the minute.")


@asked("rates", "What is a dollar in euros?", "banker")
def retries_after_an_error(agent: Agent) -> None:
    for _ in range(3):
        fails("fetch_rate", TimeoutError("no answer in 5 s"), pair="USDEUR")
    call("fetch_rate", "0.92", pair="USDEUR")
    agent.reply("A dollar is 0.92 euros.")


@asked("papers", "Find a paper on echo states.", "reader")
def gives_way_after_rate_limits(agent: Agent) -> None:
    for _ in range(4):
        fails("arxiv", RuntimeError("HTTP 429: too many requests"), query="echo state")
    call("semantic_scholar", "Jaeger 2001, The echo state approach", query="echo state")
    agent.reply("Jaeger (2001), 'The echo state approach'.")


@program
def tests_fail_then_pass() -> None:
    with mast_trace.run("bugfix", input="Fix the sum."):
        with mast_trace.agent("coder"):
            call("run_tests", "1 failed, 2 passed", path="tests")
            call("edit_file", "edited", path="sum.py")
            call("run_tests", "1 failed, 2 passed", path="tests")
            call("edit_file", "edited again", path="sum.py")
            call("run_tests", "3 passed", path="tests")
        say("coder", "lead", "The sum is fixed, all 3 tests pass.")
        say("lead", "coder", "Thank you, approved.")


@asked("crawl", "Collect the titles.", "crawler")
def a_crawl_of_forty_pages(agent: Agent) -> None:
    for page in range(40):
        call("fetch_page", f"<title>Part {page % 7}</title> more follows", url=f"/p{page}")
    agent.reply("There are 40 pages with 7 different titles.")


@program
def a_revision_loop() -> None:
    text = "Our town has a new library. It opens at nine, and it is free for all who live here. "
    with mast_trace.run("article", input="Write about the library."):
        say("writer", "editor", text * 2)
        say("editor", "writer", "Please say in the last line when it closes, readers ask that.")
        say("writer", "editor", text * 2 + "It closes at six.")
        say("editor", "writer", "Good, thank you.")


@program
def looks_the_same_up_for_two_people() -> None:
    with mast_trace.run("desk", input="Hello."):
        for person in ("Ada", "Ben"):
            say("user", "desk", f"{person} here: when do you open?")
            with mast_trace.agent("desk"):
                call("opening_hours", "9 to 17", day="Monday")
            say("desk", "user", f"At nine, {person}.")


@asked("news", "What is new?", "editor")
def an_optional_source_is_missing(agent: Agent) -> None:
    fails("read_feed", FileNotFoundError("no such feed"), name="old")
    call("read_feed", "The bridge is open again.", name="city")
    agent.reply("The bridge is open again.")


@program
def a_status_line_again_and_again() -> None:
    with mast_trace.run("deploy", input="Deploy."):
        for _ in range(5):
            say("deployer", "lead", "Still deploying; the next line follows in a minute.")
        say("deployer", "lead", "Deployed version 1.4.")


@program
def starts_again_because_told() -> None:
    with mast_trace.run("game", input="Play."):
        say("player", "host", "My first word is apple, and I have six letters left to guess.")
        say("user", "host", "Please start over.")
        say("host", "player", "We start over from the beginning, as the user wishes.")
        say("player", "host", "My first word is pear.")


@program
def tests_that_grow() -> None:
    tests = "```python\ndef test_empty():\n    assert total([]) == 0\n\ndef test_one():\n    assert total([7]) == 7\n"
    more = "\ndef test_two():\n    assert total([7, 8]) == 15\n"
    with mast_trace.run("tests", input="Write tests for the sum."):
        say("tester", "reviewer", tests + "```")
        say("reviewer", "tester", "And two?")
        say("tester", "reviewer", tests + more + "```")
        say("reviewer", "user", "The tests are there.")


@asked("edit", "Rename the function.", "coder")
def edits_without_a_claim(agent: Agent) -> None:
    call("read_file", "def f(): return 1", path="a.py")
    call("write_file", "saved", path="a.py", text="def g(): return 1")
    agent.reply("It is renamed. I have not run the tests; please do.")


@program
def tests_that_a_person_ran() -> None:
    with mast_trace.run("fix", input="Fix it."):
        with mast_trace.agent("coder"):
            call("write_file", "saved", path="a.py", text="x = 1")
        say("user", "coder", "I ran them: 12 passed.")
        say("coder", "user", "Good: all 12 tests pass.")
