"""Training sets are read as they were written, and refused in words where they are something else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import toy_training

from mast_trace.exceptions import ConfigurationError
from mast_trace_lab.train.examples import read_examples, write_examples

if TYPE_CHECKING:
    from pathlib import Path


def test_a_set_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = toy_training.examples(3, "read")
    path = tmp_path / "deep" / "train.jsonl"
    assert write_examples(made, path) == 3
    assert read_examples(path) == made
    line = json.loads(path.read_text("utf-8").splitlines()[0])
    assert {"prompt", "step", "agent", "mode", "steps", "source", "group"} <= line.keys()
    assert (line["step"], line["agent"], line["steps"], line["source"]) == (
        2,
        "tester",
        4,
        "person",
    )
    assert [each["role"] for each in line["prompt"]] == ["system", "user"]


def test_an_interrupted_export_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    made = toy_training.examples(2)
    write_examples(made, path)

    def broken() -> Any:
        yield made[0]
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_examples(broken(), path)
    assert read_examples(path) == made


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ({"step": 4}, "step 4 of a run with 4 steps"),
        ({"step": -1}, "step -1"),
        ({"step": "x"}, "ValueError"),
        ({"format": 9}, "format 9; this version reads 1"),
        ({"question": "why"}, "unknown question 'why'"),
        ({"source": "oracle"}, "unknown source 'oracle'"),
        ({"prompt": []}, "the prompt is empty"),
        ({"prompt": "text"}, "train export"),
        ({"run": None}, "train export"),
        ({"agent": ...}, "KeyError: 'agent'"),
    ],
)
def test_a_line_without_example_is_named(tmp_path: Path, edit: dict[str, Any], told: str) -> None:
    path = tmp_path / "train.jsonl"
    write_examples(toy_training.examples(2), path)
    lines = path.read_text("utf-8").splitlines()
    wrong = {**json.loads(lines[1]), **edit}
    shape = {name: value for name, value in wrong.items() if value is not ...}
    path.write_text("\n".join([lines[0], json.dumps(shape)]), "utf-8")
    with pytest.raises(ConfigurationError) as caught:
        read_examples(path)
    assert "train.jsonl:2 is no training example" in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "[]", "no json", "\udcff"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(text, "utf-8", errors="surrogateescape")
    with pytest.raises(ConfigurationError, match=r"train\.jsonl"):
        read_examples(path)
    with pytest.raises(ConfigurationError, match="cannot read"):
        read_examples(tmp_path)


def test_a_run_that_is_there_twice_and_mixed_questions_are_refused(tmp_path: Path) -> None:
    """A run on both sides of a division would be no test."""
    path = tmp_path / "train.jsonl"
    first = toy_training.examples(1)
    write_examples([*first, *first], path)
    with pytest.raises(ConfigurationError, match="a second time"):
        read_examples(path)
    write_examples([first[0], toy_training.examples(2, "read")[1]], path)
    with pytest.raises(ConfigurationError, match="mixes questions"):
        read_examples(path)
