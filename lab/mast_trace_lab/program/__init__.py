"""Runs a user's program again and again, each time under a limit and all within a budget; a killed loop goes on."""
