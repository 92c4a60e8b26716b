"""The settings of the judge and of its worker."""

from __future__ import annotations

import os
from pathlib import Path  # pydantic reads it at run time
from typing import TYPE_CHECKING, ClassVar

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import SettingsConfigDict

from mast_trace.urls import check_key, parse_url
from mast_trace_collector.config import RUN_IDLE_SECONDS
from mast_trace_collector.settings import ProcessSettings
from mast_trace_judge.llm.budget import Price  # noqa: TC001  # pydantic reads it at run time
from mast_trace_judge.run_rule import RunRule  # noqa: TC001  # likewise

if TYPE_CHECKING:
    from typing_extensions import Self


_OF_OPENAI = {"judge_base_url": "OPENAI_BASE_URL", "judge_api_key": "OPENAI_API_KEY"}
"""The variables of the OpenAI clients that replace empty settings."""


class JudgeConfig(ProcessSettings):
    """The settings of the judge: `[judge]` in the configuration file."""

    # Empty settings are validated too: the variables replace them there.
    model_config = SettingsConfigDict(validate_default=True)

    table: ClassVar[str] = "judge"
    arrays: ClassVar[dict[str, str]] = {"rules": "judge_rules"}

    judge_model: str = Field(
        "",
        description="Model that reads the runs; several, with commas between, vote as a panel. "
        "Empty: the local layers judge alone.",
    )
    judge_base_url: str = Field(
        "",
        description="OpenAI-compatible endpoint; OPENAI_BASE_URL if empty. One that ends in /responses or /messages is "
        "asked by OpenAI's Responses or Anthropic's Messages.",
    )
    judge_api_key: SecretStr = Field(
        SecretStr(""), description="Key of the endpoint; OPENAI_API_KEY if empty."
    )
    judge_profiles_dir: Path | None = Field(
        None,
        description="Folder of attribution profiles (*.json), such as `mast-trace judge fit` "
        "writes; they are tried before the shipped ones.",
    )
    judge_rules: tuple[RunRule, ...] = Field(
        (),
        description="Rules of your own, each a table `[[rules]]` of the configuration file; as JSON in the variable.",
    )
    judge_sample_rate: float = Field(
        1.0,
        ge=0,
        le=1,
        description="Share of the runs that the model reads. Runs that failed, or that rules found "
        "at fault with certainty, are always read.",
    )
    judge_max_tokens_per_run: PositiveInt = Field(
        200_000, description="Tokens that judging one run may take; beyond, the local layers judge."
    )
    judge_max_usd_per_day: NonNegativeFloat | None = Field(
        None,
        description="US dollars that all model calls of a UTC day may cost; needs judge_prices.",
    )
    judge_samples: int = Field(
        1,
        ge=1,
        le=9,
        description="Times that each model reads a run. More than once: its readings vote, and their "
        "agreement is reported; needs a judge_temperature above 0.",
    )
    judge_prices: dict[str, Price] = Field(
        default_factory=dict,
        description='US dollars per million tokens by model, as JSON: {"model": {"input": 1.0, '
        '"cached": 0.1, "output": 4.0}}.',
    )
    judge_concurrency: PositiveInt = Field(
        8, description="Most calls at a time to the endpoint; fewer when it is overloaded."
    )
    judge_timeout_seconds: PositiveFloat = Field(
        60.0, description="Longest wait for one answer of the model."
    )
    judge_run_timeout_seconds: PositiveFloat = Field(
        600.0, description="Longest time that the model may take over one run."
    )
    judge_attempts: PositiveInt = Field(5, description="Times that a failing call is made in all.")
    judge_temperature: float | None = Field(
        0.0, description="Sampling temperature; left out where the model does not take one."
    )
    judge_max_output_tokens: PositiveInt = Field(
        8192, description="Longest answer, a model's reasoning included."
    )
    judge_reasoning_effort: str = Field(
        "", description="Effort of a model that reasons, such as low or high; its own if empty."
    )
    judge_window_tokens: int = Field(
        64_000,
        ge=2000,
        description="Longest record that the model reads at once, or less where its context is smaller. Longer "
        "texts are shortened, and longer runs are read in parts.",
    )
    judge_candidates: int = Field(
        0,
        ge=0,
        le=2,
        description="Suggested steps that the model is asked to write as they should have been, a call each, for "
        "`mast-trace confirm`.",
    )

    @field_validator("judge_base_url")
    @classmethod
    def _base_url_of_openai(cls, value: str) -> str:
        value = value or os.environ.get(_OF_OPENAI["judge_base_url"], "")
        return parse_url(value).text if value else value

    @field_validator("judge_api_key")
    @classmethod
    def _key_of_openai(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value():
            return value
        return SecretStr(os.environ.get(_OF_OPENAI["judge_api_key"], ""))

    @model_validator(mode="after")
    def _key_can_be_sent(self) -> Self:
        if self.models:
            check_key(self.judge_api_key.get_secret_value(), "judge_api_key (or OPENAI_API_KEY)")
        return self

    @model_validator(mode="after")
    def _capped_models_have_prices(self) -> Self:
        unpriced = [model for model in self.models if model not in self.judge_prices]
        if self.judge_max_usd_per_day is not None and unpriced:
            raise ValueError(f"judge_max_usd_per_day needs a price of {', '.join(unpriced)}")
        return self

    @field_validator("judge_rules")
    @classmethod
    def _have_names_of_their_own(cls, value: tuple[RunRule, ...]) -> tuple[RunRule, ...]:
        names = [rule.name for rule in value]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"several rules are called {', '.join(twice)}")
        return value

    @model_validator(mode="after")
    def _samples_can_differ(self) -> Self:
        if self.judge_samples > 1 and self.judge_temperature == 0.0:
            raise ValueError(
                f"judge_samples = {self.judge_samples} needs a judge_temperature above 0, such as 1.0: "
                "at 0 a model repeats its answer, and the agreement means nothing"
            )
        return self

    def _origin(self, name: str) -> str:
        origin = super()._origin(name)
        stand_in = _OF_OPENAI.get(name, "")
        return stand_in if origin == "default" and os.environ.get(stand_in) else origin

    @property
    def models(self) -> tuple[str, ...]:
        """The models that read the runs, each once."""
        names = (name.strip() for name in self.judge_model.split(","))
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def uses_model(self) -> bool:
        """True if a model can be asked: one is named, and its address or key is known."""
        return not self.why_no_model

    @property
    def why_no_model(self) -> str:
        """The reason why no model reads the runs; empty if one does."""
        if not self.models:
            return "MAST_TRACE_JUDGE_MODEL is not set"
        if self.judge_base_url or self.judge_api_key.get_secret_value():
            return ""
        return (
            f"MAST_TRACE_JUDGE_MODEL names {', '.join(self.models)}, but there is neither a key "
            "(MAST_TRACE_JUDGE_API_KEY or OPENAI_API_KEY) nor an address (MAST_TRACE_JUDGE_BASE_URL)"
        )


class WorkerConfig(ProcessSettings):
    """The settings of the worker: `[worker]` in the configuration file."""

    table: ClassVar[str] = "worker"
    fallback_table: ClassVar[str] = "collector"

    worker_concurrency: PositiveInt = Field(
        8, description="Most runs that are judged with the model at a time."
    )
    worker_batch: PositiveInt = Field(
        200, description="Most finished runs that are fetched at a time."
    )
    worker_poll_seconds: PositiveFloat = Field(
        0.5, description="Pause between looks for finished runs when there was none."
    )
    worker_lookback_days: PositiveInt = Field(
        7,
        description="Runs to which nothing has come for so many days are left alone, also by a new "
        "version of the judge; `mast-trace judge run --since` judges them.",
    )
    worker_patterns: bool = Field(
        True,
        description="Keep track of failures that recur over runs; of several workers, one does it.",
    )
    worker_pattern_names: NonNegativeInt = Field(
        5,
        description="Most patterns that the judge's model, if there is one, is asked to name in one pass; passes are "
        "a minute or more apart. 0: it names none.",
    )
    worker_pattern_name_tokens: int = Field(
        8000, ge=4000, description="Tokens that naming one pattern may take."
    )
    worker_retry_max_seconds: PositiveFloat = Field(
        30.0, description="Longest pause while the database does not answer."
    )
    run_quiet_seconds: PositiveFloat = Field(
        5.0, description="A run whose root has ended is finished after this long without a span."
    )
    run_idle_seconds: PositiveFloat = RUN_IDLE_SECONDS
