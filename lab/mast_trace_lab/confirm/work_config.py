"""The configuration of `mast-trace confirm work`: commands by service, and the budget of a day.

Commands come from this file alone, never from the store or from a trace: whoever can send spans must not
be able to choose a program that this machine starts.
"""

from __future__ import annotations

import stat
import sys
from pathlib import Path  # pydantic reads it at run time
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.llm.budget import Price  # pydantic reads it at run time
from mast_trace_lab.program.budget import Budget
from mast_trace_lab.program.setup import Setup, setup_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
"""A command: the program and its arguments, which no shell reads."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ServiceCommands(_Table):
    """The commands for failed runs of one service.

    Attributes:
        command: the program that makes the runs.
        oracle: reads a final answer on standard input and ends with 0 or 1; without it the program
            records the outcome.
        reset: restores the state outside the program before each replay.
        timeout: seconds of one replay.
        oracle_timeout: seconds of one question to the oracle, and of one reset.
        live_tools: names of tools that may be executed; ``all`` for every tool.
        allow_hosts: addresses to which the program may connect.
        stronger_model: name of a model that is asked at a step, as a source of fixes.
        preload: modules that are imported once for each run; its replays are forked from there.
        max_calls: live model calls for one run.
        max_usd: US dollars for one run; needs prices.
        max_runs: replays for one run.
    """

    command: Words
    oracle: Words | None = None
    reset: Words | None = None
    timeout: PositiveFloat = 120.0
    oracle_timeout: PositiveFloat = 60.0
    live_tools: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    stronger_model: str = ""
    preload: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    max_calls: PositiveInt | None = None
    max_usd: PositiveFloat | None = None
    max_runs: PositiveInt | None = None

    def setup(self) -> Setup:
        """Return the setup of a confirmation."""
        return setup_of(
            self.command,
            oracle=self.oracle,
            reset=self.reset,
            live_tools=self.live_tools,
            hosts=self.allow_hosts,
            timeout=self.timeout,
            check_timeout=self.oracle_timeout,
            stronger_model=self.stronger_model,
        )

    def budget(self) -> Budget:
        """Return the budget of one run."""
        return Budget(self.max_calls, self.max_usd, self.max_runs)


class WorkConfig(_Table):
    """The file of ``--config``.

    Attributes:
        max_calls_per_day: live model calls of all replays of a UTC day.
        max_usd_per_day: their US dollars; needs prices.
        poll_seconds: pause between looks for failed runs.
        lookback_days: runs that ended earlier are left alone.
        prices: of models, by name.
        services: commands by the service name of the runs; runs of other services are left alone.
    """

    max_calls_per_day: PositiveInt
    max_usd_per_day: PositiveFloat | None = None
    poll_seconds: PositiveFloat = 60.0
    lookback_days: PositiveInt = 7
    prices: dict[str, Price] = Field(default_factory=dict)
    services: dict[str, ServiceCommands] = Field(min_length=1)

    @model_validator(mode="after")
    def _costs_need_prices(self) -> Self:
        capped = self.max_usd_per_day or any(each.max_usd for each in self.services.values())
        if capped and not self.prices:
            raise ValueError("a limit in dollars needs [prices]")
        return self


def load_work_config(file: Path) -> WorkConfig:
    """Read the configuration.

    Raises:
        ConfigurationError: the file cannot be read, holds an unknown or unusable key, or can be
            changed by every user of the machine.
    """
    try:
        if file.stat().st_mode & stat.S_IWOTH:
            raise ConfigurationError(
                f"{file} can be changed by every user of this machine, and names commands that are "
                f"started: chmod o-w {file}"
            )
        written = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{file}: cannot be read as TOML: {error}") from error
    try:
        return WorkConfig.model_validate(written)
    except ValidationError as error:
        raise ConfigurationError("\n".join(f"{file}: {line}" for line in _lines(error))) from None


def _lines(error: ValidationError) -> list[str]:
    return [f"{_place(each['loc'])}{_text(each)}" for each in error.errors()]


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) + ": " if location else ""


def _text(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "there is no such key"
    return str(error["msg"]).removeprefix("Value error, ")
