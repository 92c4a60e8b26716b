"""Each operator plants its fault where it applies, and nothing elsewhere."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from mast_trace.messages import Message, ToolCall, parsed
from mast_trace.replay.recording import NotReplayable, tape_of
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_judge.planted import UNCERTAIN, certain, is_uncertain, left_out_words
from mast_trace_lab.inject.faults import Fault, chosen, faults_of, most_faults_of
from mast_trace_lab.inject.injecting import _is_replayable, _missed_by
from mast_trace_lab.inject.operators import OPERATORS
from mast_trace_lab.inject.operators.operator import NUMBER, other_number, without_a_fact
from mast_trace_lab.inject.sites import Change, OtherRequest, answers_of
from mast_trace_lab.replay.changes import intervention_of

SYSTEM = {
    "reader": "You are the reader. Report what the books say.",
    "buyer": "You are the buyer. Order what is missing.",
    "checker": "You are the checker. Verify the order with your tool.",
}


class Run:
    """Builds a recorded run call by call."""

    def __init__(self, task: str) -> None:
        self.texts: dict[str, Message] = {"task": Message(task, "user")}
        self.steps: list[Step] = []
        self.calls: list[Invocation] = []
        self._now = 0
        self._shown: dict[str, list[str]] = {}
        self.task = task

    def answer(self, agent: str, text: str, *calls: ToolCall) -> None:
        name = f"{agent}-{len(self.calls)}"
        self.texts.setdefault(f"system-{agent}", Message(SYSTEM[agent], "system"))
        shown = self._shown.setdefault(agent, [f"system-{agent}", "task"])
        roles = tuple(self.texts[each].role for each in shown)
        start, self._now = self._now, self._now + 10
        self.texts[name] = Message(text, "assistant", tool_calls=calls)
        span = f"{len(self.calls):016x}"
        length = sum(len(self.texts[each].content) for each in shown)
        self.calls.append(
            Invocation(
                *("model", agent, span, "", start, self._now),
                *(tuple(shown), roles, length, name, text),
                model="m",
            )
        )
        shown.append(name)
        if text and not calls:
            self._step(StepKind.MESSAGE, agent, text, message_id=name, span_id=span)
            for other in SYSTEM:
                if other != agent:
                    theirs = self._shown.setdefault(other, [f"system-{other}", "task"])
                    self.texts[f"{name}-heard"] = Message(text, "user", name=agent)
                    theirs.append(f"{name}-heard")

    def tool(self, agent: str, call: ToolCall, result: str, hand_off: str = "") -> None:
        self._step(
            StepKind.TOOL,
            agent,
            result,
            tool=call.name,
            arguments=str(call.text),
            call_id=call.id or "",
            handoff_to=hand_off,
            span_id=f"{len(self.steps) + 512:016x}",
        )
        name = f"result-{len(self.steps)}"
        self.texts[name] = Message(result, "tool", tool_call_id=call.id)
        self._shown[agent].append(name)

    def done(self) -> Trajectory:
        return Trajectory(
            trace_id="a" * 32,
            steps=tuple(self.steps),
            invocations=tuple(self.calls),
            texts=self.texts,
            task=self.task,
            outcome="success",
        )

    def _step(self, kind: StepKind, agent: str, text: str, **more: Any) -> None:
        start, self._now = self._now, self._now + 5
        index = len(self.steps)
        self.steps.append(Step(index, kind, agent, text, start=start, end=self._now, **more))


def long_run() -> Trajectory:
    """A run in which every operator finds a site."""
    run = Run("Order what is missing to have 40 pieces. Report the cost in EUR.")
    look = ToolCall("count_stock", {"item": "bolt", "shelf": 7}, "c1")
    run.answer("reader", "", look)
    run.tool("reader", look, "There are 12 pieces on the shelf.")
    again = ToolCall("count_stock", {"item": "bolt", "shelf": 8}, "c2")
    run.answer("reader", "", again)
    run.tool("reader", again, "There are 3 pieces on the shelf.")
    run.answer("reader", "I have read the books. There are 3 pieces on shelf 8. Together 15.")
    run.answer("buyer", "Which supplier do you want, the near or the cheap one?")
    hand = ToolCall("transfer_to_checker", {"task": "Check the order of 25 pieces"}, "c3")
    run.answer("buyer", "", hand)
    run.tool("buyer", hand, "Transferred.", hand_off="checker")
    check = ToolCall("check_order", {"pieces": 25}, "c4")
    run.answer("checker", "", check)
    run.tool("checker", check, "failed: 25 pieces cost 50 EUR, the order says 60 EUR")
    run.answer("checker", "The order is wrong: 25 pieces cost 50 EUR.")
    back = ToolCall("transfer_to_buyer", {"task": "Correct it"}, "c5")
    run.answer("checker", "", back)
    run.tool("checker", back, "Transferred.", hand_off="buyer")
    run.answer("buyer", "We order 25 pieces to have 40 pieces. They cost 50 EUR. TERMINATE")
    return run.done()


RUN = long_run()


def test_there_is_an_operator_for_each_failure_mode_and_for_the_environment() -> None:
    assert {each.mode for each in OPERATORS.values()} == {*FAILURE_MODES, ""}
    assert all(
        name == each.name and each.fault and each.certain and each.applies
        for name, each in OPERATORS.items()
    )


def test_labels_of_uncertain_operators_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {name for name, each in OPERATORS.items() if each.uncertain} == UNCERTAIN
    unsure, sure = "tool-error", "2.6-number"
    monkeypatch.setattr("mast_trace_judge.planted.UNCERTAIN", {unsure})
    assert not is_uncertain("an operator of another version")
    given = [(1, unsure), (2, sure), (3, ""), (4, unsure)]
    left, counts = certain(given, lambda each: each[1])
    assert (left, counts) == ([(2, sure), (3, "")], {unsure: 2})
    assert left_out_words(counts).startswith(
        f"2 labels of uncertain operators were left out ({unsure} 2)"
    )
    assert left_out_words({}) == ""


@pytest.mark.parametrize("name", OPERATORS)
def test_each_operator_plants_a_change_that_can_be_replayed(name: str) -> None:
    """The player accepts the change, so that it differs from what was recorded."""
    faults = list(faults_of(RUN, 1, [name]))
    assert faults
    for fault in faults:
        assert intervention_of(RUN, tape_of(RUN), fault.change.arm)
        step = RUN.steps[fault.change.step]
        assert fault.agent == step.agent
        assert fault.kept_until <= fault.change.step


def test_a_message_is_changed_where_it_arrives_first_and_its_sender_is_as_recorded() -> None:
    faults = {
        (fault.operator, fault.change.step): fault
        for seed in range(6)
        for fault in faults_of(RUN, seed, ["message-number", "message-cut"])
    }
    report = RUN.steps[2].text
    (objection,) = [each.text for each in RUN.steps if "is wrong" in each.text]
    # Buyer and checker hear the report at their first answers, the buyer hears the objection at its last one.
    assert {step for _, step in faults} == {3, 5, 8}
    for (name, step), fault in faults.items():
        change = fault.change.request
        assert change is not None
        assert (change.sent, fault.change.level) == (objection if step == 8 else report, "message")
        assert change.received != change.sent
        assert (fault.mode, fault.kept_until, OPERATORS[name].to_blame) == ("", step, "nobody")
        (asked,) = [each for each in answers_of(RUN) if each.step == step]
        assert change.sent in [message.content for message in asked.shown]
        arm = fault.change.arm
        assert arm.fix is not None
        assert (arm.operator, parsed(arm.fix.text)["received"]) == ("request", change.received)
        if name == "message-cut":
            assert len(change.received) < len(change.sent)
        else:
            assert len(NUMBER.findall(change.received)) == len(NUMBER.findall(change.sent))


def test_a_word_or_the_task_is_no_message() -> None:
    """A short answer stands in other texts by chance, and the task reaches everybody without a sender."""
    run = Run("There are 12 pieces.")
    run.answer("reader", "12")
    run.answer("buyer", "There are 12 pieces.")
    run.answer("checker", "Fine.")
    assert list(faults_of(run.done(), 1, ["message-number", "message-cut"])) == []


@pytest.mark.parametrize(
    ("level", "operator", "missed"),
    [
        ("answer", "2.6-number", ("buyer", "checker")),
        ("request", "2.6-number", ("buyer", "checker")),
        ("message", "message-number", ("reader", "buyer", "checker")),
        ("result", "tool-wrong", ("buyer", "checker", "reader")),
    ],
)
def test_who_might_have_noticed_a_fault(level: Any, operator: str, missed: tuple[str, ...]) -> None:
    run = Run("Go.")
    for agent in ("checker", "reader", "buyer", "checker", "reader"):
        run.answer(agent, "Fine.")
    fault = Fault("a" * 32, operator, Change(1, level), "reader", 1)
    assert _missed_by(fault, run.done()) == missed


def test_a_seed_decides_everything() -> None:
    first, again, other = (list(faults_of(RUN, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len({fault.id for fault in first}) == len(first)


def test_operators_take_turns() -> None:
    """The first faults are of as many operators as there are."""
    names = [fault.operator for fault in faults_of(RUN, 3)]
    assert set(names[: len(OPERATORS)]) == set(OPERATORS)


def test_a_run_without_sites_gives_no_faults() -> None:
    run = Run("Say hello.")
    run.answer("buyer", "Hello.")
    assert list(faults_of(run.done(), 1, ["2.6", "1.3", "3.2", "2.3", "tool-wrong"])) == []


def test_operators_are_chosen_by_name_or_mode() -> None:
    assert [each.name for each in chosen(["1.3", "tool-empty"])] == ["1.3-repeat", "tool-empty"]
    with pytest.raises(Exception, match=r"no operator 9\.9; there are 1\.1-unit"):
        chosen(["9.9"])


@pytest.mark.parametrize("text", ["7", "12", "1,240.00", "0.5", "99", "1000", "0"])
def test_another_number_is_another_and_written_alike(text: str) -> None:
    for seed in range(50):
        wrong = other_number(text, Random(seed))
        assert wrong != text
        assert NUMBER.fullmatch(wrong), wrong
        assert len(wrong.partition(".")[2]) == len(text.partition(".")[2])


def test_a_withheld_sentence_is_the_only_difference() -> None:
    text = "I looked. There are 12 pieces. Nothing else."
    assert without_a_fact(text, Random(1)) == "I looked. Nothing else."
    assert without_a_fact("There are 12 pieces.", Random(1)) is None
    assert without_a_fact("No numbers. None at all.", Random(1)) is None


def test_the_result_of_the_tool_that_ends_a_run_is_no_site() -> None:
    run = Run("How many pieces are there?")
    look = ToolCall("count_stock", {}, "c1")
    end = ToolCall("finish", {"answer": "There are 12."}, "c2")
    run.answer("reader", "", look)
    run.tool("reader", look, "There are 12 pieces.")
    run.answer("reader", "", end)
    run.tool("reader", end, '{"summary": "There are 12."}')
    run.answer("reader", "It is done.")
    planted = [(each.operator, each.change.step) for each in faults_of(run.done(), 1)]
    assert ("1.5-no-end", 1) in planted
    assert {step for name, step in planted if name.startswith("tool-")} == {0}


@pytest.mark.parametrize("live_tools", [("count_stock",), ("*",)])
def test_a_run_whose_tool_is_executed_live_gets_faults(live_tools: tuple[str, ...]) -> None:
    """No text stands for the tool's result: it cannot be changed, and all other sites can."""
    opaque = {step.index for step in RUN.steps if step.tool == "count_stock"}
    steps = (
        replace(step, result_type="opaque Shelf") if step.index in opaque else step
        for step in RUN.steps
    )
    run = replace(RUN, steps=tuple(steps))
    with pytest.raises(NotReplayable, match="--set live_tools=count_stock executes it"):
        next(faults_of(run, 1))
    planted = most_faults_of(run, 1, 200, live_tools=live_tools)
    assert {each.operator for each in planted} >= {"2.6-number", "3.1-later", "2.5-ignore-peer"}
    changed = {each.change.step for each in planted if each.change.level == "result"}
    assert changed
    assert not changed & opaque
    assert not _is_replayable(run, ())
    assert _is_replayable(run, live_tools)


@pytest.mark.parametrize("sent", ["", "twelve"])
def test_a_change_is_written_whole(sent: str) -> None:
    """Its id, by which an experiment goes on, is made of it."""
    request = {"system": "", "oldest": 2, "latest": 0, "restart": False}
    request |= {"sent": sent, "received": "ten"} if sent else {}
    fields = {"text": "", "calls": None, "error": "", "phrasing": 1, "phrased_by": "m"}
    change = Change(1, "request", request=OtherRequest(**request), phrasing=1, phrased_by="m")
    assert change.to_plain() == {"step": 1, "level": "request", "request": request, **fields}
