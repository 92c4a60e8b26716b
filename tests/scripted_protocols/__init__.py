"""Local servers that speak the protocols of model providers, for the real clients in tests."""
