"""Plants faults in successful runs."""
