"""`mast-trace patterns separate` says why nothing separates failed from successful runs."""

from __future__ import annotations

import pytest
from pattern_runs import add_run

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.cli.app import run
from mast_trace_judge.patterns.indexing import PatternIndexer


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Services in different situations; no one has an action that separates its runs."""
    url = f"chdb://{tmp_path_factory.mktemp('separate')}"
    with Store.open(url) as store:
        migrate(store)
        add_run(store, 1, service="same", outcome="failure")
        add_run(store, 2, service="same", outcome="success")
        add_run(store, 3, service="silent")
        add_run(store, 4, service="silent", code="2.6")
        add_run(store, 5, service="lucky", outcome="success", project="two")
        add_run(store, 6, service="fresh", outcome="failure", judged=False)
        while PatternIndexer(store).index(at_all=True):
            pass
    return url


@pytest.mark.parametrize(
    ("asked", "said", "unsaid"),
    [
        (
            ("--service", "nosuch"),
            ["There is no service nosuch. Those with runs: same, silent, fresh, lucky."],
            ["utcome"],
        ),
        (
            ("--service", "silent"),
            ["No outcomes are recorded of silent (judged runs: 2)", "mast_trace.record_outcome"],
            ["more than chance", "no service"],
        ),
        (
            ("--service", "same"),
            ["more than chance", "same (1 failed, 1 successful)."],
            ["mast_trace.record_outcome", "no service"],
        ),
        (("--service", "fresh"), ["no judged runs of fresh", "patterns index"], ["record_outcome"]),
        (
            ("--project", "two", "--service", "same"),
            ["There is no service same. Those with runs: lucky."],
            ["differ"],
        ),
        (
            (),
            [
                "more than chance",
                "recorded of silent",
                "all the same",
            ],
            ["fresh", "no service"],
        ),
    ],
)
def test_the_reason_is_said(
    url: str,
    capsys: pytest.CaptureFixture[str],
    asked: tuple[str, ...],
    said: list[str],
    unsaid: list[str],
) -> None:
    assert run(["patterns", "separate", *asked, "--url", url]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert [text for text in said if text not in shown.err] == [], shown.err
    assert [text for text in unsaid if text in shown.err] == [], shown.err


def test_programs_read_an_empty_list(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patterns", "separate", "--service", "nosuch", "--json", "--url", url]) == 0
    assert capsys.readouterr() == ("[]\n", "")
