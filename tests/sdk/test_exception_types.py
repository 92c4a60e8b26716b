"""Exceptions of tools that are rebuilt from their recorded type and text."""

from __future__ import annotations

import json
import sys

import pytest

from mast_trace.result_types import exception_of, exception_type


class NoOrder(LookupError, ValueError):
    """An exception of a program, whose constructor needs more than a text."""

    def __init__(self, number: int, *, code: str) -> None:
        super().__init__(f"no order {number}")
        self.code = code


class Refuses(Exception):
    """An exception that cannot be derived from."""

    def __init_subclass__(cls) -> None:
        raise TypeError("final")


class NoKey(KeyError):
    """A class of a program's own with a builtin's text."""


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no such order"),
        KeyError("kettle"),
        OSError(2, "No such file", "x"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
        json.JSONDecodeError("Expecting value", "x", 0),
        NoOrder(7, code="gone"),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_its_class_and_its_text_are_kept(error: Exception) -> None:
    again = exception_of(str(error), exception_type(error))
    assert isinstance(again, type(error))
    assert (str(again), type(again).__name__) == (str(error), type(error).__name__)


@pytest.mark.parametrize("error", [KeyError("kettle"), KeyError(7), NoKey("no kettle")])
def test_a_key_that_was_missing_is_the_argument_again(error: KeyError) -> None:
    """The text of a `KeyError` spells its key, and programs show agents the one or the other."""
    again = exception_of(str(error), exception_type(error))
    assert again is not None
    assert (again.args, str(again), repr(again)) == (error.args, str(error), repr(error))


def test_what_a_constructor_would_have_set_is_missing_with_a_word() -> None:
    again = exception_of("no order 7", exception_type(NoOrder(7, code="gone")))
    with pytest.raises(AttributeError, match=r"holds the text of .*NoOrder alone.*'code'"):
        _ = again.code  # type: ignore[union-attr]
    assert getattr(again, "code", None) is None


def test_nothing_is_imported_because_a_record_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)
    again = exception_of("x", "raises this.Nowhere < LookupError < ValueError")
    assert isinstance(again, LookupError)
    assert isinstance(again, ValueError)
    assert (type(again).__name__, "this" in sys.modules) == ("Nowhere", False)


@pytest.mark.parametrize(
    "name",
    [
        "raises builtins.SystemExit < SystemExit",  # would end the program
        "raises builtins.print",
        "raises sys.modules",
        "raises shop.<locals>.Gone < os",
        f"raises {__name__}.Nothing",
    ],
)
def test_a_record_that_names_no_exception_gives_one_all_the_same(name: str) -> None:
    again = exception_of("x", name)
    assert isinstance(again, Exception)
    assert str(again) == "x"


def test_without_a_type_or_a_class_to_derive_from_there_is_none() -> None:
    assert exception_of("x", "") is exception_of("x", "string") is None
    assert exception_of("x", exception_type(Refuses("x"))) is None
