"""The card of a labelled set: its systems, operators, counts, shares, versions and licence."""

from __future__ import annotations

import platform
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING

from mast_trace_judge.study.datasets.set_files import FORMAT
from mast_trace_lab.inject.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_lab.inject.labelled import Labelled


def card(
    runs: Sequence[Labelled],
    licence: str,
    decided: Mapping[tuple[str, str], int],
    frameworks: Sequence[tuple[str, str]],
) -> str:
    """Return the card of a set, in Markdown.

    Args:
        runs: of the set.
        licence: its name; empty if it is not known.
        decided: number of planted faults by operator and decision, those outside the set included.
        frameworks: names and versions of the programs' frameworks.
    """
    failed = [each for each in runs if each.failed]
    versions = ", ".join(f"{name} {number}" for name, number in frameworks)
    built = (
        f"Built by mast-trace {version('mast-trace')} on Python {platform.python_version()}, format {FORMAT}. "
        f"Versions of the frameworks: {versions or 'not recorded'}."
    )
    terms = f"Licence: {licence or 'not stated; ask whoever recorded the runs'}."
    sizes = (
        f"{len(runs)} runs: {len(failed)} failures and {len(runs) - len(failed)} runs that succeeded although a "
        "fault was planted. Groups are original runs; no split divides a group."
    )
    lines = ["# A labelled set of failures", "", f"{built} {terms}", "", sizes, ""]
    lines += [
        "| system | framework | source | runs | failures | decisive |",
        "|---|---|---|---|---|---|",
    ]
    by_system = Counter((each.system, each.framework, each.source) for each in runs)
    for key, count in sorted(by_system.items()):
        own = [each for each in runs if (each.system, each.framework, each.source) == key]
        shown = (sum(each.failed for each in own), sum(each.decisive for each in own))
        lines.append(f"| {' | '.join(map(_cell, key))} | {count} | {shown[0]} | {shown[1]} |")
    lines += [
        "",
        "| operator | mode | planted | kept | share kept | decisive | survived | held out | uncertain | certain because |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, operator in OPERATORS.items():
        own = [each for each in runs if each.operator == name]
        planted = sum(count for (of, _), count in decided.items() if of == name)
        if planted:
            kept = sum(each.failed for each in own)
            cells = (
                name,
                operator.mode or "none",
                str(planted),
                str(kept),
                f"{100 * kept / planted:.0f} %",
                str(sum(each.decisive for each in own)),
                str(len(own) - kept),
                "yes" if any(each.held_out_operator for each in own) else "no",
                "uncertain" if operator.uncertain else "no",
                operator.certain,
            )
            lines.append(f"| {' | '.join(cells)} |")
    for reason in dict.fromkeys(filter(None, (each.uncertain for each in runs))):
        own = [each for each in runs if each.uncertain == reason]
        names = ", ".join(sorted({each.operator for each in own}))
        lines += ["", f"{len(own)} labels are uncertain, those of {names}: {reason}"]
    known = sum(each.point_of_no_return is not None for each in failed)
    point = (
        f"The point of no return is known in {known} of {len(failed)} failures (`point_of_no_return`): the step after which "
        "runs hardly ever succeed if all up to it is kept. After a planted fault it is known only where the step is decisive."
    )
    lines += ["", point]
    splits = Counter(each.split for each in runs)
    lines += [
        "",
        "Splits by group: " + ", ".join(f"{n} {s}" for s, n in sorted(splits.items())) + ".",
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ") or "unknown"
