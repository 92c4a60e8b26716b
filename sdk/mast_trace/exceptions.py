"""The hierarchy of the errors that mast-trace raises on purpose.

::

    MastTraceError
    |-- ConfigurationError (also a ValueError)
    |-- InstrumentationError
    |   `-- UnsupportedVersion
    |-- CollectorError
    |   |-- RunErased
    |   `-- StorageError
    |       `-- SchemaMismatch
    `-- JudgeError
        |-- VerdictUnreadable
        |-- BudgetExhausted
        |   `-- RunTokensExhausted
        `-- EndpointUnavailable

The SDK raises only `ConfigurationError` and `InstrumentationError`, and only out of
`mast_trace.instrument()` itself: never out of an agent's call.
"""


class MastTraceError(Exception):
    """The base of all errors; its text states what happened and the remedy."""


class ConfigurationError(MastTraceError, ValueError):
    """A setting has a value that cannot be used."""


class InstrumentationError(MastTraceError):
    """A framework that was named explicitly cannot be instrumented."""


class UnsupportedVersion(InstrumentationError):
    """The installed version of a framework is outside the supported range."""


class CollectorError(MastTraceError):
    """The collector cannot do what it was asked to do."""


class StorageError(CollectorError):
    """The span store cannot be opened, read or written."""


class SchemaMismatch(StorageError):
    """The tables in the database belong to another version of mast-trace."""


class RunErased(CollectorError):
    """The run was erased: the store keeps nothing about it any more."""


class JudgeError(MastTraceError):
    """A run could not be judged."""


class VerdictUnreadable(JudgeError):
    """The model's answer is not a verdict; the run stays unscored, with this as the reason."""


class BudgetExhausted(JudgeError):
    """The next call would exceed the token or cost budget of the run or the day."""


class RunTokensExhausted(BudgetExhausted):
    """The next call would exceed the tokens of the run, or of the one name; others can be asked about."""


class EndpointUnavailable(JudgeError):
    """The model's endpoint gives no answer now; the local layers judge without it."""
