"""The pages on failure modes: where they are, and which of their parts are made, not written."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from documentation.mode_examples import NO_RULE, PAIRS, picture
from documentation.rule_tables import ROOT, examined_by, overview
from judge.llm.scripted_judge import JudgeScript, judged, point, reading, with_answers

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.local.layers import judge_by_rules

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import ModeFinding

FOLDER = ROOT / "docs" / "understand" / "modes"
SECTIONS = ("Examined by", "Example", "Healthy look-alikes", "Limits")
_BLOCK = re.compile(r"^```text\n.*?^```$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)


def path_of(code: str) -> Path:
    """Return where the page on a mode is: its code and its name."""
    words = re.findall(r"[a-z]+", FAILURE_MODES[code].name.lower().replace("'s", ""))
    return FOLDER / f"{code}-{'-'.join(words)}.md"


def sections(text: str) -> dict[str, str]:
    """Split a page by its headings of the second level; the part before them has the key ""."""
    pieces = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}


def refreshed(code: str, text: str) -> str:
    """Return a page with its made parts made anew; the sentences between stay as they are."""
    pair = PAIRS[code]
    parts = sections(text)
    blocks = {
        "Example": f"```text\n{picture(pair.faulty, finding_of(code))}\n```",
        "Healthy look-alikes": f"```text\n{picture(pair.healthy, found_in(code, pair.healthy))}\n```",
    }
    for name, block in blocks.items():
        parts[name] = _BLOCK.sub(lambda _, made=block: made, parts[name], count=1)
    parts["Examined by"] = _with_table(parts["Examined by"], examined_by(code))
    return parts.pop("") + "".join(f"## {name}{body}" for name, body in parts.items())


def found_in(code: str, run: Trajectory) -> ModeFinding | None:
    """Return what the rules find of a mode in a run."""
    return next((mode for mode in judge_by_rules(run).modes if mode.code == code), None)


def finding_of(code: str) -> ModeFinding | None:
    """Return what is found in the run with the fault: by rules, or else by a scripted model."""
    pair = PAIRS[code]
    if pair.said is None:
        return found_in(code, pair.faulty)
    verdict = asyncio.run(judged(_model(code), pair.faulty)).verdict
    return next((mode for mode in verdict.modes if mode.code == code), None)


def _model(code: str) -> JudgeScript:
    """A model that reads the run and says this mode of it."""
    said = PAIRS[code].said
    assert said is not None, f"the rules say it: only {NO_RULE} need a model"
    step, reason, quote = said
    mode = {"code": code, "probability": 0.8, "steps": [step], "reason": reason, "quotes": [quote]}
    return with_answers(read=reading(point(step, quote), modes=[mode]))


def refreshed_index(text: str) -> str:
    """Return the page of all modes with its table made anew."""
    links = {
        code: f"[{code} {mode.name}]({path_of(code).name})" for code, mode in FAILURE_MODES.items()
    }
    return _with_table(text, overview(links))


def _with_table(text: str, table: str) -> str:
    """Put a table in the place of that of a text."""
    return _TABLE.sub(lambda _: f"{table}\n", text, count=1)
