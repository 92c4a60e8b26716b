"""No test here may reach a model that the developer has set up."""

from judge.worker.conftest import no_model_of_the_developer

__all__ = ["no_model_of_the_developer"]
