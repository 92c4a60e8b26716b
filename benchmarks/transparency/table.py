"""The table in ``README.md``, written between its two marks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compare import Compared
    from suites import Suite

PAGE = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
HEAD = """\
| suite | tests | passed without | passed with | differences confirmed | flaky | spans | never ended |
|---|---|---|---|---|---|---|---|
"""


def write_table(listed: Sequence[Suite], results: Mapping[str, Compared]) -> None:
    """Put a table of all suites into the page.

    Raises:
        ValueError: the page has not both marks.
    """
    page = PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    rows = "".join(_row(suite, results.get(suite.name)) for suite in listed)
    PAGE.write_text(f"{before}{BEGIN}\n{HEAD}{rows}\n{END}{after}", "utf-8")


def _row(suite: Suite, found: Compared | None) -> str:
    package = suite.package.replace("==", " ")
    if suite.reason or found is None:
        return f"| {package} | not run: {suite.reason or 'not yet compared'} |||||||\n"
    never = ", ".join(f"{name} {count}" for name, count in found.never_ended.items()) or "none"
    cells = (
        *(found.tests, found.passed_without, found.passed_with, len(found.confirmed)),
        *(len(found.flaky), found.spans, never),
    )
    return f"| {package} | {' | '.join(str(cell) for cell in cells)} |\n"
