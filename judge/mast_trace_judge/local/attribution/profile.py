"""Trained profiles: the features of the decisive step in the runs of one system.

Likeness of a run to the runs that a profile was fitted to.

A run's shape is a handful of numbers, independent of names and topics. A profile keeps the mean and
the spread of each over its own runs: within them its probabilities were measured, outside their
validity is unknown.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import StepKind, Trajectory
from mast_trace_judge.local.acts import by_user
from mast_trace_judge.local.attribution.calibration import Calibration
from mast_trace_judge.local.attribution.features import FEATURES, features
from mast_trace_judge.local.attribution.recorded import ALL_FEATURES, RECORDED, all_features

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


SHAPE = ("steps", "agents", "tools", "code", "length")
"""The numbers of a shape, in their order."""
_COVERED = 0.95
"""The share of a profile's own runs that counts as like them."""
_LEAST_SPREAD = 0.05
"""A number that is the same in all of a profile's runs may still differ a little."""

_REASONS = {
    "first_actor": "first actor",
    "log_position": "its place in the run",
    "last_actor": "last actor",
    "first_turn": "the agent's first turn",
    "log_turn": "the number of the agent's turn",
    "after_tool": "answers a tool's output",
    "before_tool": "its code is run",
    "tool_fails_next": "the tool run after it fails",
    "before_first_failure": "the first failed tool run, or the act before it",
    "introduces_answer": "first mention of the value on which the run ends, or the act before it",
    "surviving_code": "first writer of the code that survives",
    "first_code": "first code of the run",
    "log_numbers": "the figures it states",
    "log_new_words": "how much it brings in",
    "relative_length": "its length",
    "conclusion_words": "it concludes",
    "verification_words": "it speaks of checking",
    "trouble_words": "it speaks of trouble",
    "plan_words": "it plans",
    "worker": "a worker's reply",
    "early_reply": "an early reply of a worker",
    "instructs": "it instructs another agent",
    "repeats": "it repeats the step before",
    "tool_run": "a tool run",
    "tool_failed": "the tool run failed",
    "empty_result": "the tool gave nothing",
    "stale_result": "the tool gave an earlier result again",
    "contradicted_result": "the same call gave another result",
    "unused_result": "nothing uses the result",
    "call_again": "the same call again",
    "unseen_figures": "figures that nothing before it holds",
    "dropped_figures": "it leaves out figures of the result just read",
    "lost_figures": "nothing uses its new figures",
    "corrected_figures": "the next agent names other figures",
    "turn_without_tool": "a turn without a tool run",
    "check_without_tool": "a check without a tool run",
    "shown_less": "the model was shown less than before",
    "hand_over": "a hand-over",
    "receiver_idle": "the receiver of the hand-over runs no tool",
    "receiver_again": "control goes to an agent that has acted before",
    "other_fits_better": "another agent's words are nearer to the task",
    "irregular": "it is irregular",
    "first_irregular": "the first irregular step",
}


@dataclass(frozen=True)
class Likeness:
    """The shapes of a profile's runs.

    Attributes:
        means: of each number of `SHAPE`.
        spreads: the standard deviation of each.
        reach: the distance within which 95 % of the runs lie.
    """

    means: Mapping[str, float] = field(default_factory=dict)
    spreads: Mapping[str, float] = field(default_factory=dict)
    reach: float = 0.0

    def covers(self, trajectory: Trajectory) -> bool:
        """Return whether a run is as near to the middle of the profile's runs as these are."""
        return bool(self.means) and self.distance(shape_of(trajectory)) <= self.reach

    def distance(self, shape: Mapping[str, float]) -> float:
        """Return the root mean square of a shape's deviations, each in standard deviations."""
        squares = [
            ((shape[name] - self.means[name]) / max(self.spreads[name], _LEAST_SPREAD)) ** 2
            for name in SHAPE
        ]
        return math.sqrt(fmean(squares))


def likeness_of(runs: Sequence[Trajectory]) -> Likeness:
    """Measure the shapes of a profile's runs."""
    shapes = [shape_of(run) for run in runs]
    if not shapes:
        return Likeness()
    means = {name: round(fmean(shape[name] for shape in shapes), 4) for name in SHAPE}
    spreads = {name: round(pstdev(shape[name] for shape in shapes), 4) for name in SHAPE}
    measured = Likeness(means, spreads)
    ordered = sorted(measured.distance(shape) for shape in shapes)
    reach = ordered[min(len(ordered) - 1, math.ceil(_COVERED * len(ordered)) - 1)]
    return Likeness(means, spreads, round(reach + 5e-5, 4))


def shape_of(trajectory: Trajectory) -> dict[str, float]:
    """Return the shape of a run; counts and lengths as logarithms, the rest as shares of steps."""
    steps = trajectory.steps
    count = max(1, len(steps))
    return {
        "steps": math.log1p(len(steps)),
        "agents": math.log1p(len({step.agent for step in steps if not by_user(step)})),
        "tools": sum(step.kind is StepKind.TOOL for step in steps) / count,
        "code": sum("```" in step.text for step in steps) / count,
        "length": fmean([math.log1p(len(step.text)) for step in steps]) if steps else 0.0,
    }


def run_hash(trajectory: Trajectory) -> str:
    """Return 16 hexadecimal digits of a run's task and texts, the same wherever it is read from."""
    digest = hashlib.sha256(trajectory.task.encode("utf-8", "surrogatepass"))
    for step in trajectory.steps:
        digest.update(b"\0" + step.text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Profile:
    """Weights of a conditional logit over the steps of a run.

    Attributes:
        name: used in verdicts.
        weights: by feature; a missing feature has weight 0.
        frameworks: values of a run's framework that it applies to; none where the runs that it was
            fitted to do not name theirs.
        trained_on: description of the runs.
        labels: the number of labelled runs.
        scores: cross-validated, from 0 to 1, by measure.
        settings: of the training.
        likeness: the shapes of the runs that it was fitted to.
        runs: `run_hash` of each of them.
        folded_by: unit of the folds of its cross-validation: ``task``, or ``run`` where the
            labelled runs had too few different tasks, or ``none`` where no score could be measured.
        sources: the number of labels by source: ``person``, ``replay``, ``injection``.
        injected_weight: weight of the labels of planted faults beside people's; None where it was not
            chosen on people's labels.
        excluded: features that were refused, each with the operator of `mast-trace inject` that alone
            it would have recognised.
        uncertain: operators whose planted steps can be told from natural ones by their looks.
        calibration: of its probabilities, measured on runs that it had not seen.
        abstain_below: probability of the likeliest step from which it was right often enough in natural
            failures that it had not seen; the judge abstains below it. 0 where it was not measured.
    """

    name: str
    weights: Mapping[str, float]
    frameworks: tuple[str, ...] = ()
    trained_on: str = ""
    labels: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    likeness: Likeness = field(default_factory=Likeness)
    runs: tuple[str, ...] = ()
    folded_by: str = "task"
    sources: Mapping[str, int] = field(default_factory=dict)
    injected_weight: float | None = None
    excluded: Mapping[str, str] = field(default_factory=dict)
    uncertain: tuple[str, ...] = ()
    calibration: Calibration = field(default_factory=Calibration)
    abstain_below: float = 0.0

    @property
    def injection_only(self) -> bool:
        """True if it was fitted to planted faults, and its weights were not chosen on people's labels."""
        return bool(self.sources.get("injection")) and self.injected_weight is None

    @property
    def sees_hand_overs(self) -> bool:
        """True if hand-overs may be decisive for it, and tool results are among its features."""
        return any(name in self.weights for name in RECORDED)

    def fits(self, trajectory: Trajectory) -> bool:
        """True if a run is of one of the profile's frameworks, and like the runs that it was fitted to.

        A run without a framework is compared with the shapes of the runs alone. Names of agents are
        ignored: every team has an expert.
        """
        measured = bool(self.likeness.means)
        if trajectory.framework:
            meant = trajectory.framework in self.frameworks
            return meant and (not measured or self.likeness.covers(trajectory))
        return measured and self.likeness.covers(trajectory)

    def distribution(self, trajectory: Trajectory) -> tuple[dict[int, float], dict[int, str]]:
        """Return the probability of each attributable step, and the reason for it.

        The reason for a step is the feature that raises it most above the run's average.
        """
        read = all_features if self.sees_hand_overs else features
        actors, rows = read(trajectory)
        if not actors:
            return {}, {}
        names = ALL_FEATURES if self.sees_hand_overs else FEATURES
        weights = [self.weights.get(name, 0.0) for name in names]
        probabilities = softmax(
            [sum(w * value for w, value in zip(weights, row, strict=True)) for row in rows]
        )
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        reasons = {
            step: _strongest(weights, row, means) for step, row in zip(actors, rows, strict=True)
        }
        mass = dict(zip(actors, probabilities, strict=True))
        return self.calibration.apply(mass) if self.calibration.share else mass, reasons

    def to_json(self) -> str:
        """Return the profile as JSON text of about two kilobytes."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Read a profile.

        Raises:
            ConfigurationError: the text is no profile, or names features that do not exist.
        """
        try:
            values: dict[str, Any] = json.loads(text)
            values.pop("agents", None)  # key under which runs were selected formerly
            values["frameworks"] = tuple(values.get("frameworks", ()))
            values["runs"] = tuple(values.get("runs", ()))
            values["uncertain"] = tuple(values.get("uncertain", ()))
            values["likeness"] = Likeness(**values.get("likeness", {}))
            values["calibration"] = Calibration(**values.get("calibration", {}))
            profile = cls(**values)
            unknown = set(profile.weights) - set(ALL_FEATURES)
        except (ValueError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"this is no attribution profile: {error}") from error
        if unknown:
            raise ConfigurationError(
                f"profile {profile.name} has unknown features {sorted(unknown)}"
            )
        return profile


def softmax(scores: Sequence[float]) -> list[float]:
    """Turn scores into probabilities that add up to 1."""
    highest = max(scores)
    powers = [math.exp(score - highest) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


@cache
def shipped_profiles() -> tuple[Profile, ...]:
    """Return the profiles that ship with the package."""
    folder = files(__package__) / "profiles"
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=str)
    return tuple(Profile.from_json(entry.read_text(encoding="utf-8")) for entry in found)


def choose_profile(trajectory: Trajectory, own: Iterable[Profile] = ()) -> Profile | None:
    """Return the first profile that applies to a run, the user's own before the shipped ones."""
    return next((p for p in (*own, *shipped_profiles()) if p.fits(trajectory)), None)


def _strongest(weights: Sequence[float], row: Sequence[float], means: Sequence[float]) -> str:
    lifts = [w * (x - m) for w, x, m in zip(weights, row, means, strict=True)]
    best = max(range(len(lifts)), key=lambda place: lifts[place])
    return _REASONS[ALL_FEATURES[best]] if lifts[best] > 0 else ""
