"""Makes docs/demo.svg, the picture in README.md, out of a real run of the demo.

::

    python docs/terminal_shot.py
"""

from __future__ import annotations

import asyncio
import io
import re
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from mast_trace_dashboards.cli.commands.demo import report
from mast_trace_dashboards.cli.render import load
from mast_trace_dashboards.local import demo
from mast_trace_lab.confirm import demo as demo_confirmation

PICTURE = Path(__file__).with_name("demo.svg")
WIDTH = 118
# Rich's own picture loads its font from a server; this one asks nobody for anything.
_FONT_FACE = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
_FORMAT = _FONT_FACE.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code", "ui-monospace, Menlo")
_THEME = TerminalTheme(
    (22, 27, 34),
    (201, 209, 217),
    [
        (72, 79, 88),
        (255, 123, 114),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (201, 209, 217),
    ],
)


async def play(folder: Path, drawn: Console) -> None:
    """Run the demo's agents, and print what was found while the store is open."""
    up = demo.demo_up(folder)
    try:
        running = await up.start()
        await demo.play(running, demo.ACTS)
        finished = await demo.verdicts(up, demo.ACTS)
        featured = demo.featured(finished)
        act = featured.act
        await asyncio.to_thread(
            demo_confirmation.confirm, up.store, featured.row, act.program, act.scenario
        )
        finished = await demo.verdicts(up, demo.ACTS)  # with what the replays have shown
        report(drawn, finished, load(up.store, featured.row["TraceId"]))
    finally:
        await up.stop()


def main() -> None:
    """Run the demo and draw what it prints."""
    drawn = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        asyncio.run(play(Path(folder), drawn))
    svg = drawn.export_svg(
        title="mast-trace demo", theme=_THEME, code_format=_FORMAT, unique_id="demo"
    )
    PICTURE.write_text(svg, encoding="utf-8")
    print(f"{PICTURE} written")


if __name__ == "__main__":
    main()
