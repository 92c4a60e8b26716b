"""Counts the tokens that a model reads to judge a labelled run, and the labelled steps that reach it.

A scripted endpoint answers as a perfect reader would: it points at the labelled step, with a passage
of it. Tokens are estimated alike for all texts (four ASCII characters each). A step is whole where
some request holds all of its text, and likewise the two steps before it, which it answers.
Results go to ``tokens.md``.

::

    MAST_TRACE_DATA=../shared/data python benchmarks/judge/tokens.py
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "examples"))

from published import data_folder  # noqa: E402
from published.who_and_when import SUBSETS, read_who_and_when  # noqa: E402
from scripted_llm import ScriptedLLM, messages_of  # noqa: E402

from mast_trace_dashboards.cli.commands.judge import unstored  # noqa: E402
from mast_trace_judge.config import JudgeConfig  # noqa: E402
from mast_trace_judge.judge import Judge  # noqa: E402
from mast_trace_judge.llm.transcript import LEFT_OUT, MARK, estimate_tokens  # noqa: E402
from mast_trace_judge.local.addressing.recognition import clean  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.study.labelled import LabelledRun

_ANSWERED = 2
_MARK = re.compile(rf"^{re.escape(MARK)}", re.MULTILINE)
HEAD = """# What a reading costs

A perfect reader, scripted, judges the failed runs of Who&When: how many tokens it is sent for each run, in how many
calls; in how many runs the labelled step and the two before it reach it whole; and in how many that step is among the places to
look at first.

Made by `python benchmarks/judge/tokens.py`, {date}, commit {commit}.

| runs | number | tokens, mean | median | most | calls | whole | looked at |
|---|---|---|---|---|---|---|---|
"""


async def measured(run: LabelledRun) -> tuple[int, int, bool, bool]:
    """Judge one run; return tokens, calls, whether the texts were whole, and the step is looked at first."""
    trajectory, label = run.trajectory, run.step
    assert label is not None
    with ScriptedLLM(perfect_reader(trajectory, label)) as server:
        config = JudgeConfig(judge_base_url=server.url, judge_api_key="k", judge_model="scripted")
        judge = Judge(config)
        verdict = await judge.judge(unstored(trajectory), trajectory)
        await judge.aclose()
        prompts = ["\n".join(m["content"] for m in messages_of(r)) for r in server.requests]
    wanted = range(max(0, label - _ANSWERED), label + 1)
    whole = all(any(is_whole(trajectory, step, prompt) for prompt in prompts) for step in wanted)
    looked = label in {place.step for place in verdict.look_first}
    return sum(map(estimate_tokens, prompts)), len(prompts), whole, looked


def is_whole(trajectory: Trajectory, index: int, prompt: str) -> bool:
    """Return whether a prompt holds all of a step's text, with the passages for which it refers to an earlier place."""
    found = re.search(rf"^\[{index}\] .*\n((?:[^\[<].*\n)*)", prompt, re.MULTILINE)
    text = clean(trajectory.steps[index].text)
    if found is None:
        return False
    if (
        same := re.search(r"^\(the same text as in step (\d+)\)$", found[1], re.MULTILINE)
    ) is not None:
        earlier = int(same[1])
        told = clean(trajectory.steps[earlier].text) == text
        return told and is_whole(trajectory, earlier, prompt)
    blocks = re.split(rf"^(?!{re.escape(MARK)}).*\n", found[1], flags=re.MULTILINE)
    return any(_written_out(_MARK.sub("", each)[:-1], text, trajectory) for each in blocks)


def _written_out(shown: str, text: str, trajectory: Trajectory) -> bool:
    """Return whether what is shown is the text, but for passages that the named places have."""
    first, *later = re.split(rf"{LEFT_OUT.pattern} ?", shown)
    at = len(first) if text.startswith(first) else -1
    for place, piece in zip(later[::2], later[1::2], strict=True):
        start = text.find(piece, at) if piece else len(text)
        step = (place or "").removeprefix("step ")
        known = trajectory.steps[int(step)].text if step.isdigit() else trajectory.task
        if not place or at < 0 or start < 0 or text[at:start] not in clean(known):
            return False
        at = start + len(piece)
    return at == len(text)


def perfect_reader(trajectory: Trajectory, label: int) -> Callable[[dict[str, Any]], str]:
    """Return an endpoint that knows the labelled step."""
    line = max(trajectory.steps[label].text.split("\n"), key=len)
    quotes = [" ".join(line.split()[:20])[:200]]
    error = {"step": label, "what": "this went wrong", "quotes": quotes}
    read = {
        "solution": "as it should be",
        "errors": [error],
        "outcome": "failure",
        "failure_probability": 0.95,
        "decisive": {
            "kind": "single",
            "reason": "this went wrong",
            "step": label,
            "quotes": quotes,
        },
        "ranking": [label],
        "confidence": 0.9,
        "modes": [],
    }

    def answer(request: dict[str, Any]) -> str:
        question = "".join(message["content"] for message in messages_of(request))
        notes = {"summary": "nothing of note", "errors": []}
        return json.dumps(notes if "This record is part" in question else read)

    return answer


async def rows(data: Path) -> str:
    """Return one row for each subset."""
    lines = ""
    for subset in SUBSETS:
        runs = [run for run in read_who_and_when(data, subset) if run.step is not None]
        tokens, calls, whole, decisive = zip(*[await measured(run) for run in runs], strict=True)
        lines += (
            f"| {subset} | {len(runs)} | {statistics.mean(tokens):,.0f} | "
            f"{statistics.median(tokens):,.0f} | {max(tokens):,} | {statistics.mean(calls):.1f} | "
            f"{sum(whole)} | {sum(decisive)} |\n"
        )
    return lines


def main() -> None:
    """Measure, and write the page."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    date = dt.datetime.now(dt.timezone.utc).date().isoformat()
    found = asyncio.run(rows(data_folder()))
    (HERE / "tokens.md").write_text(HEAD.format(date=date, commit=commit.strip()) + found)


if __name__ == "__main__":
    main()
