"""What a reader of the benchmark's figures has to know."""

NOTES = (
    (
        "Cross-validated rows: five folds, grouped by question, averaged over many partitions. The "
        "features were chosen on these runs, so expect slight optimism."
    ),
    "In-sample rows use the shipped profile, which was trained on the same runs.",
    (
        "Calibration error: ten bins. The figure in brackets is what probabilities that are exactly "
        "right would show by chance on so few runs: below it, the error proves nothing against a "
        "method. Rows that join profile and models are calibrated on the folds that are not scored; "
        "from ten partitions to another ten their error moves by 0.03. The two numbers by which the "
        "cascade is calibrated were fitted to these runs."
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
