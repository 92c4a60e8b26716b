"""The gate: counts of new runs and of a baseline, and their comparison in sentences, as JUnit XML and as Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal
from xml.etree import ElementTree as ET

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards import document
from mast_trace_dashboards.document import DataTable, Heading, Part, Sentence, Words
from mast_trace_dashboards.printable import safe
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.gate.comparison import FAILURES, ComparedRate, Finding, RateComparison, Side

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

_EXAMPLES = 5
_CODES = tuple(FAILURE_MODES)


@dataclass(frozen=True)
class WantedSides:
    """The sides of a comparison.

    Attributes:
        moment: beginning of the new runs.
        since: beginning of the baseline.
        until: end of both.
        version: version or branch of the baseline; empty where the baseline is the time before ``moment``.
        new_version: version or branch of the new runs; any other than the baseline's if empty.
        services: names of services; all if empty.
        projects: likewise.
    """

    moment: datetime
    since: datetime
    until: datetime
    version: str = ""
    new_version: str = ""
    services: Sequence[str] = ()
    projects: Sequence[str] = ()

    def is_old(self, row: Mapping[str, Any]) -> bool:
        """Return whether the runs of a row are of the baseline."""
        return self.version in _names(row) if self.version else not row["Later"]

    def is_new(self, row: Mapping[str, Any]) -> bool:
        """Return whether they are the new ones."""
        named = not self.new_version or self.new_version in _names(row)
        return bool(row["Later"]) and named and not self.is_old(row)


@dataclass(frozen=True)
class Sides:
    """Both sides of a comparison.

    Attributes:
        old: the baseline.
        new: the new runs.
        versions: versions and branches that were seen, with their runs.
        services: names of the services of the compared runs.
        judge: version of the judge whose verdicts are compared; empty without any.
    """

    old: Side
    new: Side
    versions: Mapping[str, int] = field(default_factory=dict)
    services: Sequence[str] = ()
    judge: str = ""


def count_sides(store: Store, wanted: WantedSides) -> Sides:
    """Count the runs of both sides.

    Raises:
        StorageError: the database does not answer.
    """
    rows = QUERIES["run_counts"].run(
        store,
        since=min(wanted.since, wanted.moment),
        until=wanted.until,
        moment=wanted.moment,
        services=list(wanted.services),
        projects=list(wanted.projects),
    )
    versions: Counter[str] = Counter()
    for row in rows:
        for name in _names(row):
            versions[name] += row["Runs"]
    new = [row for row in rows if wanted.is_new(row)]
    old = [row for row in rows if wanted.is_old(row)]
    judge = _judge_of(new) or _judge_of(old)
    services = sorted({row["ServiceName"] for row in (*new, *old)})
    return Sides(_counted_side(old, judge), _counted_side(new, judge), versions, services, judge)


def _names(row: Mapping[str, Any]) -> set[str]:
    return {row["Version"], row["Branch"]} - {""}


def _judge_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the version of the judge that judged most of these runs."""
    counted: Counter[str] = Counter()
    for row in rows:
        if row["JudgeVersion"]:
            counted[row["JudgeVersion"]] += row["Runs"]
    return max(counted, key=lambda version: (counted[version], version), default="")


def _counted_side(rows: Sequence[Mapping[str, Any]], judge: str) -> Side:
    """Count the runs of one side.

    A verdict of another version of the judge counts in no rate, nor does an outcome that it found: a rate
    would change with the judge.
    """
    states: Counter[str] = Counter()
    examined: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    known = failures = other = 0
    for row in rows:
        runs = int(row["Runs"])
        states[row["State"]] += runs
        foreign = bool(row["JudgeVersion"]) and row["JudgeVersion"] != judge
        other += runs if foreign else 0
        if row["Outcome"] in {"success", "failure"} and not (
            foreign and row["OutcomeSource"] == "judged"
        ):
            known += runs
            if row["Outcome"] == "failure":
                failures += runs
                examples.setdefault(FAILURES, []).extend(row["Examples"])
        if foreign:
            continue
        for bit, code in enumerate(_CODES):
            if row["ExaminedBits"] >> bit & 1:
                examined[code] += runs
            if row["ShownBits"] >> bit & 1:
                shown[code] += runs
                examples.setdefault(code, []).extend(row["Examples"])
    return Side(
        runs=sum(states.values()),
        states=dict(states),
        known=known,
        failures=failures,
        examined=dict(examined),
        shown=dict(shown),
        other_judge=other,
        examples={key: tuple(found[:_EXAMPLES]) for key, found in examples.items()},
    )


FINDINGS: Final[dict[Finding, str]] = {
    "worse": "WORSE",
    "not worse": "no rise shown",
    "too few": "too few runs",
    "not compared": "not compared",
}
_STATES: Final = {
    "waiting": "wait for the judge",
    "running": "have not ended",
    "changed": "changed since they were judged",
    "unscored": "could not be judged",
}
_STYLES: Final[Mapping[str, Literal["bad", "note", "good"]]] = {
    "worse": "bad",
    "undecided": "note",
    "not worse": "good",
}
_NAMED: Final = 10


def headline(found: RateComparison) -> str:
    """Return the result in one sentence."""
    if found.status == "not worse":
        return "Not worse: no rate of the new runs is shown to be higher than the baseline's."
    reasons = "; ".join(found.reasons)
    return f"{found.status.capitalize()}: {reasons}."


def share(part: int, of: int) -> str:
    """Return a share with its counts; a dash where there is nothing to share."""
    return f"{part / of:.0%} ({part:,} of {of:,})" if of else "-"


def p_words(p: float | None) -> str:
    """Return a probability; a dash where there is none."""
    if p is None:
        return "-"
    return "below 0.0001" if p < 0.0001 else f"{p:.4f}"


def note(measure: ComparedRate, found: RateComparison) -> str:
    """Return what a measure can say with so many runs, and what it would need."""
    counts = measure.counts
    if measure.finding == "not compared":
        where = "new run" if not counts.of_new else "run of the baseline"
        return f"no {where} {'has a known outcome' if measure.key == FAILURES else 'was examined for it'}"
    if measure.finding == "worse":
        return f"see {', '.join(each[:8] for each in measure.examples)}" if measure.examples else ""
    before = counts.old / counts.of_old
    to = min(1.0, before + found.rise)
    if measure.needed is None:
        enough = f"a rise to {to:.0%} cannot be noticed beside a baseline of {counts.of_old:,} runs"
    elif measure.needed <= counts.of_new:
        enough = f"a rise to about {measure.noticed:.0%} would probably have been noticed"
    else:
        enough = f"about {measure.needed:,} new runs would notice a rise to {to:.0%}"
        if measure.noticed is not None:
            enough = (
                f"a rise to about {measure.noticed:.0%} would probably have been noticed; {enough}"
            )
    return enough


def told_apart(found: RateComparison) -> tuple[list[ComparedRate], list[str]]:
    """Return the rates for a table, and sentences about those that have nothing to show there."""
    absent, skipped, told = [], [], []
    for measure in found.measures:
        counts = measure.counts
        if measure.key != FAILURES and measure.finding == "not compared":
            skipped.append(measure)
        elif measure.key != FAILURES and not counts.old and not counts.new:
            absent.append(measure)
        else:
            told.append(measure)
    lines = []
    if absent:
        lines.append(f"looked for on both sides and shown by no run: {_codes(absent)}")
    if skipped:
        lines.append(f"not compared, for one side has no run that was examined: {_codes(skipped)}")
    return told, lines


def _codes(measures: list[ComparedRate]) -> str:
    return f"modes {', '.join(each.key for each in measures)}"


def facts(found: RateComparison, sides: Sides, wanted: WantedSides) -> Iterator[str]:
    """Yield the lines about both sides, and about all that no rate counts."""
    yield f"new runs: {_side(found.new)}"
    name = f"version {wanted.version}" if wanted.version else "the time before"
    yield f"baseline ({name}): {_side(found.old)}"
    if wanted.version and not found.old.runs:
        known = sorted(sides.versions, key=lambda each: (-sides.versions[each], each))[:_NAMED]
        yield (
            f"no stored run names the version or branch {wanted.version}; "
            + (f"those that are named: {', '.join(known)}" if known else "none names any")
            + ". A program names its version by OTEL_RESOURCE_ATTRIBUTES=service.version=NAME"
        )
    for side, told in ((found.new, "new runs"), (found.old, "runs of the baseline")):
        if side.other_judge:
            yield (
                f"{side.other_judge:,} {told} were judged by another version of the judge and count in no "
                "rate that it found; `mast-trace judge run` judges them again"
            )
    if len(sides.services) > 1:
        yield (
            f"the runs are of {len(sides.services)} services ({', '.join(sides.services[:_NAMED])}): where "
            "their shares differ on both sides, rates differ without a change; --service chooses one"
        )
    if sides.judge:
        yield f"judged by version {sides.judge}"


def _side(side: Side) -> str:
    """Return the runs of a side and the numbers of those that are not judged, or have no outcome."""
    unjudged = ", ".join(
        f"{count:,} {_STATES.get(state, state)}"
        for state, count in side.states.items()
        if state != "judged"
    )
    told = f"{side.runs:,}, of which {side.states.get('judged', 0):,} are judged"
    told += f" ({unjudged})" if unjudged else ""
    return f"{told}; {side.runs - side.known:,} have no known outcome"


_SUITE: Final = "mast-trace check"
# Characters that XML 1.0 does not have, whichever way they are written.
_NOT_XML: Final = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(found: RateComparison, sides: Sides, wanted: WantedSides) -> str:
    """Return the report as JUnit XML: one test case for the decision, one for each rate."""
    cases = [_decision(headline(found) if found.status == "undecided" else "")]
    for measure in found.measures:
        case = ET.Element("testcase", classname=_SUITE, name=_xml(measure.name))
        counts = measure.counts
        told = _xml(
            f"baseline {share(counts.old, counts.of_old)}, new {share(counts.new, counts.of_new)}, "
            f"p {p_words(measure.corrected)}: {note(measure, found)}"
        )
        if measure.finding == "worse":
            ET.SubElement(case, "failure", type="worse", message=told)
        elif measure.finding != "not worse":
            ET.SubElement(case, "skipped", message=f"{FINDINGS[measure.finding]}: {told}")
        else:
            ET.SubElement(case, "system-out").text = told
        cases.append(case)
    return _suite(cases, "\n".join([headline(found), *facts(found, sides, wanted)]))


def junit_without(reason: str) -> str:
    """Return the report of a check that compared nothing: one test case, with an error."""
    return _suite([_decision(reason)], reason)


def _suite(cases: Sequence[ET.Element], told: str) -> str:
    suite = ET.Element(
        "testsuite",
        name=_SUITE,
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
    )
    suite.extend(cases)
    out = ET.SubElement(suite, "system-out")
    out.text = _xml(told)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True).replace(
        "encoding='us-ascii'", "encoding='utf-8'"
    )


def _decision(problem: str) -> ET.Element:
    case = ET.Element("testcase", classname=_SUITE, name="decided")
    if problem:
        ET.SubElement(case, "error", type="undecided", message=_xml(problem))
    return case


def said_of(found: RateComparison, sides: Sides, wanted: WantedSides) -> list[Part]:
    """Return the report for people: the result, the rates, and what they are made of."""
    told, others = told_apart(found)
    rows = [
        (
            measure.name,
            share(measure.counts.old, measure.counts.of_old),
            share(measure.counts.new, measure.counts.of_new),
            p_words(measure.corrected),
            (Words(FINDINGS[measure.finding], "bad" if measure.finding == "worse" else ""),),
            note(measure, found),
        )
        for measure in told
    ]
    return [
        Heading(f"{_SUITE}: {found.status}"),
        Sentence(headline(found), _STYLES[found.status]),
        DataTable("Rates", ("rate", "baseline", "new runs", "p, corrected", "finding", ""), rows),
        *(Sentence(each, "item") for each in (*others, *facts(found, sides, wanted))),
    ]


def markdown(found: RateComparison, sides: Sides, wanted: WantedSides) -> str:
    """Return the report in GitHub's Markdown."""
    return document.markdown(said_of(found, sides, wanted))


def markdown_without(reason: str) -> str:
    """Return the report of a check that compared nothing, in GitHub's Markdown."""
    return (
        f"### {_SUITE}: undecided\n\n{document.markdown_safe(f'Nothing was compared: {reason}')}\n"
    )


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", safe(text))
