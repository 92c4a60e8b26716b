"""Every part of every sample, left out or of another kind: what is read then is what was read before.

``parts.golden.json`` holds a number and a hash for each format. `MAST_TRACE_WRITE_GOLDEN=1 pytest
tests/judge/formats/test_parts.py` writes it anew; ``build/parts`` then has a line for each change: compare those of
before and after.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from zlib import crc32

from judge.formats.test_any_bytes import OF_PYTHON
from judge.formats.test_samples import READINGS, SAMPLES, SHAPES, requests_of

from mast_trace_judge.transfer.json_values import Value, values_of
from mast_trace_judge.transfer.reading import Piece, _File

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).with_name("parts.golden.json")
SHOWN = Path(__file__).parents[3] / "build" / "parts"
OTHERS: list[Any] = [None, "", "x", 7, True, [], {}, ["x"], {"x": 1}, -1.5, [{}], False, 0]


def test_what_is_read_of_a_changed_file_stays_the_same() -> None:
    """Each path of keys of a format is changed once: neither a default nor a condition changes unseen."""
    lines: dict[str, list[str]] = {}
    for values in files():
        text, row = json.dumps(values), read(values)[0]
        for path in paths_in(json.loads(text)):
            name = f"{row} {'.'.join('*' if isinstance(key, int) else key for key in path)}"
            if name in lines:
                continue
            changes = [json.loads(text), json.loads(text)]
            for change, is_left_out in zip(changes, (True, False), strict=True):
                *above, key = path
                within = change
                for each in above:
                    within = within[each]
                if is_left_out:
                    del within[key]
                else:
                    within[key] = OTHERS[crc32(name.encode()) % len(OTHERS)]
            lines[name] = [" ".join(map(str, read(change))) for change in changes]
    found: dict[str, list[str]] = {}
    for name, told in lines.items():
        found.setdefault(name.partition(" ")[0], []).append(f"{name}: {', '.join(told)}\n")
    golden = {
        row: f"{len(told)} {hashlib.sha256(''.join(told).encode()).hexdigest()[:12]}"
        for row, told in found.items()
    }
    for row, told in found.items() if os.environ.get("MAST_TRACE_WRITE_GOLDEN") else ():
        SHOWN.mkdir(parents=True, exist_ok=True)
        (SHOWN / f"{row}.txt").write_text("".join(told), "utf-8")
        GOLDEN.write_text(json.dumps(golden, indent=0) + "\n", "utf-8")
    assert golden == json.loads(GOLDEN.read_text("utf-8"))


def files() -> Iterator[list[Any]]:
    """Yield the values of each file that holds JSON."""
    for path in sorted(SAMPLES.iterdir()):
        if path.suffix in {".json", ".traj", ".jsonl"}:
            with path.open(encoding="utf-8") as text:
                yield [each.value for each in values_of(text) if isinstance(each, Value)]
    contents = (json.loads(line)["content"] for line in SHAPES)
    yield from (each for each in contents if not isinstance(each, str))
    yield from ([json.loads(line)["value"]] for line in READINGS)


def paths_in(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the keys and places that lead to each part of a value."""
    keys = (
        range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
    )
    for key in keys:
        yield (key,)
        yield from ((key, *path) for path in paths_in(value[key]))


def read(values: list[Any]) -> tuple[str, int, int, str]:
    """Return the format of a file's first run, how much is read and how much refused, and a hash of all spans."""
    source: Any = SimpleNamespace(name="n", stem="n")
    file = _File(source, None)
    given = [Value(place, value, 1) for place, value in enumerate(values)]
    found = [each for at in given for each in file._value(at, "n")]
    found += [*file._held_messages(), *file._unsettled()]
    pieces = [each for each in found if isinstance(each, Piece)]
    assert [each for each in found if OF_PYTHON.search(getattr(each, "problem", ""))] == []
    kept = b""
    try:
        for request in requests_of(pieces):
            kept += request.SerializeToString(deterministic=True)
    except ValueError:  # a run of an export without an id
        kept += b"refused"
    row = pieces[0].row.name if pieces else "-"
    return row, len(pieces), len(found) - len(pieces), hashlib.sha256(kept).hexdigest()[:8]
