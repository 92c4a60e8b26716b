"""Settings that record the origin of each of their values."""

from __future__ import annotations

import difflib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import PrivateAttr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from mast_trace.environment import PREFIX, EffectiveSetting, warn_of_unknown_variables
from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import masked

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class DocumentedSetting(EffectiveSetting):
    """The effective value of a setting, and the variable that changes it.

    Attributes:
        variable: the environment variable that would set it.
        meaning: its description.
    """

    variable: str
    meaning: str


class ProcessSettings(BaseSettings):
    """Base of each process's settings: arguments, then environment, then file, then defaults.

    A sub-class names its table in the configuration file and declares its fields; each field's
    description is its only documentation.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", env_ignore_empty=True)

    table: ClassVar[str]
    fallback_table: ClassVar[str] = ""
    """Table whose settings of these names apply where this one has none: they were in that table
    before, or both tables have them.
    """
    moved: ClassVar[frozenset[str]] = frozenset()
    """Settings that were in this table before and belong to another now."""
    arrays: ClassVar[dict[str, str]] = {}
    """Settings that are arrays of tables of their own, by the name of the array."""

    # pydantic evaluates annotations of private attributes when the class is made.
    _file: Path | None = PrivateAttr(default=None)
    _from_file: frozenset[str] = PrivateAttr(default=frozenset())
    _arguments: frozenset[str] = PrivateAttr(default=frozenset())

    @classmethod
    def load(cls, file: Path | None = None, **arguments: Any) -> Self:
        """Read the settings.

        Args:
            file: a TOML file whose table of this name holds settings; other tables are left alone.
            **arguments: settings of the command line; None means not given.

        Raises:
            ConfigurationError: the file cannot be read, or a setting is unknown or unusable.
        """
        warn_of_unknown_variables()
        given = {name: value for name, value in arguments.items() if value is not None}
        written = {} if file is None else cls._read(file)
        filed = {
            name: value
            for name, value in written.items()
            if name not in given and not os.environ.get(variable_of(name))
        }
        try:
            settings = cls(**filed, **given)
        except ValidationError as error:
            raise ConfigurationError(_explain(error, file, frozenset(filed))) from None
        except SettingsError as error:  # a variable of a table that is no JSON
            name = next((each for each in cls.model_fields if f'"{each}"' in str(error)), "")
            raise ConfigurationError(f"{variable_of(name)}: it must be JSON") from None
        settings._file = file
        settings._from_file = frozenset(filed)
        settings._arguments = frozenset(given)
        return settings

    @classmethod
    def _read(cls, file: Path) -> dict[str, Any]:
        try:
            written = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{file}: cannot be read as TOML: {error}") from error
        table, fallback = written.get(cls.table, {}), written.get(cls.fallback_table, {})
        if not isinstance(table, dict):
            raise ConfigurationError(f"{file}: [{cls.table}] is no table")
        for name in table.keys() - cls.moved:
            if name not in cls.model_fields:
                close = difflib.get_close_matches(name, cls.model_fields, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise ConfigurationError(f"{file}: [{cls.table}] has no setting {name}{hint}")
        others = fallback.items() if isinstance(fallback, dict) else ()
        return {
            **{name: value for name, value in others if name in cls.model_fields},
            **{name: value for name, value in table.items() if name not in cls.moved},
            **{name: written[array] for array, name in cls.arrays.items() if array in written},
        }

    def effective(self) -> list[DocumentedSetting]:
        """Every setting, in the order of declaration, with its value and its origin."""
        return [
            DocumentedSetting(
                name=name,
                value=_shown(name, getattr(self, name)),
                origin=self._origin(name),
                variable=variable_of(name),
                meaning=field.description or "",
            )
            for name, field in type(self).model_fields.items()
        ]

    def _origin(self, name: str) -> str:
        if name in self._arguments:
            return "argument"
        if name in self._from_file:
            return str(self._file)
        if os.environ.get(variable_of(name)):
            return variable_of(name)
        return "argument" if name in self.model_fields_set else "default"


def variable_of(name: str) -> str:
    """The environment variable that sets the setting of this name."""
    return PREFIX + name.upper()


def _shown(name: str, value: Any) -> str:
    """A setting's value without secrets."""
    if isinstance(value, list | tuple):
        return ", ".join(_shown(name, each) for each in value)
    return masked(str(value), always=name.endswith("_url"))


_PLAIN: Final = {
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid dictionary": "a table",
    "a valid string": "a text",
    "a valid list": "a list",
    "less than or equal to": "at most",
    "greater than or equal to": "at least",
}
"""Words of ours for those in which pydantic says what a value should be."""


def plain(problem: str) -> str:
    """Return what is wrong with a value, without pydantic's words for it."""
    told = problem.removeprefix("Value error, ")
    if not told.startswith("Input should be "):
        return told
    told = told.removeprefix("Input should be ").partition(", unable to")[0]
    for theirs, ours in _PLAIN.items():
        told = told.replace(theirs, ours)
    return f"it must be {told}"


def _explain(error: ValidationError, file: Path | None, filed: frozenset[str]) -> str:
    """Name the invalid setting and its origin, without repeating its value."""
    lines = []
    for problem in error.errors(include_input=False, include_url=False):
        name = str(problem["loc"][0]) if problem["loc"] else ""
        where = f"{file}: {name}" if name in filed else f"{name} ({variable_of(name)})"
        lines.append(f"{where if name else 'settings'}: {plain(problem['msg'])}")
    return "\n".join(lines)
