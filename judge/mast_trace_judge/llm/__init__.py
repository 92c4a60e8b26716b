"""The judge's model layer: any OpenAI-compatible endpoint reads a run and answers in JSON.

Nothing that a model says is taken as it is: steps are numbers that must exist, agents are derived
from them, quotes are looked up in the run, and an answer that cannot be read is no answer.
"""
