"""Acts, tool runs, failures and conversations as all rules take them; the merging of findings."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.builders import RunBuilder

import mast_trace_judge.local.rules as module
from mast_trace.trajectory import Trajectory
from mast_trace_judge.local.acts import (
    by_user,
    call_key,
    checks,
    conversations,
    ending,
    ends_run,
    failed,
    finding,
    first_line,
    folded,
    is_handoff,
    is_said,
    is_tool,
    name_words,
    ordinary,
    result_key,
    shown_together,
)
from mast_trace_judge.local.rules import _merge, _shortened, find_modes
from mast_trace_judge.verdict import Evidence, ModeFinding

STEPS = {
    "user": RunBuilder().asks("Hello."),
    "User": RunBuilder().says("User", "Hello."),
    "nobody": RunBuilder()._add(agent="", text="Go on.", role=""),
    "a model alone": RunBuilder().says("", "Go on."),
    "agent": RunBuilder().says("lead", "Hello."),
    "silent": RunBuilder().says("lead", " \n"),
    "system": RunBuilder()._add(agent="lead", text="Be kind.", role="system"),
    "result": RunBuilder()._add(agent="lead", text="7", role="tool"),
    "made up": RunBuilder().says("lead", "Agents: lead.", synthetic=True),
    "call": RunBuilder().calls("lead", "search", {}, "7"),
    "call of a user's": RunBuilder().calls("user", "search", {}, "7"),
    "failed call": RunBuilder().calls("lead", "search", {}, error="Timeout"),
    "failed without a word": RunBuilder().calls("lead", "search", {}, error=""),
    "failed output": RunBuilder().calls("lead", "search", {}, "exitcode: 1 (failed)"),
    "told of a failure": RunBuilder().says("lead", "exitcode: 1 (failed)"),
    "handoff": RunBuilder().hands_over("lead", "coder"),
    "handoff by name": RunBuilder().calls("lead", "Transfer_to_coder", {}, "exitcode: 1"),
    "handoff by word": RunBuilder().calls("lead", "hand_off", {}),
    "no handoff": RunBuilder().calls("lead", "transferred_amounts", {}, "7"),
    "message that hands over": RunBuilder().says("lead", "Over.", handoff_to="coder"),
    "talk of transfer": RunBuilder().says("lead", "transfer_to_coder", tool="transfer_to_coder"),
}
HANDOFFS = {"handoff", "handoff by name", "handoff by word"}
CALLS = {
    *("call", "call of a user's", "failed call", "failed without a word", "failed output"),
    "no handoff",
}


@pytest.mark.parametrize(
    ("holds", "names"),
    [
        (by_user, {"user", "User", "nobody"}),
        (is_handoff, {*HANDOFFS, "message that hands over"}),
        (is_tool, CALLS),
        (
            is_said,
            {
                *("agent", "a model alone", "told of a failure"),
                *("message that hands over", "talk of transfer"),
            },
        ),
        (failed, {"failed call", "failed without a word", "failed output"}),
    ],
)
def test_what_a_step_is(holds, names):
    assert {name for name, run in STEPS.items() if holds(run.build().steps[0])} == names


def test_ordinary_steps():
    """All but the user's and those that nobody made."""
    run = RunBuilder().asks().says("lead", "Go.").says("lead", "x", synthetic=True)
    assert [step.index for step in ordinary(run.calls("lead", "search", {}).build())] == [1, 3]


@pytest.mark.parametrize(
    ("name", "does"),
    [("Code_Reviewer", True), ("QA", True), ("qatar", False), ("auditor", True), ("coder", False)],
)
def test_who_checks(name, does):
    assert checks(name) is does


@pytest.mark.parametrize(
    ("name", "parts", "ends"),
    [
        ("getWeather_now", {"get", "weather", "now"}, False),
        ("HTTPGet2", {"http", "get"}, False),
        ("submitAnswer", {"submit", "answer"}, True),
        ("ask", {"ask"}, False),
        ("recomplete", {"recomplete"}, False),
        ("", set(), False),
    ],
)
def test_the_words_of_a_tools_name(name, parts, ends):
    """A call ends the run by a word of its name; a message never does."""
    assert name_words(name) == parts
    assert ends_run(RunBuilder().calls("a", name, {}).build().steps[0]) is ends
    assert not ends_run(RunBuilder().says("a", "Done.", tool=name).build().steps[0])


@pytest.mark.parametrize(("before", "after", "step"), [(0, 0, 0), (2, 2, 2), (2, 3, 5), (0, 1, 0)])
def test_what_ended_a_run(before, after, step):
    """A call among the last three that delivers, else the last step."""
    run = RunBuilder()
    for _ in range(before):
        run.says("a", "Hm.")
    run.calls("a", "submit", {})
    for _ in range(after):
        run.says("a", "Bye.")
    assert ending(run.build().steps).index == step


def test_of_two_deliveries_the_later_one_ended_the_run():
    """The delivery counts, whatever came before."""
    run = RunBuilder().calls("a", "submit", {}).calls("a", "submit", {}).says("a", "Bye.")
    assert ending(run.build().steps).index == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def key_of(arguments):
    return call_key(RunBuilder().says("a", "x", tool="t", arguments=arguments).build().steps[0])


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4), st.integers(0, 30_000))
@settings(deadline=None)
def test_equal_calls_have_equal_keys(arguments, padding):
    """Order of arguments and spaces between them make no difference."""
    turned = dict(reversed(arguments.items()))
    texts = [json.dumps(arguments), " " * padding + json.dumps(turned, indent=2)]
    (key,) = {key_of(text) for text in texts}
    assert key[:2] == ("a", "t")
    assert json.loads(key[2]) == arguments


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1}', '{"a": 2}', False),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ("page  1\n of 2", "page 1 of 2", True),
        ("page 1 of 2", "page 1 of 3", False),
        ("x" * 30_000 + " y", "x" * 30_000 + "  y", True),
        ("x" * 30_000 + " y", "x" * 30_000 + " z", False),
    ],
)
def test_other_arguments_are_another_call(one, other, same):
    """Texts that are no JSON are compared as words."""
    assert (key_of(one) == key_of(other)) is same


@pytest.mark.parametrize(
    ("text", "error", "key"), [(" 7\n", None, "7"), ("", "Timeout", "Timeout"), (" ", None, "")]
)
def test_what_identifies_a_result(text, error, key):
    """A result is identified by its text, else by its error; by nothing where content is not captured."""
    assert result_key(RunBuilder().calls("a", "t", {}, text, error=error).build().steps[0]) == key


def test_a_finding_names_steps_in_order_and_no_quote_twice():
    """Empty quotes are none."""
    steps = RunBuilder().says("a", "\n One. \nTwo.").says("b", "Two.").build().steps
    found = finding("1.3", 0.5, Evidence.EXACT, "Why.", [steps[1], steps[0], steps[1]], "xyyx ")
    assert found == ModeFinding(
        code="1.3",
        probability=0.5,
        evidence=Evidence.EXACT,
        reason="Why.",
        steps=(0, 1),
        quotes=("x", "y", " "),
    )
    assert finding("1.3", 0.5, Evidence.EXACT, "", [], ["", "x", ""]).quotes == ("x",)
    assert first_line(steps[0]) == "One."


def test_a_conversation_is_what_lies_around_all_its_turns():
    """A nested chat is one of its own; spans that lie in each other, too."""
    run = RunBuilder()
    run.shown("lead", span="t1", parent="root", kind="agent").shown("lead", span="m1", parent="t1")
    run.shown("coder", span="t2", parent="tool", kind="agent").shown(
        "coder", span="m2", parent="t2"
    )
    run.shown("a", span="x", parent="y").shown("b", span="y", parent="x")
    found = conversations(run.build())
    assert {span: found[span] for span in ("t1", "m1", "t2", "m2")} == {
        "t1": "root",
        "m1": "root",
        "t2": "tool",
        "m2": "tool",
    }
    assert found["x"] == found["y"]


def spans_together(run):
    return [" ".join(call.span_id for call in group) for group in shown_together(run.build())]


def test_what_was_shown_is_compared_with_what_it_should_have_grown_from():
    """An agent's turns, the calls of a turn, and the openings of turns that saw more."""
    run = RunBuilder().says("lead", "One.").says("coder", "Two.").says("lead", "Three.")
    run.shown("coder", 0, kind="agent", span="t1").shown("coder", 0, span="m1", parent="t1")
    run.shown("coder", 0, 1, span="m2", parent="t1")
    run.shown("coder", 0, 1, 2, kind="agent", span="t2").shown(
        "coder", 0, 1, span="m3", parent="t2"
    )
    run.shown("coder", 1, kind="agent", span="t3").shown("coder", 1, span="m4", parent="t3")
    run.shown("", 0, span="m5", parent="t3").shown("lead", 0, span="m6", parent="elsewhere")
    assert spans_together(run) == ["t1 t2 t3", "m1 m2", "m1 m3", "m3", "m4", "m6"]


def test_what_was_shown_in_another_conversation_is_compared_with_nothing():
    """Turns of other conversations are not compared, nor a turn that saw just the first one's input."""
    run = RunBuilder().says("lead", "One.").says("coder", "Two.")
    for place, conversation in enumerate(("root", "root", "tool")):
        turn = f"t{place}"
        run.shown("coder", 0, 1, kind="agent", span=turn, parent=conversation)
        run.shown("coder", 0, 1, span=f"m{place}", parent=turn)
    assert spans_together(run) == ["t0 t1", "m0", "m0", "m1", "t2", "m2", "m2"]


def test_what_was_shown_as_one_text():
    run = RunBuilder().says("a", "One  and\nTWO.").says("b", "Three.").build()
    assert folded(run, ["m0", "m9", "m1"]) == "one and two.\nthree."


# -- merging --------------------------------------------------------------------------------------


def mode(probability, evidence=Evidence.HEURISTIC, *, steps=(1,), quotes=(), reason="Why."):
    return ModeFinding(
        code="1.3",
        probability=probability,
        evidence=evidence,
        reason=reason,
        steps=steps,
        quotes=quotes,
    )


def test_findings_of_one_mode_become_one():
    """The strongest's probability, everybody's steps, twelve quotes, three reasons."""
    quotes = [tuple(f"{name}{number}" for number in range(5)) for name in "abcd"]
    found = _merge(
        [
            mode(0.3, steps=(9, 1), quotes=quotes[0], reason="C."),
            mode(0.9, steps=(4,), quotes=quotes[1], reason="A."),
            mode(0.5, steps=(4, 2), quotes=quotes[2], reason="B."),
            mode(0.2, steps=(7,), quotes=quotes[3], reason="D."),
        ]
    )
    assert (found.probability, found.steps, found.reason) == (0.9, (1, 2, 4, 7, 9), "A. B. C.")
    assert found.quotes == (quotes[1] + quotes[2] + quotes[0])[:12]


def test_what_spans_prove_is_shown_without_what_texts_suggest():
    """Exact evidence counts however likely the heuristic one is; equal reasons are given once."""
    proven = mode(0.4, Evidence.EXACT, steps=(3,))
    assert _merge([mode(0.9), proven]) == proven
    both = _merge([mode(0.9), proven, mode(0.6, Evidence.EXACT, steps=(5,))])
    assert (both.probability, both.steps, both.reason) == (0.6, (3, 5), "Why.")


def test_a_thousand_steps_are_listed():
    """The reason says how many there are."""
    whole = mode(0.5, steps=tuple(range(1000)))
    assert _shortened(whole) == whole
    found = _shortened(mode(0.5, steps=tuple(range(1234))))
    assert found.steps == tuple(range(1000))
    assert found.reason == "Why. The first 1,000 of 1,234 such steps are listed."


@pytest.mark.parametrize(
    ("outcome", "probability", "found"),
    [("failure", 0.3, 0.3), ("", 0.3, 0.3), ("success", 0.5, 0.25), ("success", 0.4, 0.2)],
)
def test_a_success_halves_what_is_found_and_leaves_out_the_weak(
    monkeypatch, outcome, probability, found
):
    """A finding counts from a probability of 0.2 on."""
    monkeypatch.setattr(module, "RULES", (lambda _: [mode(probability)], lambda _: []))
    (told,) = find_modes(Trajectory(trace_id="1", steps=(), outcome=outcome))
    assert told.probability == found
    monkeypatch.setattr(module, "RULES", (lambda _: [mode(0.39)],))
    weak = find_modes(Trajectory(trace_id="1", steps=(), outcome=outcome))
    assert bool(weak) is (outcome != "success")


def test_the_likeliest_mode_comes_first_and_equal_ones_by_code(monkeypatch):
    """The order makes a verdict the same each time."""
    made = [
        ModeFinding(code=code, probability=probability, evidence=Evidence.EXACT)
        for code, probability in (("3.2", 0.5), ("2.1", 0.9), ("1.1", 0.5))
    ]
    monkeypatch.setattr(module, "RULES", tuple(lambda _, each=each: [each] for each in made))
    found = find_modes(Trajectory(trace_id="1", steps=()))
    assert [each.code for each in found] == ["2.1", "1.1", "3.2"]


@pytest.mark.parametrize(
    ("code", "run"),
    [
        ("2.2", lambda run: run.says("a", "I will assume a price. I assume it is so.")),
        ("3.1", lambda run: run.says("a", "I could not find the price.")),
        ("3.1", lambda run: run.calls("a", "pages", {"page": 1}, '{"page": 1, "pages": 3}')),
        ("3.1", lambda run: run.says("a", "Let me check the price.")),
        ("3.2", lambda run: run.says("a", "```\na = 1\nb = 2\nc = 3\n```").says("b", "Done.")),
        ("3.2", lambda run: run.calls("a", "price", {}, "118").says("a", "It costs 5234.")),
        ("2.6", lambda run: run.calls("a", "price", {}, "118").says("a", "It costs 523.")),
        ("2.4", lambda run: run.calls("a", "price", {}, "118").says("a", "Done.", to="b")),
    ],
)
def test_being_told_of_a_failure_shows_no_mode(code, run):
    """An explanation of a failure is possible at most."""
    found = find_modes(run(RunBuilder(outcome="failure").asks()).build())
    assert [mode.code for mode in found if mode.code == code] == [code]
    assert not any(mode.is_shown for mode in found)
