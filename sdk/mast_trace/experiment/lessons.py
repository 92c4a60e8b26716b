"""`mast_trace.feedback`: fetches the lessons of earlier runs from the web view, within two seconds."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from mast_trace.content import as_text, content_hash, is_a, well_formed
from mast_trace.experiment.assignment import FEEDBACK, PLACEBO, Arm
from mast_trace.experiment.marks import (
    Feedback,
    from_record,
    read_answer,
    recorded_form,
    set_recorded_form,
    task_hash,
)
from mast_trace.replay.canonical import canonical_text
from mast_trace.replay.lessons import RecordedLessons, recorded_lessons
from mast_trace.spans.given_lessons import note
from mast_trace.spans.guard import guarded, misused
from mast_trace.untrusted_json import read_json
from mast_trace.urls import check_key, parse_url

logger = logging.getLogger("mast_trace")

URL_VARIABLE: Final = "MAST_TRACE_FEEDBACK_URL"
KEY_VARIABLE: Final = "MAST_TRACE_FEEDBACK_KEY"
DEFAULT_URL: Final = "http://127.0.0.1:8680"
PATH: Final = "/lessons"
SECONDS: Final = 2.0
"""Time after which a program goes on without lessons."""
MOST_LESSONS: Final = 3
MOST_CHARACTERS: Final = 4000
_MOST_BYTES: Final = 256 * 1024
_PART: Final = 256
_MOST_LEFT_BEHIND: Final = 4
_CALL: Final = "feedback"

_left_behind: list[threading.Thread] = []


class _Unusable(Exception):
    """The answer cannot be used; the text says why."""


def feedback(
    run: str | None = None,
    *,
    arm: Arm | None = None,
    workflow: str = "",
    agent: str = "",
    task: str = "",
    last: int = MOST_LESSONS,
    budget: int = 600,
    url: str | None = None,
    read_key: str | None = None,
) -> Feedback:
    """Return lessons of earlier failed runs, to be put into a prompt; empty if there are none.

    It takes two seconds at most, never raises, and is empty on any failure; `Feedback.reason` says
    why. A replay fetches nothing: it gives the lessons that the recorded run was given. Coroutines
    call it by ``await asyncio.to_thread(mast_trace.feedback, ...)``; before a run they need
    `mast_trace.using_feedback` around the run, without which the lessons are not recorded.

    Args:
        run: trace id of the run to learn from. Without it the latest failed runs teach.
        arm: of `mast_trace.assign`. In the arm ``placebo`` the text is general advice of the same
            length, in ``feedback`` the experiment's frozen lessons; other arms get none.
        workflow: name of the workflow whose runs teach; all if empty.
        agent: only lessons about this agent.
        task: the task of the run. Lessons from a run with the same task are left out in experiments;
            its text stays in this process, its hash is sent.
        last: number of lessons at most, the latest ones; three at most.
        budget: characters of the text at most.
        url: address of the web view; else ``MAST_TRACE_FEEDBACK_URL``, else this machine.
        read_key: key with the right to read; else ``MAST_TRACE_FEEDBACK_KEY``.
    """
    given = arm if is_a(arm, Arm) else None
    key = ""
    try:
        if arm is not None and given is None:
            misused(_CALL, "arm is not one that mast_trace.assign() has returned")
            return Feedback(reason="The arm is not one that mast_trace.assign() has returned.")
        if given is not None and given not in (PLACEBO, FEEDBACK):
            return Feedback(arm=given, reason=f"The arm {str(given)!r} gets no lessons.")
        limit = _whole(budget, 0, MOST_CHARACTERS, "budget")
        query = {
            "run": _text(run),
            "workflow": _text(workflow),
            "agent": _text(agent),
            "task": task_hash(_text(task)),
            "last": str(_whole(last, 0, MOST_LESSONS, "last")),
            "budget": str(limit),
            "experiment": given.experiment if given is not None else "",
            "key": given.task if given is not None else "",
        }
        key = _key(query, _text(task))
        recorded = recorded_lessons()
        if recorded is not None:
            return _noted(_replayed(recorded, key, given), key)
        address = (_text(url) or os.environ.get(URL_VARIABLE, "") or DEFAULT_URL).rstrip("/")
        secret = _text(read_key) or os.environ.get(KEY_VARIABLE, "")
        answer = _within(SECONDS, address + PATH, query, secret)
        found = read_answer(answer, placebo=given == PLACEBO, budget=limit, arm=given)
        return _noted(found, key)
    except Exception as error:  # noqa: BLE001  # lessons never stop a program
        found = _none(given, error)
        return _noted(found, key) if key else found


def _key(query: Mapping[str, str], task: str) -> str:
    """Return the hash by which a replay knows a question again.

    A task's generated ids and its times differ in a replay, as they do in requests to models.
    """
    known = {**query, "task": task_hash(canonical_text(task))}
    return content_hash(json.dumps(known, sort_keys=True))


def _noted(found: Feedback, key: str) -> Feedback:
    """Return lessons, noted for the run that is given them."""
    with guarded("noting lessons"):
        set_recorded_form(found, key)
        note(recorded_form(found))
    return found


def _replayed(recorded: RecordedLessons, key: str, arm: Arm | None) -> Feedback:
    """Return the lessons that the recorded run was given for a question; a replay fetches none."""
    shape = recorded.take(key)
    if shape is not None:
        return from_record(shape, arm)
    reason = "A replay fetches no lessons, and the record of the run has none for this question."
    # The log of last resort shows it on standard error, where the divergence may follow.
    logger.warning("mast_trace.feedback(): %s", reason)
    return Feedback(arm=arm, reason=reason)


def _none(arm: Arm | None, error: Exception) -> Feedback:
    told = isinstance(error, _Unusable | ValueError)
    reason = f"No lessons could be fetched: {error if told else type(error).__name__}."
    logger.info("mast_trace.feedback(): %s", reason)
    return Feedback(arm=arm, reason=reason)


def _within(seconds: float, url: str, query: Mapping[str, str], secret: str) -> Any:
    """Return the JSON of an answer, or stop waiting.

    A thread asks: neither the look-up of a name nor a server that sends a byte a second keeps to the
    time-out of a socket. It is left behind then, and while a few are, nothing more is asked.
    """
    _left_behind[:] = [each for each in _left_behind if each.is_alive()]
    if len(_left_behind) >= _MOST_LEFT_BEHIND:
        raise _Unusable("earlier requests still wait for their answers")
    got: list[Any] = []
    deadline = time.monotonic() + seconds

    def ask() -> None:
        try:
            got.append((_ask(url, query, secret, deadline), None))
        except Exception as error:  # noqa: BLE001  # handed to the caller
            got.append((None, error))

    thread = threading.Thread(target=ask, name="mast-trace-feedback", daemon=True)
    thread.start()
    thread.join(seconds)
    if not got:
        _left_behind.append(thread)
        raise _Unusable(f"there was no answer within {seconds:g} s")
    answer, error = got[0]
    if error is not None:
        raise error
    return answer


def _ask(url: str, query: Mapping[str, str], secret: str, deadline: float) -> Any:
    import requests
    from opentelemetry import context as otel_context

    parts = parse_url(url)
    if parts.scheme not in ("http", "https") or not parts.host:
        raise _Unusable("the address of the web view is none of http:// or https://")
    headers = {"Accept": "application/json", "User-Agent": "mast-trace"}
    if secret:
        headers["Authorization"] = f"Bearer {check_key(secret, KEY_VARIABLE)}"
    # The program's own instrumentation of HTTP clients must not record this request.
    context = otel_context.set_value(
        otel_context._SUPPRESS_HTTP_INSTRUMENTATION_KEY,  # noqa: SLF001  # the SDK's own way
        True,
    )
    token = otel_context.attach(context)
    try:
        with requests.Session() as session:
            # Requests to this machine bypass the proxy; netrc must not replace the key.
            session.trust_env = not _is_loopback(parts.host)
            session.auth = _Keep()
            with session.get(
                url,
                params=query,
                headers=headers,
                timeout=max(0.1, deadline - time.monotonic()),
                allow_redirects=False,  # the key is for this address alone
                stream=True,
            ) as response:
                return _read(response, deadline)
    except requests.RequestException as error:
        raise _Unusable(f"the web view does not answer ({type(error).__name__})") from None
    finally:
        otel_context.detach(token)


class _Keep:
    """Leaves the headers of a request as they are."""

    def __call__(self, request: Any) -> Any:
        return request


def _read(response: Any, deadline: float) -> Any:
    if response.status_code != 200:
        raise _Unusable(f"the web view answered with status {response.status_code}")
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _Unusable("the answer is no JSON, so this is not the web view, or it wants a key")
    body = bytearray()
    # A larger part would be waited for, however slowly its bytes come.
    for part in response.iter_content(_PART):
        body += part
        if len(body) > _MOST_BYTES:
            raise _Unusable("the answer is too long")
        if time.monotonic() > deadline:
            raise _Unusable(f"there was no whole answer within {SECONDS:g} s")
    return read_json(bytes(body))


def _text(value: Any) -> str:
    return "" if value is None else well_formed(as_text(value)).strip()


def _whole(value: Any, low: int, high: int, what: str) -> int:
    if isinstance(value, int):
        return min(high, max(low, int(value)))
    misused(_CALL, f"{what} is no whole number but {type(value).__name__}; {high} is taken")
    return high


def _is_loopback(host: str) -> bool:
    return host.lower() in {"localhost", "::1"} or host.startswith("127.")
