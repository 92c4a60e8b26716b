"""The picture of the messages between a run's agents, and the choice of what it shows."""
