"""The configuration of `mast-trace confirm work`: the programs of the configuration file, and the budget of a day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, PositiveFloat, PositiveInt

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.programs import (
    FILE,
    Program,
    ProgramTable,
    program_of,
    programs_of,
    read_file,
    validated,
)

if TYPE_CHECKING:
    from pathlib import Path


class WorkConfig(ProgramTable):
    """The table ``[confirm]`` of the configuration file, and its programs.

    Attributes:
        max_calls_per_day: live model calls of all replays of a UTC day.
        max_usd_per_day: their US dollars; needs prices.
        poll_seconds: pause between looks for failed runs.
        lookback_days: runs that ended earlier are left alone.
        programs: by their names; runs of other programs are left alone.
    """

    max_calls_per_day: PositiveInt
    max_usd_per_day: PositiveFloat | None = None
    poll_seconds: PositiveFloat = 60.0
    lookback_days: PositiveInt = 7
    programs: dict[str, Program] = Field(min_length=1)


def load_work_config(file: Path | None) -> WorkConfig:
    """Read the configuration.

    Raises:
        ConfigurationError: there is no file, it cannot be read, holds an unknown or unusable key, or can be
            changed by every user of the machine.
    """
    if file is None:
        raise ConfigurationError(
            f"name your programs and the budget of a day in {FILE}, or by --config"
        )
    written, programs = read_file(file), programs_of(file)
    if not programs or "confirm" not in written:
        raise ConfigurationError(f"{file}: the worker needs [programs.NAME] and [confirm]")
    found = {name: program_of(programs, [name]) for name in programs}
    return validated(WorkConfig, {**written["confirm"], "programs": found}, "confirm")
