"""Measures how well each rule's probability separates runs that people label with its mode from the others.

The rules get the runs without their outcome, as a judge that knows none. The area under the curve
(AUC) is the chance that a labelled run gets a higher probability than one without the label; 0.5
says nothing. With the first answer that was right or wrong as the label, the same is done for
conversations on mathematics. Results go to ``rules.json``, and into ``rules.md`` from there.

::

    MAST_TRACE_DATA=../shared/data python benchmarks/judge/rules.py
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STORED, PAGE = HERE / "rules.json", HERE / "rules.md"
FEWEST = 3
"""Number of runs with the label, or without it, below which no figure is given."""
HEAD = """# What the rules are worth

The area under the curve of each rule's probability against labels: of people, by failure mode, on MAST's first annotated
traces (weak evidence: people agreed on them with kappa 0.24, and thirteen columns of that draft are mapped to today's modes
by name), and of answers that were right or wrong, on AG2's conversations on mathematics. 0.5 says nothing. The rules were
written while these runs were looked at, so this is no score on new runs.

Made by `python benchmarks/judge/rules.py`, {date}, commit {commit}.

| rule | labels | runs | with the label | found in | AUC |
|---|---|---|---|---|---|
"""
CONTRADICTIONS = """
## What contradicts a good end

Rules that make a run suspect whose failure nobody recorded. All are heuristic: they may be wrong, and assert no decisive step. They are
silent on the healthy runs of all sets ([faults](../faults/run.py) counts what they find of generated ones); no labelled run shows them.

| mode | rule | the sentence claims | shown by | to blame | basis |
|---|---|---|---|---|---|
| 1.1 | `argument_against_task` | the argument stands in no text, and the task names another | dates, digits exchanged, the word beside the argument's name | the call | heuristic |
| 1.2 | `forbidden_action` | the call does what prompt or task rule out | negated verbs and objects, paths, values; no condition | the call | heuristic |
| 1.3 | `cycle_until_limit` | the same steps went round n times with nothing new, until the limit | agents, calls, results; no new value; the recorded end | the first step of the second round | heuristic |
| 1.3 | `repeated_act` | the call was made again after it had succeeded | equal arguments, another identifier in the result | the second call | heuristic |
| 1.4 | `began_anew` | the agent was shown nothing of the run, in which it had spoken, and asks | ids of the input | its message; the program made the input | heuristic |
| 2.2 | `took_one_of_equals` | nothing else tells the records apart, and nobody asked | records of the result | the call | heuristic |
| 2.4 | `unanswered_fact` | the task asks about it, a tool returned it, no message speaks of it | words behind "whether" | the agent's next message | heuristic |
| 2.5 | `unheard_correction` | the call carries nothing of the correction | identifiers, dates, figures; words for corrections | the call | heuristic |
| 2.6 | `swallowed_error` | the call failed for good, and the agent states what nothing holds | status of the call, values of the run, arithmetic | the message or call with the values | heuristic |
| 2.6 | `misread_date` | nothing holds the date, and the tool returned another | dates in any notation, periods of the run | the message | heuristic |
| 2.6 | `misread_flag` | the message says the opposite of the field | words of the field's name, negations | the message | heuristic |
| 3.1 | `deferred_item` | the message puts off what the task asks for, and nobody does it | words; later calls | the message | heuristic |
| 3.2 | `skipped_approval` | nobody has assented before the call | words of task or prompt, earlier messages | the call | heuristic |
| 3.2 | `claimed_act` | no call before has to do with what is said to be done | words; calls | the message | heuristic |
| 3.2 | `unused_tool` | nobody called the tool of the prompt, and nothing makes the figure | name of the tool, arithmetic | the message | heuristic |
| 3.3 | `good_word_for_bad_result` | the result says what failed, and the agent reports nothing of it | fields of the result; words of reservation | the message | heuristic |
"""


def main() -> None:
    """Measure, store, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--page", action="store_true", help="only the page, from stored results")
    if not parser.parse_args().page:
        STORED.write_text(json.dumps(measured(), indent=1) + "\n")
    PAGE.write_text(page(json.loads(STORED.read_text())))


def page(results: dict[str, Any]) -> str:
    """Return the page for stored results."""
    rows = "".join(
        f"| `{r['rule']}` | {r['labels']} | {r['runs']} | {r['positives']} | {r['found']} | "
        f"{r['auc']:.2f} |\n"
        for r in results["rows"]
    )
    return HEAD.format(**results) + rows + CONTRADICTIONS


def auc(values: Sequence[float], labels: Sequence[bool]) -> float:
    """Return the share of pairs of a labelled and an unlabelled run that are in order."""
    yes = [value for value, label in zip(values, labels, strict=True) if label]
    no = [value for value, label in zip(values, labels, strict=True) if not label]
    right = sum((a > b) + 0.5 * (a == b) for a, b in product(yes, no))
    return right / (len(yes) * len(no))


def measured() -> dict[str, Any]:
    """Apply every rule to every run."""
    from published import data_folder
    from published.mast import read_mast_v0, read_mathchat

    from mast_trace_judge.local.rules import RULES

    data = data_folder()
    labelled, solved = read_mast_v0(data), read_mathchat(data)
    rows = []
    for rule in RULES:
        found = [{f.code: f.probability for f in rule(run.trajectory)} for run in labelled]
        for code in sorted({code for one in found for code in one}):
            pairs = [
                (one.get(code, 0.0), run.modes[code])
                for one, run in zip(found, labelled, strict=True)
                if code in run.modes
            ]
            rows += _row(rule.__name__, f"{code}, people", pairs)
        outcomes = [
            (max((f.probability for f in rule(run.trajectory)), default=0.0), not run.success)
            for run in solved
        ]
        rows += _row(rule.__name__, "wrong answer, mathematics", outcomes)
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    date = dt.datetime.now(dt.timezone.utc).date().isoformat()
    return {"date": date, "commit": commit.strip(), "rows": rows}


def _row(rule: str, labels: str, pairs: Sequence[tuple[float, bool]]) -> list[dict[str, Any]]:
    positives = sum(label for _, label in pairs)
    if min(positives, len(pairs) - positives) < FEWEST or not any(value for value, _ in pairs):
        return []
    return [
        {
            "rule": rule,
            "labels": labels,
            "runs": len(pairs),
            "positives": positives,
            "found": sum(value > 0 for value, _ in pairs),
            "auc": round(auc([p for p, _ in pairs], [label for _, label in pairs]), 3),
        }
    ]


if __name__ == "__main__":
    main()
