"""The report of a comparison as JUnit XML and as Markdown; names in it are text, whatever they contain."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from mast_trace_dashboards.gate.words import (
    FINDINGS,
    facts,
    headline,
    note,
    p_words,
    share,
    told_apart,
)
from mast_trace_dashboards.printable import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_dashboards.gate.counting import Sides, WantedSides
    from mast_trace_judge.gate.comparison import RateComparison

_SUITE: Final = "mast-trace check"
# Characters that XML 1.0 does not have, whichever way they are written.
_NOT_XML: Final = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# An entity is text to Markdown, also in a table, in HTML and in a mention.
_MARKUP: Final = re.compile(r"[\\`*_{}\[\]()<>#+!|~@&\"':/=^$-]")


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


def markdown(found: RateComparison, sides: Sides, wanted: WantedSides) -> str:
    """Return the report in GitHub's Markdown."""
    lines = [f"### {_SUITE}: {found.status}", "", _md(headline(found)), ""]
    lines += [
        "| rate | baseline | new runs | p, corrected | finding | |",
        "|---|---|---|---|---|---|",
    ]
    told, others = told_apart(found)
    for measure in told:
        counts = measure.counts
        cells = (
            measure.name,
            share(counts.old, counts.of_old),
            share(counts.new, counts.of_new),
            p_words(measure.corrected),
            FINDINGS[measure.finding],
            note(measure, found),
        )
        lines.append(f"| {' | '.join(map(_md, cells))} |")
    lines += ["", *(f"* {_md(each)}" for each in (*others, *facts(found, sides, wanted))), ""]
    return "\n".join(lines)


def markdown_without(reason: str) -> str:
    """Return the report of a check that compared nothing, in GitHub's Markdown."""
    return f"### {_SUITE}: undecided\n\n{_md(f'Nothing was compared: {reason}')}\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", safe(text))


def _md(text: str) -> str:
    line = " ".join(safe(text).split())
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", line)
