"""An agent that sends large messages between small ones, of a given size and kind."""

from __future__ import annotations

import sys

import mast_trace


def text_of(characters: int, alphabet: str) -> str:
    """Return a text of a given length that holds no piece twice."""
    pieces = characters // (len(alphabet) + 8) + 1
    return "".join(f"{alphabet}{number:07d}\n" for number in range(pieces))[:characters]


def main() -> None:
    """Send a run with a large message, a large input and a large result of a tool."""
    text = text_of(int(sys.argv[1]), sys.argv[2])
    mast_trace.instrument(frameworks=[])
    with mast_trace.run("large", input="Copy the file."):
        mast_trace.message("reader", "writer", "before")
        mast_trace.message("reader", "writer", text)
        mast_trace.message("reader", "writer", "after")
        with mast_trace.agent("writer", input=[text + "?"]) as turn:
            with mast_trace.tool("write", {"text": text + "!"}) as call:
                call.result({"written": text})
            turn.reply("Written.")
        mast_trace.message("writer", "user", "Written.")
        mast_trace.record_outcome(True)
    if not mast_trace.flush(60.0):
        sys.exit("the collector did not take everything")


if __name__ == "__main__":
    main()
