"""The weight of a verdict's evidence, and the effect of replays on it.

A decisive error has a rank: confirmed by replay > exact > model > calibrated guess > guess > silence.
A step that replays confirm replaces the judge's; a candidate that they refute loses its mass, which the
others share in proportion: P(step | not the refuted ones) = P(step) / (1 - P(refuted)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_judge.verdict import (
    MOST_PLACES,
    Candidate,
    DecisiveError,
    Evidence,
    Place,
    Rank,
    Verdict,
)

if TYPE_CHECKING:
    from mast_trace_judge.confirmation import Confirmation, ConfirmationStatus

PROVED: Final[tuple[ConfirmationStatus, ...]] = ("confirmed", "repairable", "systematic")
"""Conclusions whose origin, if they have one, is the decisive error."""
WITHOUT_A_STEP: Final[tuple[ConfirmationStatus, ...]] = ("overdetermined", "diffuse")
"""Conclusions by which no single step is decisive."""
WITHOUT_EFFECT: Final[tuple[ConfirmationStatus, ...]] = ("untested", "unstable", "not isolated")
"""Conclusions that say nothing about any step, because the replays cannot be compared."""
RULE: Final = "confirmed by replay"
"""The rule of a step that replays have confirmed."""


def proved_step(confirmation: Confirmation | None) -> int | None:
    """Return the step that replays have shown to be decisive; None if there is none.

    It is the origin alone. The point of no return is where repair became impossible, which may be
    later; the error may lie before it.
    """
    if confirmation is None or confirmation.status not in PROVED:
        return None
    return confirmation.origin


def refuted_steps(confirmation: Confirmation | None) -> tuple[int, ...]:
    """Return the steps whose correction made no difference; none where replays cannot be compared."""
    if confirmation is None or confirmation.status in WITHOUT_EFFECT:
        return ()
    return tuple(step for step in confirmation.refuted if step != proved_step(confirmation))


def has_effect(confirmation: Confirmation | None) -> bool:
    """Return whether replays have changed the verdict, so that labels tell nothing of its candidates."""
    if confirmation is None:
        return False
    settled = proved_step(confirmation) is not None or confirmation.status in WITHOUT_A_STEP
    return settled or bool(refuted_steps(confirmation))


def as_shown(verdict: Verdict, confirmation: Confirmation | None) -> Verdict:
    """Return a verdict with its rank, and with what replays of the run have shown.

    A verdict on a run that succeeded, or without a confirmation, has the same findings as before.
    """
    if confirmation is None or verdict.outcome == "success":
        told = verdict
    elif (step := proved_step(confirmation)) is not None:
        told = _confirmed(verdict, confirmation, step)
    else:
        told = _without(verdict, confirmation)
    shown = told.model_copy(update={"confirmation": confirmation})
    return shown.model_copy(update={"rank": rank_of(shown)})


def rank_of(verdict: Verdict) -> Rank | None:
    """Return the kind of evidence for the decisive error; None where none is named."""
    error = verdict.decisive
    if error is None:
        return None
    if error.step == proved_step(verdict.confirmation):
        return "confirmed by replay"
    kinds = {
        mode.evidence
        for mode in verdict.modes
        if error.step in mode.steps and (mode.evidence is not Evidence.MODEL or mode.quotes)
    }
    if Evidence.EXACT in kinds:
        return "exact"
    if Evidence.MODEL in kinds or error.step == verdict.model_step:
        return "model"
    return "calibrated guess" if verdict.calibrated else "guess"


def _confirmed(verdict: Verdict, confirmation: Confirmation, step: int) -> Verdict:
    """Put the confirmed step in place of the judge's, and of all candidates."""
    former = verdict.decisive if verdict.decisive and verdict.decisive.step == step else None
    known = next((each for each in verdict.candidates if each.step == step), None)
    agent = confirmation.origin_agent or (known.agent if known else "")
    span_id = confirmation.origin_span_id or (known.span_id if known else "")
    fix = _best_fix(confirmation, step) or (former.minimal_fix if former else "")
    error = DecisiveError(
        step=step,
        agent=agent,
        probability=1.0,
        rule=RULE,
        reason=confirmation.text,
        minimal_fix=fix,
        span_id=span_id,
    )
    candidate = Candidate(step=step, agent=agent, probability=1.0, rule=RULE, span_id=span_id)
    place = _place(verdict, confirmation, step, agent, span_id)
    gone = {step, *refuted_steps(confirmation)}
    others = tuple(each for each in verdict.look_first if each.step not in gone)
    return verdict.model_copy(
        update={
            "decisive": error,
            "candidates": (candidate,),
            "look_first": (place, *others)[:MOST_PLACES],
            "abstained": False,
        }
    )


def _place(
    verdict: Verdict, confirmation: Confirmation, step: int, agent: str, span_id: str
) -> Place:
    """Return the confirmed place, with the sentence and the quotes that the record gives for it.

    Replays show that a step was decisive; only the record shows in which way it was wrong.
    """
    known = next((each for each in verdict.look_first if each.step == step), None)
    if known is not None and known.basis == "record":
        return known.model_copy(update={"basis": "confirmed", "agent": agent, "span_id": span_id})
    return Place(step=step, agent=agent, basis="confirmed", why=confirmation.text, span_id=span_id)


def _best_fix(confirmation: Confirmation, step: int) -> str:
    """Return the text of the fix with the strongest evidence at a step."""
    alone = [each for each in confirmation.contrasts if each.step == step and not each.also]
    tried = [each for each in alone if each.fix_text]
    return max(tried, key=lambda each: each.e_value).fix_text if tried else ""


def _without(verdict: Verdict, confirmation: Confirmation) -> Verdict:
    """Take the refuted steps out of a verdict."""
    refuted = set(refuted_steps(confirmation))
    lost = sum(each.probability for each in verdict.candidates if each.step in refuted)
    left = tuple(
        each.model_copy(update={"probability": _share(each.probability, lost)})
        for each in verdict.candidates
        if each.step not in refuted
    )
    error = verdict.decisive
    gone = error is not None and (error.step in refuted or confirmation.status in WITHOUT_A_STEP)
    if error is not None and not gone:
        error = error.model_copy(update={"probability": _share(error.probability, lost)})
    return verdict.model_copy(
        update={
            "candidates": left,
            "look_first": tuple(each for each in verdict.look_first if each.step not in refuted),
            "decisive": None if gone else error,
            "abstained": verdict.abstained or gone,
        }
    )


def _share(probability: float, lost: float) -> float:
    """Return a probability on condition that some steps with the sum ``lost`` are not the one."""
    rest = 1.0 - lost
    return round(min(1.0, probability / rest), 6) if lost and rest > 0 else probability
