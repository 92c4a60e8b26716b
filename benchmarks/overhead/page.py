"""Writes the tables of ``README.md`` from ``results.json`` and ``instructions.json``.

::

    python benchmarks/overhead/page.py
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from peers import PEERS  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = HERE / "README.md"
RESULTS = HERE / "results.json"
INSTRUCTIONS = HERE / "instructions.json"
HEAD = (
    "| instrumentation | CPU a step, us | times the floor | wall a step, us | peak memory, MiB | sent a run, bytes | records |",
    "|---|---|---|---|---|---|---|",
)
HEAD_OF_INSTRUCTIONS = (
    "| framework | instrumentation | thousand instructions a step | times the floor | records |",
    "|---|---|---|---|---|",
)
FRAMEWORKS = {
    "langgraph_supervisor": "LangGraph 1.2",
    "crewai_delegation": "CrewAI 1.15",
    "ag2_workflow": "AG2 1.2",
    "autogen_group": "AG2 classic 0.14",
    "metagpt_team": "MetaGPT 0.8",
}
FLOORS = ("floor", "floor in place")
RECORDS = {
    "langgraph": {
        "openinference": "no calls of tools that do not exist",
        "openllmetry": "likewise",
        "openlit": "likewise, hardly any sender",
    },
    "crewai": {
        "openinference": "no messages, tools under the wrong agent",
        "openinference, listener": "no messages",
        "openllmetry": "no messages, no tools",
        "openlit": "no messages, a sixth of the tools",
        "agentops": "neither models nor tools",
    },
    "autogen": {
        "openinference": "no calls of the model",
        "openinference, with OpenAI's": "no hand-offs, tools under the wrong agent",
        "openlit": "no tools",
        "agentops": "each message once for each delivery",
    },
    "ag2": {},
    "metagpt": {},
}
"""Short descriptions of the data that each peer records, from the tables of ``../coverage``."""


def marks(table: str) -> tuple[str, str]:
    """Return the lines between which a table stands on the page: a program's, or that of instructions."""
    return f"<!-- {table} -->\n", f"<!-- end of {table} -->\n"


def write(tables: Mapping[str, str]) -> None:
    """Put the tables into the page."""
    page = PAGE.read_text()
    for name, text in tables.items():
        begin, end = marks(name)
        before, _, rest = page.partition(begin)
        page = before + begin + text + end + rest.partition(end)[2]
    PAGE.write_text(page)


def instructions(counted: Mapping[str, Any]) -> str:
    """Return what was counted of all programs, in Markdown."""
    lines = [*HEAD_OF_INSTRUCTIONS]
    for program, title in FRAMEWORKS.items():
        if program not in counted:
            continue
        steps, rows = counted[program]["steps"], counted[program]["rows"]
        alone = statistics.median(rows["none"])
        lines.append(f"| {title} | none | {alone / steps / 1e3:,.0f} by itself | | |")
        # The floor comes last, as in the other tables.
        for name in sorted(rows, key=lambda name: name in FLOORS):
            if name.startswith("none"):
                continue
            compared = statistics.median(rows.get(f"none, {name}", rows["none"]))
            added = [(each - compared) / steps / 1e3 for each in rows[name]]
            ratio = (
                statistics.median(added) * 1e3 * steps / (statistics.median(rows["floor"]) - alone)
            )
            framework = program.partition("_")[0]
            lines.append(
                f"| | {label(framework, name)} | {spread(added)} | {ratio:.2f} "
                f"| {records(framework, name)} |"
            )
    return "\n".join([*lines, ""])


def table(program: str, result: dict[str, Any]) -> str:
    """Return what was measured of one program, in Markdown."""
    framework = program.partition("_")[0]
    rows = result["rows"]
    rounds = len(rows["floor"]["cpu"])
    alone = f"By itself the program uses {result['alone']:,} us of CPU a step"
    lines = [f"{alone} ({rounds} rounds of {result['runs']} runs); added to that:", "", *HEAD]
    for name, row in rows.items():
        peak = spread([value / 2**20 for value in row["peak"]])
        lines.append(
            f"| {label(framework, name)} | {spread(row['cpu'])} "
            f"| {times(row['cpu'], rows['floor']['cpu'])} | {spread(row['wall'])} | {peak} "
            f"| {statistics.median(row['sent']):,.0f} | {records(framework, name)} |"
        )
    return "\n".join([*lines, ""])


def label(framework: str, name: str) -> str:
    """Return the name of a row, a peer's with its version."""
    if name == "mast-trace":
        return "**mast-trace**"
    for peer in PEERS[framework]:
        if peer.name == name:
            tool, comma, how = name.partition(",")
            return f"{tool} {peer.packages[0].partition('==')[2]}{comma}{how}"
    return name


def records(framework: str, name: str) -> str:
    """Return what a row records, in short."""
    if name in FLOORS:
        return "what it is given"
    return RECORDS[framework].get(name, "everything")


def times(values: list[float], floor: list[float]) -> str:
    """Return the median of the rounds' ratios; a dash where the floor is lost in the noise."""
    if min(floor) <= 0:
        return "-"
    return f"{statistics.median(a / b for a, b in zip(values, floor, strict=True)):.1f}"


def spread(values: list[float]) -> str:
    """Return median, smallest and largest."""
    return f"{statistics.median(values):.0f} [{min(values):.0f} .. {max(values):.0f}]"


if __name__ == "__main__":
    measured = json.loads(RESULTS.read_text())
    tables = {program: table(program, result) for program, result in measured.items()}
    write({**tables, "instructions": instructions(json.loads(INSTRUCTIONS.read_text()))})
