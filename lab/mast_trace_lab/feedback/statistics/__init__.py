"""Statistics of experiments: what outcomes by arm and task allow to say. Pure functions."""
