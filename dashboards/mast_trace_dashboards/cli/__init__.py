"""The `mast-trace` command.

On a machine with the SDK alone only this module can be imported; it names the missing packages.
"""

from __future__ import annotations

import gc
import sys
from importlib import metadata

_OURS = "mast_trace"
_OLDEST_TYPER = (0, 15)
"""Older ones fail in the middle of a command with today's click; MetaGPT pins one."""
NEW_OBJECTS = 50_000
"""New objects after which Python looks for cycles among them, instead of 700.

Most objects of a command live to its end, and hardly any are in a cycle. The searches took a tenth of the
processor time of `runs`, and a quarter of that of `show` for a run of 200,000 spans (`benchmarks/large/`).
"""


def main() -> None:
    """Run the command line; the exit status is 0, 1 (not found, or a "no") or 2 (misused)."""
    gc.set_threshold(NEW_OBJECTS)
    if old := _old_typer():
        sys.exit(
            _with_the_sdk_alone(
                "typer 0.15 or newer",
                f"Here is {old}, which MetaGPT pins: use"
                " an environment of its own for the command line.\n",
            )
        )
    try:
        from mast_trace_dashboards.cli.app import run

        # Commands are imported when they are called: only then may a package turn out to be
        # missing.
        status = run(sys.argv[1:])
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(_OURS):
            raise
        sys.exit(_with_the_sdk_alone(error.name or "a package"))
    sys.exit(status)


def _old_typer() -> str:
    """Return the installed version where it is too old; empty otherwise."""
    try:
        version = metadata.version("typer")
        numbers = tuple(int(part) for part in version.split(".")[:2])
    except (metadata.PackageNotFoundError, ValueError):
        return ""
    return version if numbers < _OLDEST_TYPER else ""


def _with_the_sdk_alone(missing: str, more: str = "") -> int:
    if sys.argv[1:2] == ["doctor"]:
        from mast_trace import doctor

        return int(doctor.main(sys.argv[2:]))
    sys.stderr.write(
        f"mast-trace: the command line needs {missing}, which is not installed.\n{more}"
        "Install everything:      pip install 'mast-trace[all]'\n"
        "With the example runs:   pip install 'mast-trace[all,demo]'\n"
        "The SDK alone can say:   mast-trace doctor\n"
    )
    return 2
