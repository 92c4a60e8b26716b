"""The simulated teams of the benchmark, which the tests draw fewer experiments of."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "feedback"))
