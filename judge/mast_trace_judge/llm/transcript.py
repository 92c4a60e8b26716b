"""Writes a run down for a model: every step with its number, long texts clipped, each long passage once.

Sanitises a run's texts before a model reads them.

A run may contain text that was written to steer its reader. Three measures keep it evidence:
invisible characters are removed, the first characters of every line mark it as part of the record,
and passages that plainly address the judge are withheld.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.local.addressing.phrases import without_phrases
from mast_trace_judge.local.addressing.recognition import addresses_reader, clean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

WITHHELD = "[a passage that addresses the reader of this record was withheld]"
MARK = "|"
"""The beginning of each line that a run's agents and tools have written."""
LEFT_OUT = re.compile(r"\[\.\.\. (?:\d+ characters|as in (the task|step \d+)) \.\.\.\]")
"""The mark of characters that are not shown, or not shown again, then with the place that has them."""

_HEAD = 0.65
"""Share of a clipped text for its beginning; causes come early, results late."""
_REPEATED = 80
"""Characters from which a repeated text is replaced by a reference."""
_PASSAGE = 100
"""The same of a passage of it."""
_ENDS = 24, 16
"""Characters of a repeated passage that stand at its beginning and its end, where the reader finds it by them."""
_LEAST_LEFT = 45
"""Characters that are worth a reference: it is nearly as long."""
_SEED = 40
"""Characters by which an earlier passage is recognised, from every `_NOTED`th word of it on."""
_NOTED = 2
_WORD = re.compile(r"(?<![\w.,-])\w")
_NO_END = (
    "not seen: the run may have been stopped from outside, wait for somebody, or still go on. "
    "It has not ended too early for all that is known, and what is lacking may still come."
)


def withhold(text: str) -> str:
    """Replace every line of a cleaned text that addresses the judge of the run."""
    if not addresses_reader(text):
        return text
    lines = [WITHHELD if addresses_reader(line) else line for line in text.split("\n")]
    joined = "\n".join(lines)
    # A passage over several lines is found in the whole text only; the end of a disguised one is
    # unknown.
    joined = without_phrases(joined, WITHHELD)
    return WITHHELD if addresses_reader(joined) else joined


def nonce(*parts: str) -> str:
    """Return the mark of one run's fences.

    The mark is derived, not random: the same run gets the same prompt again, so that caches of
    prompt prefixes hit and a paid answer is found again.
    """
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a text costs: four ASCII characters each, or one and a half others."""
    if text.isascii():
        return len(text) // 4 + 1
    plain = sum(char < "\x80" for char in text)
    return int(plain / 4 + (len(text) - plain) / 1.5) + 1


def clip(text: str, limit: int) -> str:
    """Cut the middle out of a text longer than ``limit`` characters, with a mark that says so."""
    if len(text) <= limit:
        return text
    head = int(limit * _HEAD)
    tail = limit - head
    return f"{text[:head]} [... {len(text) - limit} characters ...] {text[-tail:] if tail else ''}"


class _Shown:
    """The texts that a record has shown so far, by which a passage that comes again is left out."""

    def __init__(self) -> None:
        self.whole: dict[str, int] = {}
        self._places: dict[str, tuple[str, str, int]] = {}

    def written(self, text: str, place: str) -> str:
        """Return a text without the middles of the passages that were shown before, and remember it."""
        written, pieces, end = [], [], 0
        words = [found.start() for found in _WORD.finditer(text)]
        head, tail = _ENDS
        for start in words:
            known = self._places.get(text[start : start + _SEED]) if start >= end else None
            if known and (length := _common(text[start:], known[1][known[2] :])) >= _PASSAGE:
                first = bisect_left(words, start + head)
                cut = words[first : bisect_right(words, start + length - tail)]
                if cut and cut[-1] - cut[0] >= _LEAST_LEFT:
                    pieces.append(text[end : cut[0]])
                    written += [pieces[-1], f"[... as in {known[0]} ...] "]
                    end = cut[-1]
        pieces.append(text[end:])
        # Only what is shown is remembered: a reference never leads to another reference.
        for piece in (each for each in pieces if len(each) >= _PASSAGE):
            for found in islice(_WORD.finditer(piece), 0, None, _NOTED):
                self._places.setdefault(
                    piece[found.start() : found.start() + _SEED], (place, piece, found.start())
                )
        return "".join([*written, pieces[-1]])


def _common(one: str, other: str) -> int:
    """Return the length of the longest beginning that both texts have."""
    low, high = 0, min(len(one), len(other)) + 1
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle)
    return low


@dataclass
class Renderer:
    """Writes the steps of one run.

    Attributes:
        nonce: the mark of the fences; removed from the run's own texts.
        clip: characters to which each text of an ordinary step is clipped.
        full: the same of steps that are shown in full.
        in_full: these steps.
        fact: characters of the task, and of each fact about the end.
    """

    trajectory: Trajectory
    nonce: str
    clip: int = 1_000_000
    full: int = 1_000_000
    in_full: Collection[int] = frozenset()
    fact: int = 1_000_000
    # Shared by copies with other options: sanitising costs far more than clipping.
    _sanitised: dict[str, str] = field(default_factory=dict)

    @property
    def marks(self) -> tuple[str, str]:
        """The marks of the beginning and the end of what a reader is shown."""
        return nonce(self.nonce, "begin")[:6], nonce(self.nonce, "end")[:6]

    def record(self, steps: Sequence[Step] | None = None, *, once: bool = True) -> str:
        """Return the record between its fences.

        Args:
            steps: those to include, in order; all if not given.
            once: whether passages that come again are left out.
        """
        shown = self.trajectory.read_steps if steps is None else steps
        return self.fenced("record", "\n".join(self._lines(shown, once)))

    def _lines(self, steps: Sequence[Step], once: bool) -> Iterable[str]:
        """Yield each step, and a placeholder line for steps that were not read."""
        begin, end = self.trajectory.unread_from, self.trajectory.unread_to
        shown = _Shown() if once else None
        if shown:
            shown.written(clip(self._evidence(self.trajectory.task), self.fact), "the task")
        for place, step in enumerate(steps):
            if begin < end == step.index and (place == 0 or steps[place - 1].index < begin):
                yield f"[steps {begin} to {end - 1} are not in this record: it is too long]"
            yield self.step(step, shown)

    def fenced(self, name: str, body: str) -> str:
        """Put text between fences that it cannot close."""
        return f"<<{name} {self.nonce}>>\n{body}\n<<end {name} {self.nonce}>>"

    def task(self) -> str:
        """Return the task of the run and its recorded outcome."""
        run = self.trajectory
        lines = [*self.quoted(run.task or "(not recorded)", self.fact)]
        facts = [
            ("agents", ", ".join(map(self._name, run.agents[:60]))),
            ("its end", "" if run.finished else _NO_END),
            ("stopped because", run.termination_reason),
            ("error at the end", run.error or ""),
            ("open items of the plan", "; ".join(run.open_items)),
            ("outcome that was recorded", run.outcome),
            ("reason that was recorded", run.outcome_reason),
            ("answer that the program had expected", run.expected),
        ]
        for name, value in facts:
            if value:
                lines.append(f"{name}:")
                lines.extend(self.quoted(value, self.fact))
        return self.fenced("task", "\n".join(lines))

    def step(self, step: Step, shown: _Shown | None = None) -> str:
        """Return one step: a heading line and its texts, each line marked; whole, or without what was shown before."""
        limit = self.full if step.index in self.in_full else self.clip
        lines = [f"[{step.index}] {self._heading(step)}"]

        def texts(text: str) -> Iterable[str]:
            return self.quoted(text, limit, shown, f"step {step.index}")

        if step.arguments:
            lines.append("arguments:" if step.kind is StepKind.TOOL else "asks for:")
            lines.extend(texts(step.arguments))
            if step.text:
                lines.append("result:" if step.kind is StepKind.TOOL else "says:")
        earlier = shown.whole.setdefault(step.text, step.index) if shown else step.index
        if earlier != step.index and len(step.text) >= _REPEATED:
            lines.append(f"(the same text as in step {earlier})")
        elif step.text:
            lines.extend(texts(step.text))
        elif not step.arguments:
            lines.append(f"({'content not recorded' if step.content_hash else 'no text'})")
        if step.error:
            lines.append("error:")
            lines.extend(texts(step.error))
        return "\n".join(lines)

    def quoted(
        self, text: str, limit: int, shown: _Shown | None = None, place: str = ""
    ) -> Iterable[str]:
        """Return the lines of a text of the run, sanitised, clipped and marked as the run's."""
        clipped = clip(self._evidence(text), limit)
        written = shown.written(clipped, place) if shown else clipped
        return [f"{MARK}{line}" for line in written.split("\n")]

    def _evidence(self, text: str) -> str:
        if text not in self._sanitised:
            self._sanitised[text] = withhold(clean(text)).replace(self.nonce, "")
        return self._sanitised[text]

    def _heading(self, step: Step) -> str:
        agent = self._name(step.agent) or "(unknown)"
        if step.kind is StepKind.TOOL:
            heading = f"{agent} calls tool {self._name(step.tool) or '(unnamed)'}"
        elif step.kind is StepKind.MODEL:
            heading = f"{agent} thinks"
        else:
            to = ", ".join(map(self._name, step.recipients[:8]))
            heading = f"{agent} to {to}" if to else f"{agent} says"
        if step.handoff_to:
            heading += f", hands over to {self._name(step.handoff_to)}"
        if step.synthetic:
            heading += " (written by the framework)"
        return heading + (" FAILED" if step.error else "")

    def _name(self, name: str) -> str:
        """Names also come from the run: one line, no brackets, limited length."""
        flat = " ".join(self._evidence(name).split())
        return flat.replace("[", "(").replace("]", ")").replace("<<", "(")[:80]
