"""The report of a fit: scores on held-out runs, gain on people's labels, gate, and the decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.study.agreement import Interval
    from mast_trace_lab.fit.detector import Detected, Fingerprint

Status = Literal["passed", "failed", "not examined"]


@dataclass(frozen=True)
class HeldOutRun:
    """A labelled run, with what the judge says of it before and after fitting, neither of which has seen it.

    After fitting, operator and scenario of the run were both left out of the training.

    Attributes:
        name: of the run in its set: id of the fault for ``injection``.
        source: ``person``, ``replay`` or ``injection``.
        operator: operator of the planted fault; empty for other sources.
        mode: its failure mode; empty for a fault of the environment and for other sources.
        framework: of the run.
        scenario: runs of one task share it.
        step: the labelled step; None where only an agent is known.
        agent: the labelled agent; empty where nobody is to blame.
        before: likeliest step of the untrained cascade with the rules' findings; None without one.
        before_agent: its agent.
        before_named: whether that judge names it as decisive, and does not abstain.
        after: likeliest step of the fitted profile; None where none could be trained without the run.
        after_agent: its agent.
        after_named: whether the fitted judge names it, with a threshold fitted to other scenarios.
        modes_found: codes of the failure modes that the rules show in the run.
    """

    name: str
    source: str
    operator: str
    mode: str
    framework: str
    scenario: str
    step: int | None
    agent: str
    before: int | None
    before_agent: str
    before_named: bool
    after: int | None
    after_agent: str
    after_named: bool
    modes_found: tuple[str, ...] = ()


@dataclass(frozen=True)
class SchemeScore:
    """The scores of one way to hold labels out.

    Attributes:
        scheme: its name; ``untrained`` for the judge without a profile.
        runs: scored runs.
        step: share of runs whose likeliest step is the labelled one.
        top_3: share of runs whose labelled step is among the three likeliest.
        agent: share of runs whose agent is right, of those in which somebody is to blame; None if there are none.
        step_interval: bootstrap interval (95 %) of ``step`` over units (`FitReport.unit`); None with fewer than five.
    """

    scheme: str
    runs: int
    step: float
    top_3: float
    agent: float | None
    step_interval: Interval | None


@dataclass(frozen=True)
class OperatorScore:
    """Exact steps of one operator's faults, by the way they were held out.

    Attributes:
        operator: its name.
        mode: its failure mode; empty for a fault of the environment.
        runs: its failures.
        untrained: share of right steps without a profile.
        by_scheme: share by scheme; a scheme in which it could not be held out is missing.
    """

    operator: str
    mode: str
    runs: int
    untrained: float
    by_scheme: Mapping[str, float]


@dataclass(frozen=True)
class Abstention:
    """Judgements on held-out runs, before and after fitting.

    Attributes:
        runs: held-out runs.
        named_before: those in which the judge without a profile named a step.
        right_before: those of them in which it was right.
        named: those in which the fitted judge named a step.
        right: those of them in which it was right.
    """

    runs: int
    named_before: int
    right_before: int
    named: int
    right: int


@dataclass(frozen=True)
class PeopleGain:
    """Exact steps on people's labels alone, in nested cross-validation.

    Attributes:
        runs: people's runs that were scored.
        before: share of right steps of the present judge.
        people_only: share with a profile fitted to people's labels and confirmed replays.
        fitted: share with planted faults as well, their weight chosen without the scored runs.
        difference: interval (95 %) of ``fitted`` - ``before`` over units (`FitReport.unit`); None with fewer than five.
        of_injection: interval of ``fitted`` - ``people_only``.
        constant: share in which one step that is always named is the labelled one, chosen on other runs.
    """

    runs: int
    before: float
    people_only: float
    fitted: float
    difference: Interval | None
    of_injection: Interval | None
    constant: float


@dataclass(frozen=True)
class Condition:
    """A condition of the gate.

    Attributes:
        name: the condition.
        status: ``passed``, ``failed`` or ``not examined``.
        found: what was measured.
    """

    name: str
    status: Status
    found: str


@dataclass(frozen=True)
class Decision:
    """The choice between the new profile and the present judge.

    Attributes:
        better: whether the new profile is better with its interval.
        compared_with: name of the old profile, or the judge without one.
        on: the runs of the comparison, in words.
        runs: their number.
        old: share of right steps of the present judge.
        new: share of the new profile.
        difference: interval (95 %) of ``new`` - ``old`` over units (`FitReport.unit`); None if it could not be measured.
        constant: share of one step that is always named (`constant_hits`).
        held_back: reason why a gain above 0 on those runs is not taken for one; empty if nothing is said against it.
    """

    better: bool
    compared_with: str
    on: str
    runs: int
    old: float
    new: float
    difference: Interval | None
    constant: float = 0.0
    held_back: str = ""


@dataclass(frozen=True)
class FitReport:
    """The result of a fit.

    Attributes:
        profile: the new profile; it is written by the caller.
        given: number of labels by source; the profile has those that it was fitted to, which are fewer where
            people's labels give planted faults no weight.
        scenarios: number of tasks.
        originals: number of original runs of planted faults.
        unit: unit that no fold of scenarios divides: ``task``, ``run`` or ``none``.
        scores: the judge without a profile, then the schemes that could be measured.
        operators: scores by operator.
        fingerprints: refused features.
        detected: results of the detector by operator.
        abstention: judgements on held-out runs; None where nothing could be held out.
        people: gain on people's labels; None where they are too few.
        gate: conditions under which planted faults may be said to help.
        decision: whether the new profile is better than the present judge.
        held_out: each labelled run before and after fitting, operator and scenario held out together.
        reserved: scores on runs of operators that the set reserves, without a profile and with the new one.
        labels_without_step: labels of steps that no profile can name, such as a person's message.
        repairable: labels that are origins of a failure which later steps could have repaired.
    """

    profile: Profile
    given: Mapping[str, int]
    scenarios: int
    originals: int
    unit: str
    scores: tuple[SchemeScore, ...] = ()
    operators: tuple[OperatorScore, ...] = ()
    fingerprints: tuple[Fingerprint, ...] = ()
    detected: tuple[Detected, ...] = ()
    abstention: Abstention | None = None
    people: PeopleGain | None = None
    gate: tuple[Condition, ...] = ()
    decision: Decision | None = None
    held_out: tuple[HeldOutRun, ...] = field(default=(), repr=False)
    reserved: tuple[SchemeScore, ...] = ()
    labels_without_step: int = 0
    repairable: int = 0

    @property
    def passed(self) -> bool:
        """True if every condition of the gate is passed."""
        return bool(self.gate) and all(each.status == "passed" for each in self.gate)
