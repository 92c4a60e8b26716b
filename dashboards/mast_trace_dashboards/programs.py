"""Your programs, as the configuration file declares them: a table `[programs.NAME]` for each.

A program is found by the name of a run that it made, or by the service of the run. Commands come from this file and from
the command line alone, never from the store or from a trace: whoever can send spans must not be able to
choose what this machine starts.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from mast_trace.exceptions import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


FILE: Final = Path("mast-trace.toml")
"""The configuration file where no other is named: that of the current folder."""
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def _divided(value: Any) -> Any:
    """Return the words of a text, as a shell would; nothing else is changed."""
    if isinstance(value, bool):  # `true` is a command, too
        return [str(value).lower()]
    try:
        return shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"cannot read {value!r}: {error}") from None


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Word = Annotated[str, Field(min_length=1)]
Words = Annotated[tuple[_Word, ...], Field(min_length=1), BeforeValidator(_divided)]
"""A command: the program and its arguments, which no shell reads; a text is divided at its spaces."""
_Names = Annotated[tuple[_Word, ...], BeforeValidator(_listed)]


class ProgramTable(BaseModel):
    """A table of the file, without other keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)


_Made = TypeVar("_Made", bound=ProgramTable)


class Limits(ProgramTable):
    """The budget of one experiment on one run.

    Attributes:
        calls: live model calls.
        usd: US dollars; needs the prices of the models.
        runs: replays.
    """

    calls: PositiveInt | None = None
    usd: PositiveFloat | None = None
    runs: PositiveInt | None = None


class Program(ProgramTable):
    """A program of yours, and how it is replayed.

    Attributes:
        command: the program and its arguments.
        oracle: reads a final answer on standard input and ends with 0 or 1; without it the program
            records the outcome.
        reset: restores the state outside the program before each replay.
        live_tools: names of tools that may be executed, which needs ``reset``; ``all`` for every tool.
        plain: names of tools that may be executed because they change nothing.
        run: place of the recorded run among the runs that the program makes, from 1; those before it are answered from
            their own records, and later ones are left out.
        clock: whether a replay's clock starts when the recorded run did, where time-machine is installed.
        masks: whether the masks that are kept with a run hold, and others are proposed.
        preload: modules that are imported once; replays are forked from there. Without it: the libraries of the run's
            framework, where that changes no replay; an empty list forks none.
        budget: limits of one experiment.
        timeout: seconds of one replay.
        oracle_timeout: seconds of one question to the oracle, and of one reset.
        allow_hosts: addresses to which the program may connect.
        jobs: replays at the same time.
        resample: whether the model is asked again as a correction.
        stronger_model: name of a model that is asked as a correction.
        expected: the right final answer, which no correction may hold; ``@FILE`` reads it from a file.
        phrasings: writer of the sentences that a planted fault makes an agent say: ``rules``, or ``model``, the judge's
            model, whose sentences are checked.
        tasks: file with a task in each line; it replaces ``{task}`` in the command of a self-test.
    """

    command: Words
    oracle: Words | None = None
    reset: Words | None = None
    live_tools: _Names = ()
    plain: _Names = ()
    run: PositiveInt | None = None
    clock: bool = True
    masks: bool = True
    preload: _Names | None = None
    budget: Limits = Limits()
    timeout: PositiveFloat = 120.0
    oracle_timeout: PositiveFloat = 60.0
    allow_hosts: _Names = ()
    jobs: int = Field(1, ge=1, le=16)
    resample: bool = True
    stronger_model: str = ""
    expected: str = ""
    phrasings: Literal["rules", "model"] = "rules"
    tasks: str = ""

    @property
    def executed(self) -> tuple[str, ...]:
        """Names of all tools that may be executed; ``*`` for every tool."""
        return tuple("*" if name == "all" else name for name in (*self.live_tools, *self.plain))


def config_file(given: Path | None) -> Path | None:
    """Return the file of ``--config``, else `FILE` if there is one."""
    return given if given or not FILE.is_file() else FILE


def read_file(file: Path) -> dict[str, Any]:
    """Return the tables of a file that names commands.

    Raises:
        ConfigurationError: the file cannot be read, or can be changed by every user of the machine.
    """
    try:
        written = tomllib.loads(file.read_text(encoding="utf-8"))
        shared = file.stat().st_mode & stat.S_IWOTH
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{file}: cannot be read as TOML: {error}") from error
    if shared and "programs" in written:
        raise ConfigurationError(
            f"{file} can be changed by every user of this machine, and names commands that are "
            f"started: chmod o-w {file}"
        )
    return written


def programs_of(file: Path | None) -> dict[str, Any]:
    """Return the programs of a file as they are written, by name; none without a file.

    Raises:
        ConfigurationError: see `read_file`.
    """
    written = read_file(file).get("programs", {}) if file else {}
    if not isinstance(written, dict) or not all(
        isinstance(each, dict) for each in written.values()
    ):
        raise ConfigurationError(f"{file}: programs are tables, such as [programs.trip]")
    return written


def any_declared() -> bool:
    """Return whether the file that commands read by themselves names a program."""
    given = os.environ.get("MAST_TRACE_CONFIG")
    try:
        return bool(programs_of(config_file(Path(given) if given else None)))
    except ConfigurationError:
        return False


def program_of(
    programs: Mapping[str, Any],
    names: Sequence[str],
    *,
    command: Sequence[str] = (),
    given: Sequence[str] = (),
) -> Program:
    """Return the program of the first name that is declared, with what the command line says besides.

    Args:
        programs: see `programs_of`.
        names: of the program: those of a run and of its service.
        command: the program itself; it comes before the declared one.
        given: values of ``--set``, which come before those of the file.

    Raises:
        ConfigurationError: there is no such program and no command, or a value cannot be used.
    """
    name = next((each for each in names if each in programs), "")
    values = {**programs.get(name, {}), **({"command": [*command]} if command else {})}
    for each in given:
        _set(values, each)
    where = f"programs.{name}" if name else "--set"
    if "command" not in values:
        # Another key may be a misspelt command.
        validated(Program, {**values, "command": "?"}, where)
        key = name or next(filter(None, reversed(names)), "NAME")
        key = key if _BARE.fullmatch(key) else json.dumps(key)
        known = f" (it has {', '.join(sorted(programs))})" if programs and not name else ""
        raise ConfigurationError(
            f"name your program after --, such as -- python my_team.py, or write [programs.{key}] with "
            f'command = "python my_team.py" into {FILE}{known}'
        )
    return validated(Program, values, where)


def _set(values: dict[str, Any], given: str) -> None:
    """Set ``KEY=VALUE``; a value that is none of TOML is a text, and one of a list is added to it."""
    key, equals, text = given.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"--set takes KEY=VALUE, not {given!r}")
    try:
        made = tomllib.loads(f"{key} = {text}")
    except tomllib.TOMLDecodeError:
        try:
            made = tomllib.loads(f"{key} = {json.dumps(text)}")
        except tomllib.TOMLDecodeError:
            raise ConfigurationError(f"--set takes KEY=VALUE, not {given!r}") from None
    for name, value in made.items():
        before = values.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            values[name] = {**before, **value}
        elif name in _LISTS:
            values[name] = [*_listed(before or []), *_listed(value)]
        else:
            values[name] = value


_LISTS: Final = frozenset({"live_tools", "plain", "preload", "allow_hosts"})


def validated(kind: type[_Made], values: Mapping[str, Any], where: str) -> _Made:
    """Return a table as an object.

    Raises:
        ConfigurationError: a key is unknown or its value cannot be used.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        lines = [
            f"{'.'.join(map(str, (where, *each['loc'])))}: {_text(each)}" for each in error.errors()
        ]
        raise ConfigurationError("\n".join(lines)) from None


def _text(error: Any) -> str:
    # A traced program may read its table without the collector's requirements.
    from mast_trace_collector.settings import plain

    return _SAID.get(error["type"]) or plain(str(error["msg"]))


_SAID: Final = {
    "extra_forbidden": "there is no such key",
    "tuple_type": "it takes a text or a list of texts",
    "model_type": "it takes a table, such as { calls = 200 }",
}
"""Words for errors whose own ones speak of Python."""
