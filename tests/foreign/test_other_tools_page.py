"""The page on frameworks that trace themselves shows the recordings' versions and facts."""

from __future__ import annotations

import re
from pathlib import Path

from record import EXAMPLES, OLDEST
from test_foreign import RECORDED, largest_trace, spans_of

from mast_trace.trajectory import read_trajectory
from mast_trace_dashboards.senders import LACKS, held

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "other-tools.md"
PROGRAMS = ROOT / "examples" / "foreign"
WORDS = {True: "yes", False: "no", None: "-"}


def facts(recording: str) -> str:
    found = held(read_trajectory(largest_trace(recording)))
    return " | ".join(WORDS[found[fact]] for fact in LACKS)


def table() -> list[str]:
    """The rows of what was recorded, and of what is read from it."""
    rows = [
        f"| recording | made with | {' | '.join(LACKS)} |",
        "|---|---|" + "---|" * len(LACKS),
    ]
    for name in sorted(EXAMPLES):
        (program,) = PROGRAMS.glob(f"{name.replace('-', '_')}_parcel.*")
        packages = ", ".join(f"`{package}`" for package in EXAMPLES[name][:-1])
        if name in OLDEST:
            packages += f"; alike `{OLDEST[name][0][0]}`"
        link = f"[{name}](../../examples/foreign/{program.name})"
        rows.append(f"| {link} | {packages} | {facts(f'examples/{name}-posted')} |")
    for path in sorted([*RECORDED.glob("*.json"), *RECORDED.glob("other/*.json")]):
        if path.stem.startswith(tuple(EXAMPLES)):
            continue
        recording = str(path.relative_to(RECORDED).with_suffix(""))
        scopes = {scope.partition(".")[0]: scope for scope in _scopes(recording)}
        told = ", ".join(f"`{scope}`" for scope in sorted(scopes.values()))
        rows.append(f"| {path.stem} | {told} | {facts(recording)} |")
    return rows


def _scopes(recording: str) -> list[str]:
    spans = [span for span in spans_of(recording, as_text=False) if span.operation]
    return sorted({span.scope for span in spans})


def test_the_table_is_that_of_the_recordings() -> None:
    assert "\n".join(["", *table(), ""]) in PAGE.read_text("utf-8")


def test_the_lines_to_add_stand_in_the_programs() -> None:
    text = PAGE.read_text("utf-8").split("## OpenAI", 1)[1]
    programs = "".join(path.read_text() for path in PROGRAMS.glob("*_parcel.*"))
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        assert [line for line in block.splitlines() if line not in programs.splitlines()] == []
    for line in re.findall(r"^`([^`]{40,}?)`[ .]", text, re.MULTILINE):
        assert line in programs
