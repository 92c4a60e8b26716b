"""The read side: a run's spans as a trajectory of steps."""
