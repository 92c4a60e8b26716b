"""The names of all environment variables of mast-trace, so that a misspelt one is noticed.

The collector's and the judge's are here as well: they are no mistake in an agent's environment. A
test holds `NAMES` equal to the settings of all programs, and writes it.
"""

from __future__ import annotations

import difflib
import logging
import os
from dataclasses import dataclass
from typing import Final

logger = logging.getLogger("mast_trace")

PREFIX: Final = "MAST_TRACE_"
OTHERS: Final = (
    *(
        "CARRY_RUNS",
        "CLICKHOUSE_DATABASE",
        "CLICKHOUSE_HOST",
        "CLICKHOUSE_PASSWORD",
        "CLICKHOUSE_PORT",
    ),
    *(
        "CLICKHOUSE_USER",
        "CONFIG",
        "DATA",
        "DB_PASSWORD",
        "FEEDBACK_KEY",
        "FEEDBACK_URL",
        "FLUSH_ON_SIGTERM",
    ),
    *("READER_PASSWORD", "REPLAY", "REPLAY_TASK", "WRITE_GOLDEN"),
)
"""Variables that are no setting of collector, judge or web view: of traced programs, of Grafana, of the examples, of replays, of tests."""
NAMES: Final = (
    "ALERT_COLLECTORS",
    "ALERT_COLLECTOR_KEY",
    "ALERT_DAILY_BUDGET_USD",
    "ALERT_INTERVAL_SECONDS",
    "ALERT_WEBHOOK",
    "ALERT_WEB_URL",
    "ALLOW_INSECURE_BIND",
    "BATCH_MAX_AGE_SECONDS",
    "BATCH_MAX_BYTES",
    "BATCH_MAX_SPANS",
    "BODY_GRACE_SECONDS",
    "CLICKHOUSE_PASSWORD",
    "CLICKHOUSE_PORT",
    "DATABASE_URL",
    "DATA_DIR",
    "DRAIN_TIMEOUT_SECONDS",
    "DUPLICATE_WINDOW",
    "GRPC_ENABLED",
    "GRPC_PORT",
    "HEADER_TIMEOUT_SECONDS",
    "HOST",
    "HTTP_PORT",
    "INSERT_THREADS",
    "JUDGE_API_KEY",
    "JUDGE_ATTEMPTS",
    "JUDGE_BASE_URL",
    "JUDGE_CANDIDATES",
    "JUDGE_CONCURRENCY",
    "JUDGE_ENABLED",
    "JUDGE_MAX_OUTPUT_TOKENS",
    "JUDGE_MAX_TOKENS_PER_RUN",
    "JUDGE_MAX_USD_PER_DAY",
    "JUDGE_MODEL",
    "JUDGE_PRICES",
    "JUDGE_PROFILES_DIR",
    "JUDGE_REASONING_EFFORT",
    "JUDGE_RULES",
    "JUDGE_RUN_TIMEOUT_SECONDS",
    "JUDGE_SAMPLES",
    "JUDGE_SAMPLE_RATE",
    "JUDGE_TEMPERATURE",
    "JUDGE_TIMEOUT_SECONDS",
    "JUDGE_WINDOW_TOKENS",
    "KEEP_ALIVE_SECONDS",
    "KEYS_FILE",
    "LOG_FORMAT",
    "LOG_LEVEL",
    "MAX_ATTRIBUTES",
    "MAX_BODY_BYTES",
    "MAX_CONNECTIONS",
    "MAX_DECOMPRESSED_BYTES",
    "MAX_DECOMPRESSION_SECONDS",
    "MAX_HEADERS",
    "MAX_HEADER_BYTES",
    "MAX_INFLIGHT_BYTES",
    "MAX_NESTING",
    "MAX_VALUES",
    "MIN_BODY_BYTES_PER_SECOND",
    "OWN_PRICES",
    "REQUEST_TIMEOUT_SECONDS",
    "RETRY_INITIAL_SECONDS",
    "RETRY_MAX_SECONDS",
    "RUN_IDLE_SECONDS",
    "RUN_QUIET_SECONDS",
    "SHUTDOWN_TIMEOUT_SECONDS",
    "SPOOL_MAX_BYTES",
    "SPOOL_MIN_FREE_BYTES",
    "TLS_CERT_FILE",
    "TLS_KEY_FILE",
    "WEB_HOST",
    "WEB_MCP_WRITES",
    "WEB_PORT",
    "WEB_PROJECT_HEADER",
    "WEB_PUBLIC_NAMES",
    "WEB_RIGHTS",
    "WEB_SESSION_HOURS",
    "WEB_TLS_CERT_FILE",
    "WEB_TLS_KEY_FILE",
    "WEB_TOKEN",
    "WEB_TRUSTED_PROXIES",
    "WEB_USER_HEADER",
    "WORKER_BATCH",
    "WORKER_CONCURRENCY",
    "WORKER_LOOKBACK_DAYS",
    "WORKER_PATTERNS",
    "WORKER_PATTERN_NAMES",
    "WORKER_PATTERN_NAME_TOKENS",
    "WORKER_POLL_SECONDS",
    "WORKER_RETRY_MAX_SECONDS",
)
"""The settings."""
_TESTS: Final = "TEST_"
_COMPLETION: Final = "_MAST_TRACE_COMPLETE"
"""Set by a shell that completes a command line, in the middle of which a warning would be written."""
_warned: set[str] = set()


def warn_of_unknown_variables() -> None:
    """Warn once of each variable that looks like one of mast-trace and is none."""
    if _COMPLETION in os.environ:
        return
    for variable in sorted(os.environ):
        name = variable.removeprefix(PREFIX)
        if name == variable or name.startswith(_TESTS) or variable in _warned:
            continue
        if name not in NAMES and name not in OTHERS:
            _warned.add(variable)
            close = difflib.get_close_matches(name, (*NAMES, *OTHERS), n=1)
            hint = f" Did you mean {PREFIX}{close[0]}?" if close else ""
            logger.warning("Nothing reads the environment variable %s.%s", variable, hint)


@dataclass(frozen=True)
class EffectiveSetting:
    """The effective value of a setting.

    Attributes:
        name: of the setting.
        value: as text, with passwords masked.
        origin: ``argument``, the name of a variable, the path of a file, or ``default``.
    """

    name: str
    value: str
    origin: str
