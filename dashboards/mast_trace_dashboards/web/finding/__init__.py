"""Pages on which runs, steps and texts are found: inputs, costs, groups, search, the queue of labels."""
