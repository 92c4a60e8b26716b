"""Fits a profile to labels of people, confirmed replays and planted faults, and measures its worth."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution import conclude
from mast_trace_judge.local.attribution.features import FEATURES
from mast_trace_judge.local.attribution.profile import Profile, likeness_of, run_hash
from mast_trace_judge.local.attribution.recorded import ALL_FEATURES, hands_over
from mast_trace_judge.study.training import FEWEST_LABELS, constant_hits
from mast_trace_judge.verdict import SHOWN_FROM
from mast_trace_lab.fit.decision import (
    Threshold,
    cross_fitted,
    decide,
    fit_threshold,
    present_judge,
)
from mast_trace_lab.fit.detector import detect, fingerprints
from mast_trace_lab.fit.gate import PHRASES, POSITION, STEPS, OnPeople, gate
from mast_trace_lab.fit.gate import nested as nested_people
from mast_trace_lab.fit.labels import INJECTION, PERSON, Label, labels_from, prevalence, units_of
from mast_trace_lab.fit.models import (
    JOINT,
    OPERATOR,
    PLAIN,
    SCENARIO,
    HeldOutLabels,
    Mass,
    Recipe,
    cells,
    concluded,
    held_out,
    trained,
)
from mast_trace_lab.fit.report import (
    Abstention,
    Condition,
    FitReport,
    HeldOutRun,
    PeopleGain,
    SchemeScore,
)
from mast_trace_lab.fit.scoring import (
    Hit,
    hit,
    hits_of,
    mean_interval,
    operator_scores,
    scheme_score,
    untrained,
)
from mast_trace_lab.inject.dataset import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from mast_trace_judge.study.labelled import LabelledRun

UNTRAINED: Final = "untrained"
REPEATS: Final = 3
"""Partitions over which the plain score is averaged."""


def fit_on(
    labelled: Sequence[LabelledRun],
    *,
    name: str = "own",
    sources: Collection[str] = SOURCES,
    trained_on: str = "",
    old: Profile | None = None,
    reserved: Sequence[LabelledRun] = (),
    seed: int = 0,
    repeats: int = REPEATS,
    progress: Callable[[str, int, int], None] = lambda _what, _done, _total: None,
) -> FitReport:
    """Fit a profile, and measure it on runs, operators and scenarios that it has not seen.

    Nothing is written: ``report.profile.to_json()`` is the file that the judge reads, and ``report.decision.better``
    says whether it should replace the present judge. ``report.held_out`` has each labelled run before and after
    fitting, for your own tables. Six hundred runs take ten seconds of a processor.

    Args:
        labelled: runs with their labels, as `stored_labels`, `fitting.sources` and `read_injected` give them. The
            source is the run's ``subset`` where that is ``replay`` or ``injection``, else it is ``person``.
        name: of the profile.
        sources: the sources that are used; see `SOURCES`.
        trained_on: description of the runs.
        old: the profile that the new one would replace; it is compared with.
        reserved: runs that are not learned from; the new profile is scored on them at the end.
        seed: of the partitions into folds.
        repeats: partitions over which the plain score is averaged.
        progress: called with a stage's name, steps done, and steps in all.

    Raises:
        ConfigurationError: fewer than `FEWEST_LABELS` runs have a label, or numpy or scipy is missing.
    """
    labels = labels_from(labelled, sources)
    if len(labels) < FEWEST_LABELS:
        raise ConfigurationError(
            f"{len(labels)} labelled runs are too few to fit a profile: {FEWEST_LABELS} at least"
        )
    fit = _Fit(labels, seed, repeats, progress)
    found = fit.report(name, trained_on, old)
    return replace(
        found, reserved=tuple(_on_reserved(labels_from(reserved, sources), found.profile))
    )


class _Fit:
    """The steps of a fit."""

    def __init__(
        self,
        labels: list[Label],
        seed: int,
        repeats: int,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self.labels, self.seed, self.repeats = labels, seed, repeats
        self._progress = progress
        self.units, self.unit = units_of(labels)
        names = ALL_FEATURES if any(map(_needs_record, labels)) else FEATURES
        self.recipe = Recipe(names, 1.0, prevalence(labels), seed)
        self.told = {
            i: untrained(each) for i, each in enumerate(labels) if each.run.step is not None
        }
        self.before = {i: hit(labels[i], told) for i, told in self.told.items()}
        self.planted = [i for i, label in enumerate(labels) if label.source == INJECTION]
        scored = [i for i in self.before if labels[i].source == PERSON]
        # The judge names no step in a run that calls itself a success, so it cannot be scored there.
        scored = [i for i in scored if labels[i].run.trajectory.outcome != "success"]
        self.people = frozenset(scored if len(scored) >= FEWEST_LABELS else ())

    def report(self, name: str, trained_on: str, old: Profile | None) -> FitReport:
        """Fit, measure and decide."""
        labels = self.labels
        refused = fingerprints(labels, self.units, self.recipe, self._stage("Words of operators"))
        gone = {each.feature for each in refused}
        self.recipe = replace(
            self.recipe, names=tuple(each for each in self.recipe.names if each not in gone)
        )
        nested = None
        if self.people:
            stage = self._stage("People's labels", STEPS)
            nested = nested_people(labels, self.units, self.recipe, stage)
            self.recipe = replace(self.recipe, of_injected=nested.weight)
        masses = {scheme: self._masses(scheme) for scheme in (SCENARIO, OPERATOR, JOINT)}
        unseen = {**masses[JOINT], **(nested.fitted if nested else {})}
        plain = [hits_of(labels, self._masses(PLAIN, self.seed + i)) for i in range(self.repeats)]
        hits = {scheme: hits_of(labels, found) for scheme, found in masses.items()}
        present = present_judge(labels, old, self._cells(JOINT), self.recipe)
        constant = self._constant()
        people = self._gain(present.hits, nested, constant)
        detected = detect(labels)
        shown = hits if self.planted else {SCENARIO: hits[SCENARIO]}
        rounds = {UNTRAINED: [self.before], PLAIN: plain, **{s: [h] for s, h in shown.items()}}
        scores = [scheme_score(scheme, self.units, each) for scheme, each in rounds.items()]
        known = tuple(each for each in scores if each is not None)
        return FitReport(
            profile=replace(
                self._profile(name, trained_on, unseen),
                excluded={each.feature: each.operator for each in refused},
                uncertain=tuple(each.operator for each in detected if each.uncertain),
                scores=_shares(known[-1]) if len(known) > 1 else {},
                injected_weight=self.recipe.of_injected if nested and self.planted else None,
            ),
            given=_counts(labels),
            scenarios=len({label.scenario for label in labels}),
            originals=len({labels[i].origin for i in self.planted}),
            unit=self.unit,
            scores=known,
            operators=tuple(operator_scores(labels, self.before, {PLAIN: plain[0], **hits})),
            fingerprints=tuple(refused),
            detected=tuple(detected),
            abstention=self._abstention(unseen),
            people=people,
            gate=tuple(self._gate(hits[JOINT], people)) if self.planted else (),
            decision=decide(
                labels, present, hits_of(labels, unseen), people, self.units, self.unit, constant
            ),
            held_out=tuple(self._held_out(unseen)),
            labels_without_step=sum(label.example.gold is None for label in labels),
            repairable=sum(label.run.extra.get("decisive") is False for label in labels),
        )

    def _stage(self, what: str, total: int = 0) -> Callable[[], None]:
        """Return a function that reports one more step of a stage."""
        done = 0
        self._progress(what, done, total)

        def advance() -> None:
            nonlocal done
            done += 1
            self._progress(what, done, total)

        return advance

    def _cells(self, scheme: str, seed: int | None = None) -> list[HeldOutLabels]:
        return cells(self.labels, self.units, scheme, self.seed if seed is None else seed)

    def _masses(
        self, scheme: str, seed: int | None = None, names: tuple[str, ...] | None = None
    ) -> dict[int, Mass]:
        """Return held-out probabilities, with all features of the recipe or with fewer."""
        found = self._cells(scheme, seed)
        recipe = self.recipe if names is None else replace(self.recipe, names=names)
        advance = self._stage(f"Held out: {scheme}", len(found))
        return held_out(self.labels, found, recipe, advance=advance)

    def _constant(self) -> dict[int, float]:
        """Return where one step that is always named is right; planted faults and others choose theirs apart."""
        planted = [label.source == INJECTION for label in self.labels]
        divided = [
            (own, [i for i in cell.train if planted[i] == kind])
            for cell in self._cells(JOINT)
            for kind in (True, False)
            if (own := [i for i in cell.test if planted[i] == kind])
        ]
        return constant_hits([label.example for label in self.labels], divided)

    def _gain(
        self, present: Mapping[int, Hit], nested: OnPeople | None, constant: Mapping[int, float]
    ) -> PeopleGain | None:
        """Return the gain on people's labels."""
        if nested is None:
            return None
        fitted, alone = (hits_of(self.labels, each) for each in (nested.fitted, nested.people_only))
        places = sorted(self.people & fitted.keys() & alone.keys())
        if not places:
            return None
        return PeopleGain(
            runs=len(places),
            before=fmean(present[i].step for i in places),
            people_only=fmean(alone[i].step for i in places),
            fitted=fmean(fitted[i].step for i in places),
            difference=mean_interval(
                self.units, {i: fitted[i].step - present[i].step for i in places}
            ),
            of_injection=mean_interval(
                self.units, {i: fitted[i].step - alone[i].step for i in places}
            ),
            constant=fmean(constant[i] for i in places),
        )

    def _gate(self, joint: Mapping[int, Hit], people: PeopleGain | None) -> list[Condition]:
        baselines = {
            what: hits_of(self.labels, self._masses(JOINT, names=names))
            for what, names in (("position", POSITION), ("phrases", PHRASES))
        }
        return gate(self.labels, self.before, joint, baselines, people, unit=self.unit)

    def _measured_on(self, unseen: Mapping[int, Mass]) -> dict[int, Mass]:
        """Return the probabilities on which abstention is measured: of people's runs, if there are enough."""
        people = {i: mass for i, mass in unseen.items() if i in self.people}
        return people or dict(unseen)

    def _profile(self, name: str, trained_on: str, unseen: Mapping[int, Mass]) -> Profile:
        """Train on all labels."""
        labels = self.labels
        model = trained(labels, self.recipe, thorough=True)
        if model is None:
            raise ConfigurationError("none of the labels names a step or an agent that acts")
        threshold = fit_threshold(labels, self._measured_on(unseen))
        own = sorted({label.framework for label in labels} - {""})
        used = [label for label in labels if self.recipe.of_injected or label.source != INJECTION]
        return Profile(
            name=name,
            weights=dict(zip(self.recipe.names, model.weights, strict=True)),
            frameworks=tuple(own),
            trained_on=trained_on,
            labels=len(used),
            settings=model.settings,
            likeness=likeness_of([label.run.trajectory for label in used]),
            runs=tuple(sorted({run_hash(label.run.trajectory) for label in used})),
            folded_by=self.unit,
            sources=_counts(used),
            calibration=threshold.calibration,
            abstain_below=threshold.least,
        )

    def _thresholds(self, unseen: Mapping[int, Mass]) -> dict[int, Threshold]:
        return cross_fitted(self.labels, unseen, self.units, self.seed)

    def _abstention(self, unseen: Mapping[int, Mass]) -> Abstention | None:
        """Count judgements before and after fitting, with thresholds from other scenarios."""
        measured = {i: mass for i, mass in self._measured_on(unseen).items() if i in self.before}
        if not measured:
            return None
        limits = self._thresholds(measured)
        named, right = 0, 0
        for place, mass in measured.items():
            label, limit = self.labels[place], limits[place]
            decisive = concluded(label, mass, limit.calibration, limit.least).decisive
            named += decisive is not None
            right += decisive is not None and decisive.step == label.run.step
        before = [self.told[i].decisive for i in measured]
        steps = [self.labels[i].run.step for i in measured]
        return Abstention(
            runs=len(measured),
            named_before=sum(each is not None for each in before),
            right_before=sum(
                each is not None and each.step == step
                for each, step in zip(before, steps, strict=True)
            ),
            named=named,
            right=right,
        )

    def _held_out(self, unseen: Mapping[int, Mass]) -> Iterator[HeldOutRun]:
        """Yield each labelled run, before and after fitting."""
        limits = self._thresholds(unseen)
        for place, label in enumerate(self.labels):
            first = self.told.get(place) or untrained(label)
            limit = limits.get(place)
            after = (
                concluded(label, unseen[place], limit.calibration, limit.least)
                if limit is not None
                else None
            )
            old = first.candidates[0] if first.candidates else None
            new = after.candidates[0] if after is not None and after.candidates else None
            yield HeldOutRun(
                name=label.run.name,
                source=label.source,
                operator=label.operator,
                mode=label.mode,
                framework=label.framework,
                scenario=label.scenario,
                step=label.run.step,
                agent=label.run.agent,
                before=old.step if old else None,
                before_agent=old.agent if old else "",
                before_named=first.decisive is not None,
                after=new.step if new else None,
                after_agent=new.agent if new else "",
                after_named=after is not None and after.decisive is not None,
                modes_found=tuple(
                    each.code for each in label.findings if each.probability >= SHOWN_FROM
                ),
            )


def _counts(labels: Sequence[Label]) -> dict[str, int]:
    counts = Counter(label.source for label in labels)
    return {source: counts[source] for source in SOURCES if counts[source]}


def _needs_record(label: Label) -> bool:
    """Return whether a label can be learned only from features of recorded runs.

    Few labels of people are learned better from few features.
    """
    steps, step = label.run.trajectory.steps, label.run.step
    known = step is not None and step < len(steps)
    return label.source != PERSON or (known and hands_over(steps[step or 0]))


def _on_reserved(labels: Sequence[Label], profile: Profile) -> Iterator[SchemeScore]:
    """Yield the scores of the untrained cascade and of the profile on runs of reserved operators."""
    known = {i: label for i, label in enumerate(labels) if label.run.step is not None}
    before = {i: hit(label, untrained(label)) for i, label in known.items()}
    after = {
        i: hit(
            label,
            conclude(
                label.trajectory,
                *profile.distribution(label.trajectory),
                label.findings,
                profile,
            ),
        )
        for i, label in known.items()
    }
    for scheme, hits in ((UNTRAINED, before), ("fitted", after)):
        if (
            found := scheme_score(scheme, [label.scenario for label in labels], [hits])
        ) is not None:
            yield found


def _shares(score: SchemeScore) -> dict[str, float]:
    """Return the scores that a profile keeps."""
    found = {"step": score.step, "top 3": score.top_3}
    if score.agent is not None:
        found = {"agent": score.agent, **found}
    return {what: round(value, 3) for what, value in found.items()}
