"""Writes a run down for a model: every step with its number, long texts clipped, nothing left out.

Sanitises a run's texts before a model reads them.

A run may contain text that was written to steer its reader. Three measures keep it evidence:
invisible characters are removed, the first characters of every line mark it as part of the record,
and passages that plainly address the judge are withheld.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.local.addressing.phrases import without_phrases
from mast_trace_judge.local.addressing.recognition import addresses_reader, clean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

WITHHELD = "[a passage that addresses the reader of this record was withheld]"

_HEAD = 0.65
"""Share of a clipped text for its beginning; causes come early, results late."""
_REPEATED = 80
"""Characters from which a repeated text is replaced by a reference."""
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


@dataclass(frozen=True)
class RenderOptions:
    """The lengths to which texts are clipped.

    Attributes:
        clip: characters of each text of an ordinary step.
        full: the same of steps that are shown in full.
        task: characters of the task.
    """

    clip: int = 1_000_000
    full: int = 1_000_000
    task: int = 8000


@dataclass
class Renderer:
    """Writes the steps of one run.

    Attributes:
        nonce: the mark of the fences; removed from the run's own texts.
        in_full: steps that are not clipped.
    """

    trajectory: Trajectory
    nonce: str
    options: RenderOptions = field(default_factory=RenderOptions)
    in_full: Collection[int] = frozenset()
    _texts: dict[str, int] = field(default_factory=dict)
    # Shared by copies with other options: sanitising costs far more than clipping.
    _sanitised: dict[str, str] = field(default_factory=dict)

    @property
    def marks(self) -> tuple[str, str]:
        """The marks of the beginning and the end of what a reader is shown."""
        return nonce(self.nonce, "begin")[:6], nonce(self.nonce, "end")[:6]

    def record(self, steps: Sequence[Step] | None = None) -> str:
        """Return the record between its fences.

        Args:
            steps: those to include, in order; all if not given.
        """
        self._texts = {}
        shown = self.trajectory.read_steps if steps is None else steps
        return self.fenced("record", "\n".join(self._lines(shown)))

    def _lines(self, steps: Sequence[Step]) -> Iterable[str]:
        """Yield each step, and a placeholder line for steps that were not read."""
        begin, end = self.trajectory.unread_from, self.trajectory.unread_to
        for place, step in enumerate(steps):
            if begin < end == step.index and (place == 0 or steps[place - 1].index < begin):
                yield f"[steps {begin} to {end - 1} are not in this record: it is too long]"
            yield self.step(step)

    def fenced(self, name: str, body: str) -> str:
        """Put text between fences that it cannot close."""
        return f"<<{name} {self.nonce}>>\n{body}\n<<end {name} {self.nonce}>>"

    def task(self) -> str:
        """Return the task of the run and its recorded outcome."""
        run = self.trajectory
        lines = [*self.quoted(run.task or "(not recorded)", self.options.task)]
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
                lines.extend(self.quoted(value, self.options.task))
        return self.fenced("task", "\n".join(lines))

    def step(self, step: Step) -> str:
        """Return one step: a heading line and its texts, each line marked."""
        limit = self.options.full if step.index in self.in_full else self.options.clip
        lines = [f"[{step.index}] {self._heading(step)}"]
        if step.arguments:
            lines.append("  arguments:" if step.kind is StepKind.TOOL else "  asks for:")
            lines.extend(self.quoted(step.arguments, limit))
            if step.text:
                lines.append("  result:" if step.kind is StepKind.TOOL else "  says:")
        earlier = self._texts.setdefault(step.text, step.index)
        if earlier != step.index and len(step.text) >= _REPEATED:
            lines.append(f"  (the same text as in step {earlier})")
        elif step.text:
            lines.extend(self.quoted(step.text, limit))
        elif not step.arguments:
            lines.append(f"  ({'content not recorded' if step.content_hash else 'no text'})")
        if step.error:
            lines.append("  error:")
            lines.extend(self.quoted(step.error, limit))
        return "\n".join(lines)

    def quoted(self, text: str, limit: int) -> Iterable[str]:
        """Return the lines of a text of the run, sanitised, clipped and marked as the run's."""
        return [f"  | {line}" for line in clip(self._evidence(text), limit).split("\n")]

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
