"""The programs of the instrumentations' own tests, where a framework takes much to set up."""

import sys
from pathlib import Path

INSTRUMENTATIONS = Path(__file__).parents[2] / "instrumentations"
for framework in ("ag2", "crewai", "metagpt"):
    sys.path.append(str(INSTRUMENTATIONS / framework))
