"""The write side: spans of runs, agents, messages, model calls and tool calls."""
