"""Docstrings, comments and help texts name their subject: no question word opens a sentence."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent.parent
CODE = ("sdk", "instrumentations", "collector", "judge", "dashboards", "lab")
FOLDERS = (*CODE, "examples", "benchmarks", "tests")
OPENINGS = frozenset(
    {"how", "of", "that", "what", "whatever", "where", "wherever", "which", "whichever", "who"}
    | {"whether", "whoever", "whom", "whose", "why"}
)
"""First words after which a sentence has neither a noun of the field nor a verb in front."""
IN_SENTENCES = OPENINGS - {"that", "where", "wherever", "whether"}
"""Openings of the further sentences; "that" may point to a noun, "where" may state a condition."""
RIDDLES = re.compile(
    r"\bwhosever\b|\bwhosoever\b|\bwhatsoever\b|\blest\b|\bnought\b|\bthe one of the other\b"
    r"|\bnobody who\b|\bof late\b|\bby lot\b",
    re.IGNORECASE,
)
"""Words and phrases that a reader has to solve."""
SPOKEN = frozenset({"description", "help", "meaning", "short_help", "title"})
"""Keyword arguments whose texts people read: options, settings, named queries, panels."""


class Text(NamedTuple):
    """A text for people in a source file."""

    line: int
    text: str


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_text_opens_with_a_question_word(folder: str) -> None:
    """The first word of a docstring or of a help text is a noun or a verb."""
    files = sorted((HERE / folder).rglob("*.py"))
    assert files
    assert [fault for path in files for fault in faults(path)] == []


def test_the_sessions_of_nox_are_described_likewise() -> None:
    assert list(faults(HERE / "noxfile.py")) == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('"""What a module holds."""', [1]),
        ('"""Parts of a run."""\n\nX = 1\n"""Of each run, its parts."""', [4]),
        ('def f():\n    """``which`` of them."""', [2]),
        ('class A:\n    """A run.\n\n    Whosever.\n    """', [2]),
        ('x = Option(help="Who may write.")', [1]),
        ('x = Option(help=f"How {NAME} ends.")', [1]),
        ('"""Whether a run has ended."""', [1]),
        ('"""True if a run has ended: whatever it says."""', []),
        ('x = "What an agent says."', []),
        ("x = 1  # what an agent says", [1]),
        ("# Texts of a run.\n# What it says is kept.\nx = 1", [1]),
        ('"""A run.\n\n    Its parts. Of these some are kept.\n"""', [1]),
        ('"""A run.\n\n    It ends. That end is kept.\n"""', []),
        ('"""Who&When: failed runs."""', []),
        ('task = Task(description="How many are left?")', []),
    ],
)
def test_a_bad_opening_is_found(source: str, lines: list[int], tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert [int(fault.split(":")[1]) for fault in faults(path)] == lines


def faults(path: Path) -> Iterator[str]:
    """Yield place and beginning of each text that breaks the rule."""
    source = path.read_text("utf-8")
    found = [*((each, OPENINGS) for each in texts(ast.parse(source)))]
    found += ((each, IN_SENTENCES) for each in comments(source))
    for (line, text), openings in sorted(found):
        first, *others = re.split(r"(?<=[.!?]) |\n\s*\n", re.sub(r"(?<!\n)\n(?!\s*\n)", " ", text))
        if (
            _opening(first) in openings
            or any(_opening(each) in IN_SENTENCES for each in others)
            or RIDDLES.search(" ".join(text.split()))
        ):
            yield f"{path}:{line}: {text.strip()[:60]}"


def texts(tree: ast.Module) -> Iterator[Text]:
    """Yield docstrings, those of names included, and texts of `SPOKEN` arguments."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and _is_text(statement.value):
                yield Text(statement.lineno, _beginning(statement.value))
        if isinstance(node, ast.keyword) and node.arg in SPOKEN and _is_text(node.value):
            text = _beginning(node.value)
            if not text.endswith("?"):  # a question to an agent, in an example
                yield Text(node.value.lineno, text)


def comments(source: str) -> Iterator[Text]:
    """Yield comments, neighbouring lines as one; the directives of tools are none."""
    block: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or re.match(r"#\s*(noqa|type:|!)", token.string):
            continue
        if block and (
            token.start[0] > block[-1].start[0] + 1 or token.start[1] != block[0].start[1]
        ):
            yield Text(block[0].start[0], _joined(block))
            block = []
        block.append(token)
    if block:
        yield Text(block[0].start[0], _joined(block))


def _joined(block: list[tokenize.TokenInfo]) -> str:
    return " ".join(token.string.lstrip("# ") for token in block)


def _opening(sentence: str) -> str:
    """Return the first word; empty for the name of an argument, which a colon follows."""
    word = re.match(r"\W*([\w&']+)\b(?!:\s)", sentence)
    return word[1].lower() if word else ""


def _is_text(node: ast.expr) -> bool:
    is_constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_constant or isinstance(node, ast.JoinedStr)


def _beginning(node: ast.expr) -> str:
    """Return a text; of an f-string the parts without values."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
