"""The web view on a real store, served over loopback."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

import httpx
import pytest
from guarded_view import View
from replayed_runs import PROVED, SAID, TWIN, conclude, proof, team
from view_server import serve
from web_runs import (
    BARE,
    CROWD,
    HEALTHY,
    HOSTILE,
    LIVE,
    LONG,
    LOOP,
    QUOTE,
    SHORT,
    UNSURE,
    abstained,
    judged,
    message,
    root,
)

from mast_trace_collector import security
from mast_trace_collector.storage import Store, migrate
from mast_trace_judge.store.verdicts import save
from mast_trace_lab.feedback.experiment import make_plan
from mast_trace_lab.feedback.statistics.plan import ExperimentPlan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The runs that the tests look at.

    One short with hostile texts, one of 5,000 steps, one without steps or verdict, one that says
    the same again and again, one that has only begun, one of which the judge names no step, one of thirty
    agents, and one that nothing is shown of. Two are of one team: replays have proved the first one's error, which
    the second one does not make.
    """
    with Store.open(f"chdb://{tmp_path_factory.mktemp('web')}") as opened:
        migrate(opened)
        texts = ["Find the price.", QUOTE, HOSTILE, "Again.", "Again.", "x" * 1_000_000]
        short = [
            message(SHORT, n, "researcher" if n % 2 == 0 else "<b>writer</b>", text)
            for n, text in enumerate(texts)
        ]
        long = [message(LONG, n, "researcher", f"Step {n}.") for n in range(5000)]
        long[4321] = message(LONG, 4321, "researcher", QUOTE)
        loop = [
            message(LOOP, n, "researcher" if n % 2 == 0 else "writer", "Again?" if n > 1 else "Go.")
            for n in range(10)
        ]
        for rows in (
            [root(SHORT, "trip & <i>co</i>"), *short],
            [root(LONG, "long"), *long],
            [root(BARE, "bare")],
            [root(LOOP, "loop"), *loop],
            [message(LIVE, 0, "researcher", "I begin.")],
            [
                root(UNSURE, "unsure"),
                *(message(UNSURE, n, "writer", f"Said {n}.") for n in range(4)),
            ],
            [root(HEALTHY, "healthy"), message(HEALTHY, 0, "writer", "All is well.")],
            [
                root(CROWD, "crowd"),
                *(message(CROWD, n, f"member {n % 30}", f"Word {n}.") for n in range(90)),
                # The page says by which call its input and tokens would be recorded.
                {
                    **message(CROWD, 90, "", ""),
                    "ScopeName": "mast_trace.ag2",
                    "SpanAttributes": {"gen_ai.operation.name": "chat", "mast.framework": "ag2"},
                },
            ],
            team(PROVED),
            team(TWIN, (*SAID[:2], ("writer", "Two nights cost 236 EUR."))),
        ):
            opened.insert("otel_traces", rows)
        save(
            opened,
            [
                judged(opened, SHORT, 6, 1),
                judged(opened, LONG, 5000, 4321),
                judged(opened, UNSURE, 4, 1, **abstained("unknown", 0.8)),
                judged(opened, HEALTHY, 1, 0, **abstained("unknown", 0.3)),
                judged(opened, PROVED, len(SAID), 1),
            ],
        )
        conclude(opened, PROVED, proof())
        plan(opened)
        yield opened


def plan(store: Store) -> None:
    """Plan the experiment `planned` of three variants, with runs in two of them."""
    arms = ("team", "single agent", "without the agent who reads all documents first")
    make_plan(store, "", ExperimentPlan("planned", arms=arms))
    store.insert(
        "mast_experiment_runs",
        [
            {
                "TraceId": run,
                "Experiment": "planned",
                "Arm": arm,
                "Task": run,
                "Start": datetime.now(timezone.utc),
            }
            for run, arm in ((SHORT, "team"), (LOOP, "stranger"))
        ],
    )


@pytest.fixture(scope="module")
def served(store: Store) -> Iterator[str]:
    """The address of the view."""
    yield from serve(store)


@pytest.fixture(scope="module")
def client(served: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served, timeout=60) as made:
        yield made


@pytest.fixture
def view(store: Store, tmp_path: Path) -> View:
    """A view with a token, a key and a trusted proxy."""
    return View(store, tmp_path)


@pytest.fixture(scope="module")
def away() -> Iterator[Store]:
    """A database that does not answer: the door does not ask it, and pages that do answer 503."""
    with Store.open("http://nobody:none@127.0.0.1:9", connect=False) as store:
        yield store


@pytest.fixture
def door(away: Store, tmp_path: Path) -> View:
    """A view like `view`, for tests of who is let in, and to which pages."""
    return View(away, tmp_path)


@pytest.fixture
def quick_reload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have changes of the keys file count at once."""
    monkeypatch.setattr(security, "_RELOAD_SECONDS", 0.0)
