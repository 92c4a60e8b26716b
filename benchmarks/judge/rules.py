"""Measures how well each rule's probability separates runs that people label with its mode from the others.

They get runs without their outcome. The area under the curve (AUC) is the chance that a labelled run gets more than one without.

Run it by `MAST_TRACE_DATA=../shared/data python benchmarks/judge/rules.py`.
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
CLAIMS = """
## What each rule's sentence claims

A sentence claims no more than the code shows. *To blame* is the step that the finding names; where a program and no agent
did it, the sentence says so. A heuristic of a rule that only explains failures is possible at most, however probable: being told
that a run failed shows no mode. Words alone never make a finding exact (a test replaces all of them), and a sentence that denies,
doubts, quotes or supposes is none.

| mode | rule | the sentence claims | shown by | to blame | basis |
|---|---|---|---|---|---|
| 1.3 | `repeated_calls` | the agent made the call n times with the same arguments and result | calls and results compared; nothing in between could change the answer | the first of the calls | exact: record |
| 1.3 | `repeated_messages` | two messages of the agent are almost the same | character 4-grams agree to .92 | the pair | heuristic |
| 1.4 | `asked_again` | a result dropped out of the agent's input, and it made the call again | ids of the inputs, equal calls | the second call; the program cut the input | exact: record; heuristic where it is shown what it was shown first |
| 1.4 | `asks_for_what_it_had` | the question has words of a lost message | ids for the loss, four shared words | the question | heuristic |
| 1.5 | `ended_by_limit` | a limit stopped the run | the recorded end | nobody: how the run ended | exact: record |
| 1.5 | `went_on_after_signal` | steps followed the signal to end | the signal's text; recipients and parents where exact | the signal and its answers | exact, or heuristic in transcripts |
| 1.5 | `went_on_after_done` | the task was declared done n times | words | nobody: how the run went | heuristic |
| 2.1 | `lost_input` | the agent's input was cut to what it saw at first | ids of the inputs; lengths where heuristic | the agent's next step; the program cut the input | exact or heuristic |
| 2.1 | `restarted` | the run's first two messages come again; or somebody speaks of starting over | both texts compared; words alone are possible at most | the message that comes again | heuristic |
| 2.2 | `assumed_instead_of_asking` | somebody speaks of an assumption, and nobody asks | words | the message | heuristic |
| 2.4 | `withheld_findings` | no later text has a new figure or word of a result, and nobody else was shown it | figures, words, dates, rounded and derived figures; ids of the inputs | the agent's message to others | heuristic |
| 2.4 | `withheld_names` | no later text has one of a result's names | names, addresses, ids | the agent's message to others | heuristic |
| 2.5 | `never_shown` | the recipient acted, and its input never held the message | ids and texts of its inputs | the recipient's first step without it; the program made the input, the writer is not to blame | exact: record; heuristic with prompts of the program's own |
| 2.5 | `unchanged_after_correction` | the agent says almost the same again after words of correction | words, 4-grams | the second message | heuristic |
| 2.6 | `false_equation` | the stated result is not what the figures make | arithmetic on figures that the run holds; the answer repeats it | the first who states it | exact in failed runs, else heuristic |
| 2.6 | `wrong_total` | the total is no sum of the figures returned, or the average lies outside of them | arithmetic | the first who states it | heuristic |
| 2.6 | `claimed_call` | the agent says that it called a tool, and no such call is recorded before | the name as a name, and a later call of it; words where heuristic | the message | exact or heuristic |
| 2.6 | `misstated_result` | the agent states one figure where the tool returned another | same unit or words beside it, digits exchanged, no two steps of arithmetic make it, chance of such a figure at most 1 %; or the sentence gives it as the tool's | the first message with figures after the call | exact; a single wrong digit is heuristic, any other figure possible at most |
| 2.6 | `mislabelled_value` | the figure is another kind's in the result | names and figures of the result | the message | heuristic |
| 2.6 | `swapped_values` | two figures stand under each other's names | names and figures of the result | the message | heuristic |
| 2.6 | `misattributed_value` | the figure is another thing's in the result | names and figures of the result | the message | heuristic |
| 2.6 | `unfavoured_choice` | another option comes before the named one in what the task asks for | one property of one unit for all options | the answer | heuristic |
| 3.1 | `ended_with_error` | the run, or its last step, ended with an error | status of the spans | nobody: how the run ended | exact: record |
| 3.1 | `left_items_open` | planned items were open at the end | the root span's list | nobody: how the run ended | exact: record |
| 3.1 | `ended_without_answer` | the run ends on a tool's result, and no agent concludes | the last step; its span's error where exact | nobody: how the run ended | exact or heuristic |
| 3.1 | `gave_up` | the last message says that something could not be done | words | the last message | heuristic |
| 3.1 | `unkept_promise` | the last words announce work, and the agent does not act again | words; its last step | the message | heuristic |
| 3.1 | `left_pages_unread` | the tool's last result says that there is more | fields of JSON | the call | heuristic |
| 3.2 | `unapproved_act` | the call was made, and no approval is seen of those that are asked for | English sentences of task and prompt, who acted and was asked before, words of consent | the call | heuristic |
| 3.2 | `unchecked_artefact` | no tool ran and no agent named a checker spoke after the artefact | steps; names | the artefact | heuristic |
| 3.2 | `idle_checker` | a checker by its name was addressed, and no act of it is recorded | recipients, hand-overs; its name | the end | heuristic |
| 3.2 | `skipped_check` | the agent speaks of a check that is left out, and no tool ran after it | words | the message | heuristic |
| 3.2 | `unsupported_answer` | a figure of the answer stands in no result and not in the task | figures | the first who states it | heuristic |
| 3.2 | `claimed_check` | the agent says that tests were run, and no recorded tool could have | words; names of tools | the message | heuristic |
| 3.2 | `silent_checker` | a checker had n turns and said nothing | empty messages; the agent's name | its turns | heuristic |
| 3.3 | `passed_a_failure` | the agent speaks of success right after a run that failed | the span's error and the tool's name where exact; words | the message | exact or heuristic |
| 3.3 | `approved_a_contradiction` | a checker passes what a rule of 2.6 contradicts | that rule; words | the statement and the approval | heuristic |

## What contradicts a good end

Rules that make a run suspect whose failure nobody recorded; so does a slip of mode 2.6 of which its rule is sure (.8 and more) and
whose figure stands in the answer or went into it. All are heuristic: they may be wrong, and assert no decisive step. They are
silent on the healthy runs of all sets ([faults](../faults/run.py) counts what they find of generated ones). Each has a way that stays where words are nonsense
(`ignored_correction` by units alone, `misread_flag` by the field's own name alone, `misread_date` by dates in figures), but for
`acted_on_refusal`, `forbidden_action`, `excluded_source`, `claimed_act`, `passed_over_problem`, `acted_without_asking`, `done_twice`,
`left_open`, `withheld_answer` and `act_before_check`, which read English.

| mode | rule | the sentence claims | shown by | to blame | basis |
|---|---|---|---|---|---|
| 1.1 | `excluded_source` | the call is given what an earlier result says is of the kind that the task rules out | English "only" and "no" of the task; one object of a list, with the word as a value; no condition | the call | heuristic |
| 1.1 | `argument_against_task` | the argument stands in no text, and the task names another or rules it out | a day, a figure or an identifier miscopied, two dates shifted alike; a word that excludes the task's, by a list of such words; negations; one call of the tool | the call | heuristic |
| 1.2 | `forbidden_action` | the call does what prompt or task rule out | negated verbs with every word, number and code of their objects, paths; no condition; English words | the call | heuristic |
| 1.3 | `cycle_until_limit` | the same steps went round n times with nothing new, until the limit | agents, calls, results, or one message with the same two values in four rounds; no new value; the recorded end | the first step of the second round, or the change right before it | heuristic |
| 1.3 | `done_twice` | the agent calls the tool again with the same arguments; it had succeeded | both calls and results; English verbs of tools; nothing undone, no user in between; no word of numbers in the task | the second call | heuristic |
| 1.4 | `began_anew` | the agent was shown nothing of the run, in which it had spoken, and asks | ids of the input | its message; the program made the input | heuristic |
| 2.2 | `acted_without_asking` | the result says to ask, and the agent's next step is an act | English words of the result; the next step; no user in the run | the call | heuristic |
| 2.4 | `withheld_answer` | the result has what the task asks about, and no message has a word of it | words that task and result share, in English, German and Spanish; a figure of the result passed on; no word of restriction | the agent's message to others | heuristic |
| 2.5 | `ignored_correction` | the agent was told to take another value, and goes on with the old one | identifiers of one form, amounts of one money, units behind figures; its next step; words of correction in English and German, but for units | the call | heuristic |
| 2.6 | `another_option` | the agents named one option of the list alone, and the call takes another | names of a result's list; nobody named the taken one, nothing tells of the named one later; no doubt | the call | heuristic |
| 2.6 | `miscopied_value` | the value stood before with two neighbouring signs exchanged | figures of four digits (three of one unit or name) and identifiers; no step of arithmetic makes it, and the right one is not used | the message or the call | heuristic |
| 2.6 | `exchanged_unit` | the message has the figure in the other unit, and an earlier text in the one | units of a table, in one measure; the figure stood in no other, is none converted, and no later message has the right one | the message | heuristic |
| 2.6 | `claimed_act` | the agent says that it was sent or ordered, and no call of the run is about it | English words of sending and of deals; a word of the task that no call, result, prompt or earlier message has; the agent's own calls | the message | heuristic |
| 2.6 | `misreported_figure` | nothing in the run gives the stated figure, and no later step has the returned one | figures of results in JSON, also with units, arithmetic of two steps, no share named; another figure of them in the message | the message | heuristic |
| 2.6 | `acted_on_invention` | nothing in the run gives the value before the call | English verbs of tools, sums of multiples, no share named; or another name or identifier than the task's in all other calls | the call | heuristic |
| 2.6 | `swallowed_error` | the call failed for good, and the agent states what nothing holds | status of the call, its words, values of the run, arithmetic | the message, or the call that uses them | heuristic |
| 2.6 | `misread_date` | nothing holds the date, and the tool returned another day | a day with both digits exchanged; or miscopied, or another one of these months, beside the same words; or miscopied as the only date of both, with an amount of the result | the message | heuristic |
| 2.6 | `misread_flag` | the message says the opposite of the field | words of the field's name, English negations; what the sentence is about; no later call by that name | the message | heuristic |
| 2.6 | `absorbed_count` | the agent gives a figure where the tool returned two counts that make it | both counts with their words; neither in the message | the message | heuristic |
| 3.1 | `left_open` | the agent leaves open what the task asks for, and no later step is about it | English words of putting off, a word of the task, all later calls and messages | the message | heuristic |
| 3.2 | `act_before_check` | the call was made before the check that the task asks for | an English sentence of the task; no tool that checks by its name, no word for what is checked | the call | heuristic |
| 3.2 | `acted_on_refusal` | the call was made right after a refusal of the approval that is asked for | English sentences of task and prompt, words of refusal | the call | heuristic |
| 3.3 | `passed_over_problem` | the tool counts problems, warns or denies, and the agent says nothing of it | a field of a result by its English name; neither the count, nor a denial, nor a word of field or result in the next message; no second call | the message | heuristic |
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
    return HEAD.format(**results) + rows + CLAIMS


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
