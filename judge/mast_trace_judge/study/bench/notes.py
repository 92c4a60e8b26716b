"""Notes on the benchmark's figures."""

_NOTES = (
    "Cross-validated rows: five folds, grouped by question, averaged over many partitions.",
    (
        "Profiles keep a hash of each run that they were trained on. Rows that use them are parted by it: "
        "in sample are the runs that a profile has seen, out of sample those that none has, another run "
        "of a seen task included. Such a row names what spoke for its runs, each with how many. Other "
        "rows learn nothing from the runs that they are scored on."
    ),
    (
        "Rules and cascade are written by hand and keep no list of runs. Parts of the published sets were "
        "read meanwhile, so that their figures on these sets, healthy runs included, are no promise for "
        "systems that nobody has seen."
    ),
    (
        "Calibration error: ten bins. The figure in brackets is what probabilities that are exactly "
        "right would show by chance on so few runs: below it, the error proves nothing against a "
        "method. Rows that join profile and models are calibrated on the folds that are not scored; "
        "from ten partitions to another ten their error moves by 0.03."
    ),
    (
        "As counterfactuals: a sound answer counts as a correction that would have saved the run with "
        "0.8, which is how verdicts take a model's reading in."
    ),
    (
        "Strict scoring compares step numbers; official scoring, as in the published script, looks for "
        "the gold step's digits anywhere in the predicted step's."
    ),
    "Labels of hand-crafted runs are one team's: see how two teams agree.",
    (
        "MAST v0 is the first draft of the taxonomy, on which people agreed with kappa 0.24 in the "
        "first round, mapped to MAST-14 by name: weak evidence."
    ),
    "The models whose answers were recorded had the right answer of the task in the prompt.",
)
_SEEN = (
    "The features of profiles were chosen on the runs that are in sample, so expect slight optimism of "
    "cross-validated rows, too; the two numbers by which the cascade is calibrated were fitted to them, "
    "and change its calibration error, not the order of the steps."
)


def notes_on(*, any_seen: bool) -> tuple[str, ...]:
    """Return the notes; some hold only where runs are in sample.

    Args:
        any_seen: whether a shipped profile was trained on any of the runs.
    """
    return (*_NOTES, _SEEN) if any_seen else _NOTES
