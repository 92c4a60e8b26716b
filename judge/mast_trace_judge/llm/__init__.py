"""The judge's model layer: any OpenAI-compatible endpoint reads a run and answers in JSON.

A model's answer is verified: steps are numbers that must exist, agents are derived from them,
quotes are looked up in the run, and an unreadable answer is no answer.
"""
