"""Tests of the store without a model of the developer."""

from judge.worker.conftest import no_model_of_the_developer

__all__ = ["no_model_of_the_developer"]
