"""Generates failing runs with known truth and their healthy twins, recorded as a hand-made program records itself.

A team is a TOML file: prompts of its agents, a script of a healthy run, legitimate variants, and faults. One line
of a script is a message, ``label agent > recipient: text``, or a call, ``label agent ! tool {arguments} => result``
(``=x`` for an error). Changes replace lines by their label, insert them (``label@one_before``) or delete them
(``-label``). In texts ``<a|b>`` draws one of several wordings, and ``$name:form`` is a value in a form drawn at random.
The same line of a run and of its twin is drawn alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import tomllib
from values import Values, derived, drawn, written

import mast_trace
from mast_trace.captured_spans import capture_spans
from mast_trace.messages import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace.trajectory import Trajectory

HERE = Path(__file__).parent
TEAMS = ("travel", "research", "repair", "support")
_LINE = re.compile(
    r"(?P<label>\w+)(?:@(?P<after>\w+))? (?P<agent>\w+) "
    r"(?:> (?P<to>\w+): (?P<text>.*)|! (?P<tool>\w+) (?P<arguments>\{.*\}) =(?P<sign>[>x]) (?P<result>.*))"
)
_CHOICE = re.compile(r"<([^<>]*)>")
_VALUE = re.compile(r"\$(\w+)(?::([mdn])\b)?")
_OPENINGS = ("",) * 8 + (
    "OK. ",
    "Thanks. ",
    "Hi! ",
    "Quick update: ",
    "Right, here we go. ",
    "Sure. ",
)
_ENDINGS = ("",) * 12 + (
    " Cheers!",
    " Tell me if something is unclear.",
    " That's it from me.",
    " :)",
)


@dataclass(frozen=True)
class Line:
    """A line of a script: a message to ``to``, or a call of ``tool``."""

    label: str
    after: str
    agent: str
    to: str
    text: str
    tool: str
    arguments: str
    failed: bool


@dataclass(frozen=True)
class Case:
    """A failing run and its twin.

    Attributes:
        id: team and number.
        kind: of fault.
        modes: codes of MAST.
        agent: the agent that erred, by its name in the run.
        step: index of the decisive step.
        note: one sentence.
        failing: the run, without an outcome.
        healthy: the same task without the fault.
    """

    id: str
    team: str
    kind: str
    modes: tuple[str, ...]
    agent: str
    step: int
    note: str
    failing: Trajectory
    healthy: Trajectory


@dataclass(frozen=True)
class _Setting:
    """The draws that a run and its twin share."""

    team: str
    key: str
    prompts: Mapping[str, str]
    names: Mapping[str, str]
    right: Values
    wrong: Values
    task: str


def cases(seed: int, *, by_role: bool = False) -> Iterator[Case]:
    """Yield the cases, each with its own draws, and agents under drawn names or those of their roles."""
    for team in TEAMS:
        script: dict[str, Any] = tomllib.loads((HERE / f"{team}.toml").read_text("utf-8"))
        if by_role:
            script["agents"] = {role: role for role in script["agents"]}
        for number, fault in enumerate(script["fault"], 1):
            yield _case(team, script, fault, f"{team}-{number:02d}", seed)


def _case(team: str, script: dict[str, Any], fault: dict[str, Any], name: str, seed: int) -> Case:
    key = f"{seed} {name}"
    draw = Random(key)
    values = drawn(script["values"], draw)
    right = derived(team, values)
    changes = [_changes(fault.get(each, "")) for each in ("bad", "good")]
    touched = {each for lines in changes for line in lines for each in (line.label, line.after)}
    touched |= {fault["at"].partition("#")[0], *fault.get("touches", ())}
    fitting = [
        lines
        for lines in map(_changes, script["variants"])
        if touched.isdisjoint({each for line in lines for each in (line.label, line.after)} - {""})
    ]
    variant = draw.choice([[], *fitting, *fitting]) if fitting else []
    base = _changed(_changes(script["run"]), variant)
    swapped = {each: right[by] for each, by in fault.get("swap", {}).items()}
    wrong = derived(team, values | swapped) | swapped
    setting = _Setting(
        team,
        key,
        script["prompts"],
        {role: _drawn_text(name, values, draw) for role, name in script["agents"].items()},
        right=right,
        wrong=wrong,
        task=_drawn_text(fault.get("task", script["task"]), right, draw),
    )
    bad = _repeated(_changed(base, changes[0]), fault.get("repeat", []), fault.get("times", 1))
    label, _, occurrence = fault["at"].partition("#")
    step = [n for n, line in enumerate(bad) if line.label == label][int(occurrence or 1) - 1]
    return Case(
        name,
        team,
        fault["kind"],
        tuple(fault["modes"]),
        setting.names[bad[step].agent],
        step,
        fault["note"],
        _recorded(setting, bad, step, fault.get("stopped", ""), fault.get("forgets", "")),
        _recorded(setting, _changed(base, changes[1])),
    )


def _changes(text: str) -> list[Line]:
    lines = []
    for row in filter(None, map(str.strip, text.splitlines())):
        if row.startswith("-"):
            lines += [Line(label, "", "", "", "", "", "", False) for label in row[1:].split()]
            continue
        found = _LINE.fullmatch(row)
        if found is None:
            raise ValueError(f"This is no line of a script: {row}")
        part = {name: value or "" for name, value in found.groupdict().items()}
        said = part["text"] + part["result"]
        begin = (part["label"], part["after"], part["agent"], part["to"], said, part["tool"])
        lines.append(Line(*begin, part["arguments"], part["sign"] == "x"))
    return lines


def _changed(script: Sequence[Line], changes: Sequence[Line]) -> list[Line]:
    lines = list(script)
    for change in changes:
        place = next((n for n, line in enumerate(lines) if line.label == change.label), None)
        if change.after:
            after = next(n for n, line in enumerate(lines) if line.label == change.after)
            lines.insert(after + 1, change)
        elif place is None:
            raise ValueError(f"The script has no line {change.label}.")
        elif change.agent:
            lines[place] = change
        else:
            del lines[place]
    return lines


def _repeated(lines: list[Line], labels: Sequence[str], times: int) -> list[Line]:
    """Return the lines with those of these labels, side by side, several times."""
    if not labels:
        return lines
    block = [line for line in lines if line.label in labels]
    first = lines.index(block[0])
    return lines[:first] + block * times + lines[first + len(block) :]


def _drawn_text(text: str, values: Values, draw: Random) -> str:
    while _CHOICE.search(text):
        text = _CHOICE.sub(lambda found: draw.choice(found[1].split("|")), text)
    currency = str(values["cur"])
    return _VALUE.sub(lambda found: written(values[found[1]], found[2] or "", currency, draw), text)


def _recorded(
    setting: _Setting,
    lines: Sequence[Line],
    wrong_from: int = -1,
    stopped: str = "",
    forgets: str = "",
) -> Trajectory:
    """Run the script under the SDK and read the run."""
    seen: dict[str, list[Message]] = {}
    first = lines[0].agent
    with capture_spans(frameworks=[], capture_content="full", service_name=setting.team) as spans:
        with mast_trace.run(setting.team, input=setting.task) as run:
            for turn in _turns(lines):
                agent = lines[turn[0]].agent
                known = [] if lines[turn[0]].label == forgets else seen.get(agent, [])
                asked = (
                    [Message(setting.task, "user")] if agent == first and agent != "user" else []
                )
                prompt = _drawn_text(
                    setting.prompts.get(agent, ""), setting.right, Random(setting.key + agent)
                )
                shown = [Message(prompt, "system"), *asked, *known]
                with mast_trace.agent(setting.names[agent], input=shown):
                    for number in turn:
                        values = setting.wrong if 0 <= wrong_from <= number else setting.right
                        _acted(setting, lines, number, values, seen)
            run.stopped(stopped or "completed")
        (trajectory,) = spans.trajectories()
    assert len(trajectory.steps) == len(lines), (len(trajectory.steps), len(lines))
    return replace(trajectory, outcome="")


def _turns(lines: Sequence[Line]) -> Iterator[list[int]]:
    turn: list[int] = []
    for number, line in enumerate(lines):
        if turn and (lines[turn[0]].agent != line.agent or lines[turn[-1]].to):
            yield turn
            turn = []
        turn.append(number)
    yield turn


def _acted(
    setting: _Setting,
    lines: Sequence[Line],
    number: int,
    values: Values,
    seen: dict[str, list[Message]],
) -> None:
    line, names = lines[number], setting.names
    # A call that is made again is made alike; a sentence that is said again is not.
    again = 0 if line.tool else sum(each.label == line.label for each in lines[:number])
    draw = Random(f"{setting.key} {line.label} {again}")
    if line.tool:
        arguments = _drawn_text(line.arguments, values, draw)
        result = _drawn_text(line.text, values, draw).replace("\\n", "\n")
        with mast_trace.tool(line.tool, arguments) as call:
            if line.failed:
                call.fail(result)
            else:
                call.result(result)
        seen.setdefault(line.agent, []).append(Message(result, "tool"))
        return
    text = _drawn_text(line.text, values, draw)
    if line.to != "user":
        text = draw.choice(_OPENINGS) + text + draw.choice(_ENDINGS)
    everybody = [role for role in names if role not in (line.agent, "user")]
    to = everybody if line.to == "all" else [line.to]
    identity = mast_trace.message(names[line.agent], [names[each] for each in to], text)
    for role in (line.agent, *to):
        said = "assistant" if role == line.agent else "user"
        seen.setdefault(role, []).append(Message(text, said, id=identity))
