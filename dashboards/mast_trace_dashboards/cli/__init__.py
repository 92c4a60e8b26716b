"""The `mast-trace` command.

On a machine with the SDK alone only this module can be imported; it names the missing packages.
"""

from __future__ import annotations

import sys

_OURS = "mast_trace"


def main() -> None:
    """Run the command line; the exit status is 0, 1 (not found, or a "no") or 2 (misused)."""
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


def _with_the_sdk_alone(missing: str) -> int:
    if sys.argv[1:2] == ["doctor"]:
        from mast_trace import doctor

        return int(doctor.main(sys.argv[2:]))
    sys.stderr.write(
        f"mast-trace: the command line needs {missing}, which is not installed.\n"
        "Install everything:      pip install 'mast-trace[all]'\n"
        "With the example runs:   pip install 'mast-trace[all,demo]'\n"
        "The SDK alone can say:   mast-trace doctor\n"
    )
    return 2
