"""`judge run` judges one run now, `judge work --once` what is finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import CLI


def test_a_run_can_be_judged_without_storing(cli: CLI) -> None:
    run_id = cli.recorded.ids["unjudged"]
    shown = cli.json("judge", "run", run_id, "--no-save")
    assert shown["verdict"]["status"] == "ok"
    assert cli.json("show", run_id)["verdict"] is None


def test_judging_prints_steps_and_verdict(cli: CLI) -> None:
    out = cli.out("judge", "run", cli.recorded.ids["invoices"], "--no-save")
    assert "Look here first: analyst, step" in out
