"""Reads a run from a file that a visitor sends, such as one of `mast-trace replay --out`."""

from __future__ import annotations

import json
from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException

from mast_trace.trajectory import trajectory_from_dict

if TYPE_CHECKING:
    from starlette.requests import Request

    from mast_trace.trajectory import Trajectory

LARGEST: Final = 8 * 1024 * 1024
"""Bytes of the largest file."""
_ENVELOPE = 4096
_FIELD = "file"
_EXPECTED = "a file of `mast-trace replay --out`, the JSON download of a run, or one line of `mast-trace export`"


async def read_upload(request: Request) -> Trajectory:
    """Return the run of a form with one file.

    Raises:
        HTTPException: 413, the file is too large; 400, it holds no run.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST + _ENVELOPE:
            raise HTTPException(413, f"A file of at most {LARGEST >> 20} MiB can be compared.")
    return run_of(_file_in(bytes(body), request.headers.get("content-type", "")))


def run_of(content: bytes) -> Trajectory:
    """Return the run that a file holds.

    Raises:
        HTTPException: 400, it holds no run.
    """
    try:
        shape: Any = json.loads(content)
        if isinstance(shape, dict) and "trajectory" in shape:
            shape = shape["trajectory"]
        if isinstance(shape, str):
            shape = json.loads(shape)
        return trajectory_from_dict(shape)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise HTTPException(400, f"This is not {_EXPECTED}: {reason[:300]}") from None


def _file_in(body: bytes, content_type: str) -> bytes:
    """Return the file of a form of the kind ``multipart/form-data``."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    form = BytesParser(policy=HTTP).parsebytes(head + body)
    for part in form.iter_parts() if form.is_multipart() else ():
        if part.get_param("name", header="content-disposition") == _FIELD:
            content = part.get_payload(decode=True)
            return content if isinstance(content, bytes) else b""
    raise HTTPException(400, "The form has no file.")
