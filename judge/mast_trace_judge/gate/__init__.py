"""Gates: assertions on runs in tests, failures kept as cases, and a comparison of rates with a baseline."""
