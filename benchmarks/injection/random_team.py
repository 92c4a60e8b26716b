"""A team of five agents that err, notice and repair with known chances, without a model and without processes.

A lead hands over to a clerk, who counts two shelves, a planner, who computes the order, a checker, who has it checked
by a tool, and a buyer, who asks for the supplier and orders. Every agent answers from the messages that it is shown
alone, so that what is changed in one place reaches the others, or is noticed. Each answer makes one step.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mast_trace.messages import Message, ToolCall, parsed
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

NEEDED, BUDGET = 40, 90
MOST_ANSWERS = 30
PROMPTS = {
    "lead": "You are the lead. Hand over to clerk, planner, checker and buyer in turn.",
    "clerk": "You are the clerk. Count what is in stock.",
    "planner": "You are the planner. Compute what is missing.",
    "checker": "You are the checker. Verify the plan with your tool.",
    "buyer": "You are the buyer. Order what the plan says.",
}
_PRICES = {"cheap": 2, "near": 3}
_ORDER = re.compile(r"order (\d+) pieces")
_COUNTED = re.compile(r"There are (\d+) pieces on shelf (\d+)")


@dataclass(frozen=True)
class Habits:
    """Chances by which the agents act.

    Attributes:
        errs: that an answer names a wrong number.
        plans_wrongly: that a plan is wrong; the checker's tool finds it.
        notices: that a failed, empty or odd result, or a missing message, is noticed and made good by its reader.
        asks_again: that the lead repeats an order that was not carried out.
    """

    errs: float
    plans_wrongly: float
    notices: float
    asks_again: float


@dataclass(frozen=True)
class Task:
    """A task, and what is on the shelves: number of pieces by shelf."""

    item: str
    stock: Mapping[int, int]

    @property
    def text(self) -> str:
        """The text that the team is given."""
        first, second = self.stock
        return (
            f"Order the {self.item} that are missing to have {NEEDED} pieces. They are on the shelves {first} and "
            f"{second}. Spend at most {BUDGET} EUR."
        )

    @property
    def right(self) -> str:
        """The answer of a run that succeeds."""
        missing = NEEDED - sum(self.stock.values())
        return f"We order {missing} pieces to have {NEEDED} pieces, for {missing * _PRICES['cheap']} EUR."


@dataclass(frozen=True)
class Change:
    """Answers that a replay serves, and the changes that it makes.

    Attributes:
        answers: answers that are served, the first ones of the run.
        requests: changes of the messages that a model is shown, by number of the answer.
        results: changed tool results by number of the answer that calls; the flag marks an exception.
    """

    answers: Sequence[Message] = ()
    requests: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    results: Mapping[int, tuple[str, bool]] = field(default_factory=dict)


@dataclass
class Session:
    """One run of the team.

    Attributes:
        answers: its answers.
        steps: its steps, one for each answer.
        calls: its model calls.
        texts: its messages by id.
        asked: hash of the requests that were not served, with a number drawn for each: models word alike seldom.
    """

    task: Task
    habits: Habits
    rng: Random
    change: Change = field(default_factory=Change)
    answers: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    calls: list[Invocation] = field(default_factory=list)
    texts: dict[str, Message] = field(default_factory=dict)
    asked: Any = field(default_factory=hashlib.sha1)
    _shown: dict[str, list[str]] = field(default_factory=dict)

    def run(self) -> bool:
        """Run the team to its end; return whether it succeeds."""
        for agent, prompt in PROMPTS.items():
            self._shown[agent] = [
                self._put(f"prompt-{agent}", Message(prompt, "system")),
                self._put("task", Message(self.task.text, "user")),
            ]
        speaker, asker = "lead", "lead"
        while len(self.answers) < MOST_ANSWERS:
            said = self._ask(speaker)
            if said.tool_calls:
                speaker = self._call(speaker, said.tool_calls[0])
            else:
                if "TERMINATE" in said.content:
                    return self.task.right in said.content
                speaker, asker = ("lead", speaker) if speaker != "lead" else (asker, "lead")
        return False

    def trajectory(self, trace_id: str, *, success: bool) -> Trajectory:
        """Return the run as it is recorded."""
        return Trajectory(
            trace_id=trace_id,
            steps=tuple(self.steps),
            invocations=tuple(self.calls),
            texts=dict(self.texts),
            task=self.task.text,
            outcome="success" if success else "failure",
        )

    def _put(self, name: str, message: Message) -> str:
        self.texts[name] = message
        return name

    def _ask(self, agent: str) -> Message:
        number = len(self.answers)
        shown = list(self._shown[agent])
        if number < len(self.change.answers):
            said = self.change.answers[number]
        else:
            view = _changed([self.texts[name] for name in shown], self.change.requests.get(number))
            text = "\n".join(f"{each.role} {each.content} {each.tool_calls}" for each in view)
            self.asked.update(f"{text} {self.rng.random()}".encode())
            said = answer(view, self.task, self.habits, self.rng)
        self.answers.append(said)
        name = self._put(f"answer-{number}", said)
        roles = tuple(self.texts[each].role for each in shown)
        length = sum(len(self.texts[each].content) for each in shown)
        span, begin = f"{number + 1:016x}", 20 * number
        self.calls.append(
            Invocation(
                *("model", agent, span, "", begin, begin + 5, tuple(shown), roles, length),
                *(name, said.content),
                model="policy",
            )
        )
        self._shown[agent].append(name)
        if not said.tool_calls:
            heard = self._put(f"heard-{number}", Message(said.content, "user", name=agent))
            for other in PROMPTS:
                if other != agent:
                    self._shown[other].append(heard)
            self._step(StepKind.MESSAGE, agent, said.content, message_id=name, span_id=span)
        return said

    def _call(self, agent: str, call: ToolCall) -> str:
        """Execute a tool call; return who speaks next."""
        number, given = len(self.answers) - 1, parsed(call.arguments) or {}
        changed = self.change.results.get(number)
        target = call.name.removeprefix("transfer_to_") if call.name.startswith("transfer") else ""
        text, raised = changed or (
            ("Transferred.", False) if target else self._result(call.name, given)
        )
        self._step(
            *(StepKind.TOOL, agent, "" if raised else text),
            tool=call.name,
            arguments=str(call.text),
            call_id=call.id or "",
            handoff_to=target,
            requested_by=agent,
            span_id=f"{number + 4096:016x}",
            error=text if raised else None,
        )
        name = self._put(f"result-{number}", Message(text, "tool", tool_call_id=call.id))
        self._shown[agent].append(name)
        if target:
            told = Message(str(given.get("task", "")), "user", name=agent)
            self._shown[target].append(self._put(f"told-{number}", told))
        return target or agent

    def _result(self, tool: str, given: Mapping[str, Any]) -> tuple[str, bool]:
        if tool == "count_stock":
            shelf = int(given["shelf"])
            return f"Shelf {shelf}: {self.task.stock.get(shelf, 0)} pieces.", False
        if tool == "check_order":
            stock, pieces, needed = (int(given[name]) for name in ("stock", "pieces", "needed"))
            if stock + pieces == needed:
                return f"passed: {stock} and {pieces} make {needed}", False
            return f"failed: {stock} and {pieces} make {stock + pieces}, not {needed}", False
        price = _PRICES.get(str(given.get("supplier")), 4)
        return f"The {given.get('supplier')} supplier takes {price} EUR a piece.", False

    def _step(self, kind: StepKind, agent: str, text: str, **more: Any) -> None:
        index = len(self.steps)
        self.steps.append(
            Step(index, kind, agent, text, start=20 * index + 6, end=20 * index + 9, **more)
        )


def _changed(view: list[Message], change: Mapping[str, Any] | None) -> list[Message]:
    """Return the messages as an operator of requests changes them; see `OtherRequest`."""
    if not change:
        return view
    head, body = view[:2], view[2:]
    if change.get("system"):
        head = [Message(change["system"], "system"), *head[1:]]
    if change.get("restart"):
        body = []
    body = body[int(change.get("oldest") or 0) :]
    if change.get("latest"):
        body = body[: -int(change["latest"])]
    if sent := change.get("sent"):
        body = [
            dataclasses.replace(each, content=each.content.replace(sent, change["received"]))
            if each.role == "user"
            else each
            for each in body
        ]
    return [*head, *body]


def answer(view: Sequence[Message], task: Task, habits: Habits, rng: Random) -> Message:
    """Return the answer of the agent that the first message names, to the others."""
    role = next(name for name in PROMPTS if f"You are the {name}." in view[0].content)
    return _ROLES[role](_View(view, task, habits, rng))


@dataclass(frozen=True)
class _View:
    """Messages as an agent reads them."""

    messages: Sequence[Message]
    task: Task
    habits: Habits
    rng: Random

    def by_chance(self, chance: float) -> bool:
        return self.rng.random() < chance

    def number(self, right: int) -> int:
        """Return a number, or by chance a wrong one."""
        return (
            right + self.rng.choice((-10, -1, 1, 2, 9))
            if self.by_chance(self.habits.errs)
            else right
        )

    @property
    def heard(self) -> list[Message]:
        """The messages of others, the task excluded."""
        return [each for each in self.messages[2:] if each.role == "user"]

    @property
    def last(self) -> str:
        return self.heard[-1].content if self.heard else ""

    def found(self, pattern: re.Pattern[str], *names: str) -> int | None:
        """Return the number of the last message of these agents that holds the pattern."""
        for each in reversed(self.heard):
            if each.name in names and (match := pattern.search(each.content)):
                return int(match[1])
        return None

    @property
    def counted(self) -> dict[int, int]:
        """Return the pieces by shelf in the clerk's last report."""
        for each in reversed(self.heard):
            if each.name == "clerk" and (told := _COUNTED.findall(each.content)):
                return {int(shelf): int(pieces) for pieces, shelf in told}
        return {}

    def results(self, tool: str) -> list[tuple[Mapping[str, Any], str]]:
        """Return arguments and results of the agent's own calls of a tool, oldest first."""
        texts = {each.tool_call_id: each.content for each in self.messages if each.role == "tool"}
        return [
            (parsed(call.arguments) or {}, texts.get(call.id, ""))
            for each in self.messages
            for call in each.tool_calls
            if call.name == tool
        ]

    def call(self, name: str, **arguments: Any) -> Message:
        identity = f"c{self.rng.randrange(16**8):08x}"
        return Message("", "assistant", tool_calls=(ToolCall(name, arguments, identity),))

    def say(self, text: str) -> Message:
        return Message(text, "assistant")

    def give_up(self) -> Message:
        return self.say("This leads to nothing, we order nothing. TERMINATE")


def _lead(view: _View) -> Message:
    said = [each for each in view.heard if each.name != "lead"]
    last = said[-1] if said else None
    if last is not None and last.content.rstrip().endswith("?"):
        return view.say("Take the cheap supplier.")
    orders = [call.name for each in view.messages for call in each.tool_calls]
    if last is not None and last.name == "buyer" and _ORDER.search(last.content):
        if view.by_chance(0.4):
            return view.call(
                "transfer_to_planner", task=f"Plan once more, to have {NEEDED} pieces."
            )
        return view.say(f"Then this is it. {last.content.splitlines()[0]} TERMINATE")
    plan = view.found(_ORDER, "planner")
    checked = next(
        (each.content for each in reversed(said) if each.name in {"checker", "planner"}), ""
    )
    if not view.counted or (last is not None and "not known" in last.content):
        first, second = view.task.stock
        step = view.call(
            "transfer_to_clerk",
            task=f"Count the {view.task.item} on the shelves {first} and {second}.",
        )
    elif plan is None or "wrong" in checked:
        step = view.call("transfer_to_planner", task=f"Plan an order to have {NEEDED} pieces.")
    elif "Approved" not in checked and "confirm" not in checked and "right" not in checked:
        step = view.call("transfer_to_checker", task=f"Check the order of {plan} pieces.")
    else:
        step = view.call("transfer_to_buyer", task=f"Please order {plan} pieces.")
    again = orders.count(step.tool_calls[0].name) and "wrong" not in checked
    return view.give_up() if again and not view.by_chance(view.habits.asks_again) else step


def _clerk(view: _View) -> Message:
    asked = re.search(r"shelves (\d+) and (\d+)", view.last) or re.search(
        r"shelves (\d+) and (\d+)", view.messages[1].content
    )
    assert asked is not None
    found: dict[int, int] = {}
    results = view.results("count_stock")
    for given, text in results:
        match = re.search(r"Shelf (\d+): (\d+)", text)
        if match and int(match[1]) == given.get("shelf"):
            found[int(match[1])] = int(match[2])
        elif match and not view.by_chance(view.habits.notices):
            found.setdefault(int(given.get("shelf") or 0), int(match[2]))
    for shelf in (int(asked[1]), int(asked[2])):
        tried = sum(given.get("shelf") == shelf for given, _ in results)
        first = tried == 0 and len(results) < 2
        if shelf not in found and (first or (tried < 3 and view.by_chance(view.habits.notices))):
            return view.call("count_stock", shelf=shelf)
        found.setdefault(shelf, 0)
    read = {shelf: view.number(pieces) for shelf, pieces in found.items()}
    told = " ".join(
        f"There are {pieces} pieces on shelf {shelf}." for shelf, pieces in read.items()
    )
    return view.say(f"I have counted. {told}")


def _planner(view: _View) -> Message:
    if set(view.task.stock) - set(view.counted) and view.by_chance(view.habits.notices):
        return view.say("The stock is not known to me, so I have no plan.")
    total = sum(view.counted.values())
    corrected = "wrong" in view.last or any("wrong" in each.content for each in view.heard[-3:])
    wrong = not corrected and view.by_chance(view.habits.plans_wrongly)
    pieces = view.number(NEEDED - total) + (3 if wrong else 0)
    return view.say(
        f"With {total} pieces in stock we order {pieces} pieces to have {NEEDED} pieces. "
        f"The budget is {BUDGET} EUR."
    )


def _checker(view: _View) -> Message:
    results = view.results("check_order")
    plan, stock = view.found(_ORDER, "planner"), sum(view.counted.values())
    done = sum(each.role == "assistant" and not each.tool_calls for each in view.messages)
    fresh = bool(results) and view.messages[-1].role == "tool"
    if plan is None:
        return view.say("There is no plan that I could check.")
    if not fresh:
        named = re.search(
            r"to have (\d+) pieces",
            next((each.content for each in reversed(view.heard) if each.name == "planner"), ""),
        )
        needed = int(named[1]) if named and view.by_chance(0.7) else NEEDED
        stock = stock if view.counted else NEEDED - plan
        return view.call("check_order", stock=stock, pieces=view.number(plan), needed=needed)
    given, text = results[-1]
    if "failed" in text:
        return view.say(f"The order is wrong, the tool says {text}.")
    if "passed" in text or text == "true" or text.startswith("ok"):
        return view.say(f"The order of {plan} pieces is right. Approved.")
    if len(results) < done + 4 and view.by_chance(view.habits.notices):
        return view.call("check_order", **given)
    return view.say(f"The order of {plan} pieces looks right. Approved.")


def _buyer(view: _View) -> Message:
    told = re.search(r"order (\d+) pieces", view.last)
    plan = int(told[1]) if told else view.found(_ORDER, "planner")
    if plan is None:
        if view.by_chance(view.habits.notices):
            return view.say("This is not my task, there is no plan.")
        plan = NEEDED
    chosen = any("cheap supplier" in each.content for each in view.heard)
    asked = any(each.role == "assistant" and "?" in each.content for each in view.messages)
    prices = [
        (given, int(match[1]))
        for given, text in view.results("get_price")
        if (match := re.search(r"takes (\d+) EUR", text))
    ]
    if not prices:
        tried = len(view.results("get_price"))
        if not chosen and not tried and (not asked or view.by_chance(view.habits.notices)):
            own = [each for each in view.messages if each.role == "assistant"]
            if not own or view.by_chance(view.habits.notices):
                return view.say("Which supplier do you want, the near or the cheap one?")
        if not tried or (tried < 3 and view.by_chance(view.habits.notices)):
            supplier = "cheap" if chosen or view.by_chance(0.3) else "near"
            return view.call("get_price", supplier=supplier)
    price = prices[-1][1] if prices else 4
    cost = view.number(plan * price)
    return view.say(
        f"The order is made. We order {view.number(plan)} pieces to have {NEEDED} pieces, for {cost} EUR. TERMINATE"
    )


_ROLES: dict[str, Callable[[_View], Message]] = {
    "lead": _lead,
    "clerk": _clerk,
    "planner": _planner,
    "checker": _checker,
    "buyer": _buyer,
}
