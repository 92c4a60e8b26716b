"""Readers of labelled runs, with the traps in their labels."""

import itertools
import json
import math
import re
from collections import defaultdict

import pytest
from judge.data import labelled_runs
from published import data_folder
from published.agent_loops import read_agent_loops
from published.agentrx import read_agentrx
from published.mast import read_ag2_coding, read_mast_v0, read_mathchat
from published.tau_retail import read_tau_retail
from published.who_and_when import read_who_and_when
from test_figures import BENCHMARKS

from mast_trace.trajectory import StepKind
from mast_trace_judge.study.agreement import step_agreement
from mast_trace_judge.study.labelled import same_agent
from mast_trace_judge.transfer.formats.chat import plain_steps


def test_names_lose_what_magentic_one_appends():
    assert same_agent("Orchestrator (-> WebSurfer)", "orchestrator")
    assert same_agent("Orchestrator (thought)", "Orchestrator (termination condition)")
    assert same_agent("Websurfer", "WebSurfer")
    assert not same_agent("WebSurfer", "FileSurfer")


def test_a_history_becomes_numbered_steps():
    history = [
        {"role": "human", "content": "What is 1/0?"},
        {"role": "Orchestrator (-> Coder)", "content": "Compute it."},
        {"role": "user", "name": "Coder", "content": "print(1/0)"},
        {"role": "ComputerTerminal", "content": "exitcode: 1 (execution failed)"},
        {"role": "assistant", "name": "Coder", "content": None},
    ]
    steps = plain_steps(history)
    agents = ["human", "Orchestrator", "Coder", "ComputerTerminal", "Coder"]
    assert [step.agent for step in steps] == agents
    assert (steps[0].role, steps[1].recipients) == ("user", ("Coder",))
    assert steps[3].kind is StepKind.TOOL
    assert steps[3].error is not None
    assert steps[4].text == ""


def test_a_missing_data_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("MAST_TRACE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit, match="MAST_TRACE_DATA"):
        data_folder()
    assert data_folder(str(tmp_path)) == tmp_path


@pytest.mark.parametrize(
    "folder", ["who-and-when/hand-crafted", "Who&When/Hand-Crafted", "Hand-Crafted"]
)
def test_the_published_folder_is_read_as_it_is(folder, tmp_path):
    record = {"history": [], "mistake_agent": "a", "mistake_step": "3", "question_ID": "q"}
    path = tmp_path / folder / "7.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    (run,) = read_who_and_when(tmp_path, "hand-crafted")
    assert (run.name, run.step, run.agent, run.group) == ("7", 3, "a", "q")
    assert read_who_and_when(tmp_path, "algorithm-generated") == []


def test_who_and_when_counts_steps_from_the_first_entry():
    """Every labelled step exists, and nearly always the labelled agent speaks there."""
    data = labelled_runs()
    for subset, count, silent in (("algorithm-generated", 70, 2), ("hand-crafted", 37, 2)):
        runs = read_who_and_when(data, subset)
        assert len(runs) == count
        speakers = [run.trajectory.steps[run.step].agent for run in runs]
        pairs = zip(speakers, (run.agent for run in runs), strict=True)
        assert sum(not same_agent(*pair) for pair in pairs) <= silent


def test_agentrx_labels_are_shifted_to_the_same_count():
    """As published: on these runs two teams agree on the agent in about two thirds."""
    data = labelled_runs()
    second = read_agentrx(data)
    first = {run.name: run for run in read_who_and_when(data, "hand-crafted")}
    assert len(second) == 28
    found = step_agreement(
        [(first[run.name].step, first[run.name].agent) for run in second],
        [(run.step, run.agent) for run in second],
    )
    assert 0.3 < found.exact < 0.5
    assert 0.55 < found.agent < 0.75
    assert all(run.step in run.marked for run in second)


def test_masts_first_traces_have_steps_modes_and_raters():
    """Three frameworks' formats; handlers that logged a line twice are undone."""
    runs = read_mast_v0(labelled_runs())
    assert {run.subset for run in runs} == {"AG2", "HyperAgent", "MetaGPT"}
    assert len(runs) == 54
    for run in runs:
        assert len(run.trajectory.steps) > 2
        assert len(run.trajectory.agents) > 1
        assert len(run.modes) in {12, 13}
        assert set(run.annotators) == {"o1, few examples", "Claude 3.7"}
    logs = [run.trajectory.steps for run in runs if run.subset == "HyperAgent"]
    assert all(
        (a.agent, a.text) != (b.agent, b.text) or not a.text
        for steps in logs
        for a, b in itertools.pairwise(steps)
    )


def test_mathchat_says_which_answers_were_right():
    runs = read_mathchat(labelled_runs())
    assert len(runs) == 398
    assert 0.1 < sum(not run.success for run in runs) / len(runs) < 0.2
    assert {run.trajectory.outcome for run in runs} == {""}


def test_tau_retail_counts_messages_and_judges_steps():
    """A message may hold several calls; labels name messages, from 1."""
    runs = read_tau_retail(labelled_runs())
    assert (len(runs), sum(run.success for run in runs)) == (51, 37)
    failed = [run for run in runs if not run.success]
    assert all(run.step is not None and run.step in run.marked for run in failed)
    assert all(run.step is None and not run.marked for run in runs if run.success)
    kinds = {step.kind for run in runs for step in run.trajectory.steps}
    assert kinds == {StepKind.MESSAGE, StepKind.TOOL}
    assert {step.agent for run in runs for step in run.trajectory.steps} == {"assistant", "user"}


def test_agent_loops_have_their_calls_whichever_way_they_are_written():
    """Older files have them in the text alone."""
    runs = read_agent_loops(labelled_runs())
    assert (len(runs), sum(not run.extra["fault"] for run in runs)) == (784, 391)
    assert all(run.step is not None for run in runs if run.extra["fault"])
    tools = [s for run in runs for s in run.trajectory.steps if s.kind is StepKind.TOOL]
    assert len(tools) > 4000
    steps = [step for run in runs for step in run.trajectory.steps]
    assert all((step.start, step.end) == (step.index, step.index) for step in steps)
    assert all(step.tool and step.arguments.startswith("{") for step in tools)
    texts = [s.text for run in runs for s in run.trajectory.steps if s.kind is StepKind.MESSAGE]
    assert not any(text.startswith("[") and ") -> " in text for text in texts)


def total(run):
    """The answer that follows from a run's own look-ups, of three tasks; not a number where one is missing or not alone."""
    prices = defaultdict(set)
    for step in run.trajectory.steps:
        price = re.search(r"\d+(?:\.\d+)?", step.text)
        if step.kind is StepKind.TOOL and not step.error and price:
            given = json.loads(step.arguments)
            names = [given.get(key) for key in ("item", "city", "origin", "destination")]
            prices[tuple(filter(None, names))].add(float(price[0]))

    def one(*names):
        return next(iter(prices[names])) if len(prices[names]) == 1 else math.nan

    task = run.trajectory.task
    if found := re.search(r"total price of ((?:item-\d+(?:, | and )?)+) with (\d+)% tax", task):
        items = re.findall(r"item-\d+", found[1])
        return sum(map(one, items)) * (1 + int(found[2]) / 100)
    trip = r"flight (\w+)->(\w+), (\d+) hotel nights in (\w+), flight (\w+)->(\w+)"
    if found := re.search(trip, task):
        out, there, nights, city, back, home = found.groups()
        return one(out, there) + one(back, home) + int(nights) * one(city)
    if found := re.search(r"routes (\S+) and (\S+) .*?(\d+) hotel nights in (\w+)", task):
        ways = [itertools.pairwise(each.split("->")) for each in found.groups()[:2]]
        one_way, other = (sum(one(*leg) for leg in legs) for legs in ways)
        # Not a number if either way has a leg without a price.
        return min(one_way, other) + 0 * (one_way + other) + int(found[3]) * one(found[4])
    return math.nan


def test_recomputed_loops_are_those_that_can_be():
    told = json.loads((BENCHMARKS / "judge" / "recomputed.json").read_text())
    computed = {"right": [], "wrong": []}
    for run in read_agent_loops(labelled_runs()):
        if run.extra["fault"] or run.success is not None or math.isnan(expected := total(run)):
            continue
        said = [
            float(each.replace(",", "").rstrip("."))
            for each in re.findall(r"\d[\d,]*\.?\d*", run.trajectory.steps[-1].text)
        ]
        near = min((abs(each - expected) for each in said), default=expected)
        if near < 0.011 or near >= 1:  # a rounded one is neither
            computed["right" if near < 0.011 else "wrong"].append(run.name)
    assert {end: sorted(names) for end, names in computed.items()} == told
    assert min(map(len, told.values())) > 20


def test_ag2_coding_has_todays_modes():
    runs = read_ag2_coding(labelled_runs())
    assert (len(runs), sum(not any(run.modes.values()) for run in runs)) == (24, 10)
    assert all(len(run.modes) == 14 for run in runs)
