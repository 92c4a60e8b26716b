"""Draws the web view of the demo in a real browser: its list, its most interesting run, and that beside a good one.

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

FOLDER = Path(__file__).parent
DEMO = (sys.executable, "-m", "mast_trace_dashboards", "demo", "--keep")
CHROMIUM = "/usr/bin/chromium"
_RUN = re.compile(r"http://\S+/runs/[0-9a-f]{32}")


def main() -> None:
    """Run the demo, open the list and the run that it names, and keep the pictures."""
    # Without this its output would stay in a buffer, for it goes on running.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(DEMO, stdout=subprocess.PIPE, text=True, env=environment) as demo:
        assert demo.stdout is not None
        address = next(found[0] for line in demo.stdout if (found := _RUN.search(line)))
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            home, _, run = address.partition("/runs/")
            for name, shown, height in (
                ("runs", home, 640),
                ("run", address, 1350),
                ("compare", f"{home}/compare?run={run}", 900),
            ):
                page = browser.new_page(viewport={"width": 1200, "height": height})
                page.goto(shown, wait_until="networkidle")
                page.screenshot(path=FOLDER / f"{name}.png")
            browser.close()
        demo.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
