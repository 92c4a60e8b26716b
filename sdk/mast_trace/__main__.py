"""``python -m mast_trace doctor``: the one command that the SDK has without the collector."""

from __future__ import annotations

import sys

from mast_trace import doctor

if __name__ == "__main__":
    if sys.argv[1:2] != ["doctor"]:
        sys.exit("usage: python -m mast_trace doctor [--endpoint URL] [--json] [--quick]")
    sys.exit(doctor.main(sys.argv[2:]))
