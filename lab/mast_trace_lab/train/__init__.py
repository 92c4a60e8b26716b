"""Trains a small model to name decisive steps, by GRPO with AgenTracer's reward (arXiv 2509.03312).

Reward, prompts, export and division of the examples need the extra `judge` alone; what trains needs the
extra `train`, and is imported when it is called.
"""
