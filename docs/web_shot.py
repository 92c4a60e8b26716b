"""Draws ``docs/run.png``: the web view of the demo's most interesting run, in a real browser.

::

    python docs/web_shot.py        # needs the extras all and demo, playwright, and Debian's chromium
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SHOT = Path(__file__).parent / "run.png"
DEMO = (sys.executable, "-m", "mast_trace_dashboards", "demo", "--keep")
CHROMIUM = "/usr/bin/chromium"
_RUN = re.compile(r"http://\S+/runs/[0-9a-f]{32}")


def main() -> None:
    """Run the demo, open the run that it names, and keep the picture."""
    # Without this its output would stay in a buffer, for it goes on running.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(DEMO, stdout=subprocess.PIPE, text=True, env=environment) as demo:
        assert demo.stdout is not None
        address = next(found[0] for line in demo.stdout if (found := _RUN.search(line)))
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1100, "height": 1400})
            page.goto(address, wait_until="networkidle")
            page.screenshot(path=SHOT)
            browser.close()
        demo.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
