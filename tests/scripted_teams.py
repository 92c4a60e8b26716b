"""Teams of which it is known how multi-agent they are: a relay chain, a vote, a hidden profile and others.

Each team is a function of a number and of a source of chance that plays one run by the manual interface.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

import mast_trace
from mast_trace.messages import Message
from mast_trace.testing import capture_spans
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_judge.multi_agent.measure import TeamRun, team_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace.trajectory import SpanRecord
    from mast_trace_collector.storage import Store

RUNS = 24


def stored(store: Store, service: str, team: Callable[[random.Random], bool], runs: int) -> None:
    """Play a team as a service, and store its runs with their outcomes."""
    draw = random.Random(runs)
    with capture_spans(frameworks=[], service_name=service) as captured:
        for _ in range(runs):
            with mast_trace.run("team", input="Find the code."):
                mast_trace.record_outcome(team(draw))
        request = encode_spans(captured.spans).SerializeToString()
    SpanWriter(store).write([request], token=f"{service} {runs}")


def played(team: Callable[[random.Random], bool], runs: int = RUNS) -> list[TeamRun]:
    """Play a team again and again, and return its runs with their outcomes."""
    draw = random.Random(5)
    with capture_spans(frameworks=[]) as captured:
        for _ in range(runs):
            with mast_trace.run("team", input="Find the code."):
                mast_trace.record_outcome(team(draw))
        spans: dict[str, list[SpanRecord]] = defaultdict(list)
        for record in captured.records:
            spans[record.trace_id].append(record)
    return [team_run(found) for found in spans.values()]


def _fact(draw: random.Random) -> str:
    return str(draw.randrange(10**8, 10**9))


def _says(agent: str, to: str | list[str], text: str) -> None:
    with mast_trace.agent(agent):
        mast_trace.message(agent, to, text)


def _asks(agent: str, tool: str, result: str) -> None:
    with mast_trace.agent(agent), mast_trace.tool(tool, {"of": agent}) as call:
        call.result(result)


def relay(draw: random.Random) -> bool:
    """Three agents hand one number on: a pipeline in which every word is taken up."""
    fact = _fact(draw)
    _says("first", "second", f"The code is {fact}.")
    _says("second", "third", f"I pass on the code {fact}.")
    _says("third", "first", f"The answer is the code {fact}.")
    return True


def passed_on(draw: random.Random) -> bool:
    """Two agents are shown the message of a first one under its id, with words around it; one repeats it."""
    told = f"The code is {_fact(draw)}."
    sent = mast_trace.message("first", "second", told)
    with mast_trace.agent("second", input=Message("user", f"first: {told}", id=sent)) as turn:
        turn.reply(told)
    # The first that was shown it is not forgotten for the last.
    with mast_trace.agent("third", input=Message("user", f"first: {told}", id=sent)) as turn:
        turn.reply("Done.")
    return True


def blackboard(draw: random.Random) -> bool:
    """One agent writes a file and says so; the other reads it."""
    named = {"mast.resource.id": "board.txt"}
    with mast_trace.agent("one"):
        with mast_trace.tool("write", attributes={**named, "mast.resource.access": "write"}):
            pass
        mast_trace.message("one", "two", f"I wrote {_fact(draw)}.")
    reading = {**named, "mast.resource.access": "read"}
    with mast_trace.agent("two"), mast_trace.tool("read", attributes=reading):
        pass
    return True


def monologues(draw: random.Random) -> bool:
    """Two agents that repeat their own words by turns, and never each other's."""
    facts = {"one": _fact(draw), "two": _fact(draw)}
    for agent, other in (("one", "two"), ("two", "one")) * 3:
        _says(agent, other, f"I say {facts[agent]}.")
    return True


def looked_up(draw: random.Random) -> bool:
    """Two agents that say what the first of two tools has told each of them: none has it from the other."""
    fact = _fact(draw)
    for agent, other in (("one", "two"), ("two", "one")):
        _asks(agent, "archive", fact)
        _asks(agent, f"clock of {agent}", "noon")
        _says(agent, other, f"I found {fact}.")
    return True


def confirmed(draw: random.Random) -> bool:
    """One number, which a second agent repeats and a third one does not: it is new once."""
    fact = _fact(draw)
    _says("first", "second", f"The code is {fact}.")
    _says("second", "third", f"Indeed, it is {fact}.")
    _says("third", "user", "Done.")
    return True


def asked(draw: random.Random) -> bool:
    """One number is new; one was given to a tool before it was said, and after the last one nobody acts."""
    known, new = _fact(draw), _fact(draw)
    with mast_trace.agent("first"), mast_trace.tool("search", {"for": known}):
        pass
    _says("first", "second", f"Of {known} comes {new}.")
    _says("second", "first", f"Of {new} comes {_fact(draw)}.")
    return True


def corrected(draw: random.Random) -> bool:
    """One of two reviewed texts is written anew; a review of a review is none."""
    _says("writer", "reviewer", f"It is {_fact(draw)}.")
    _says("reviewer", "writer", f"It is not, for it has {_fact(draw)}.")
    _says("critic", "writer", "Indeed not.")
    _says("editor", "user", f"We take {_fact(draw)} words.")
    _says("reviewer", "editor", "Too many.")
    _says("writer", "user", f"Then we have {_fact(draw)} of another kind.")
    return True


def parrots(draw: random.Random) -> bool:
    """One agent says a number, and the other one no more than the task."""
    _says("one", "two", f"It has {_fact(draw)}.")
    _says("two", "one", "Find the code.")
    return True


def vote(draw: random.Random) -> bool:
    """Three agents answer by themselves, and the most frequent answer counts: an ensemble."""
    for agent in ("one", "two", "three"):
        _says(agent, "counter", f"I think that the code is {_fact(draw)}.")
    _says("counter", "user", "The votes are counted.")
    return True


def hidden_profile(draw: random.Random) -> bool:
    """Each of three agents knows one part of the code, and the fourth puts them together."""
    parts = [_fact(draw) for _ in range(3)]
    for agent, part in zip(("one", "two", "three"), parts, strict=True):
        _asks(agent, f"archive of {agent}", part)
        _says(agent, "solver", f"My part of the code is {part}.")
    _says("solver", "user", f"The code is {parts[0]} {parts[1]} {parts[2]}.")
    return True


def clones(draw: random.Random) -> bool:
    """Two agents that do the same at random: names without roles."""
    for _ in range(12):
        agent = draw.choice(["red", "blue"])
        if draw.random() < 0.5:
            _asks(agent, "search", "nothing")
        else:
            _says(agent, "user", f"I looked at {_fact(draw)}.")
    return True


def handed_over(_draw: random.Random) -> bool:
    """Two agents, each of which hands over to the other by a tool of its own and a message."""
    for agent, other in (("one", "two"), ("two", "one")):
        with mast_trace.agent(agent):
            with mast_trace.tool(f"to {other}", attributes={"mast.handoff.target.name": other}):
                pass
            mast_trace.message(agent, other, "Go on.")
    return True


def rubber_stamp(draw: random.Random) -> bool:
    """A reviewer who approves whatever it is shown, in runs that fail."""
    text = f"The report with number {_fact(draw)} is done."
    _says("writer", "reviewer", text)
    _says("reviewer", "writer", "Approved.")
    _says("writer", "user", text)
    return False


def real_review(draw: random.Random) -> bool:
    """A reviewer whose objection makes the writer write another report, which is right."""
    _says("writer", "reviewer", f"The report with number {_fact(draw)} is done.")
    right = _fact(draw)
    _says("reviewer", "writer", f"The number is wrong, the source says {right}.")
    _says("writer", "user", f"Here is everything again from the beginning, with {right} this time.")
    return True


def routed(draw: random.Random) -> bool:
    """A router that gives the word to one of three agents at random."""
    for _ in range(6):
        worker = draw.choice(["ann", "ben", "cem"])
        _says("router", worker, f"Take {_fact(draw)}.")
        _says(worker, "router", "Done.")
    return True


def together(_draw: random.Random) -> bool:
    """Two agents whose tools run at the same time, from beginning to end."""

    def work(agent: str) -> None:
        with mast_trace.agent(agent), mast_trace.tool("wait", {}):
            time.sleep(0.02)

    with ThreadPoolExecutor(2) as pool:
        for future in [
            pool.submit(mast_trace.in_context(work), name) for name in ("left", "right")
        ]:
            future.result()
    return True


def in_turn(_draw: random.Random) -> bool:
    """Two agents whose tools run one after the other."""
    for agent in ("left", "right"):
        with mast_trace.agent(agent), mast_trace.tool("wait", {}):
            time.sleep(0.002)
    return True
